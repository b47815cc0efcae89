//! The command line of sysbench 1.0 and 1.1, with sysbench's defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use riops::plan::{COMMON_SCRIPT, Drain, OltpTest, stock_script};
use riops::server::ConnInfo;
use riops::server::conninfo::Precedence;

use super::sysbench_options::{ALIASES, GENERAL, Kind, Known, OF_1_1, OF_TESTS, OLTP, Use};
use super::translation::{Meaning, Outside, Refused, Secret, Translated, Translation, Words};
use crate::options::SYSBENCH_VERSION;

/// The tests that measure no database.
const OTHER_TESTS: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];
/// Rows per statement of `bulk_insert`: as many as sysbench puts into 512 KiB when ids have six digits.
const BULK_ROWS: u64 = 32_000;
/// The longest measurement, in seconds, of a run that sysbench does not limit.
const UNLIMITED_S: u64 = 30 * 86_400;

/// Maximum number of configuration files: a file that names itself would never end.
const CONFIG_FILES_MAX: usize = 100;

/// The directory of sysbench's own scripts.
const OWN_SCRIPTS: &str = "share/sysbench";
/// From this verbosity on, sysbench prints its report.
const VERBOSITY_OF_REPORTS: u64 = 3;

const USAGE: &str = "Usage: riops sysbench [OPTION]... TEST prepare|run|cleanup|prewarm|help\n";

/// Returns the last password among the arguments. An empty one replaces it, so that the arguments still select the server.
pub(super) fn password(arguments: &[String]) -> Option<Secret> {
    let password_in = |argument: &String| {
        let (name, value) = argument.strip_prefix("--")?.split_once('=')?;
        (name.replace('-', "_") == "pgsql_password" && !value.is_empty()).then(|| value.to_owned())
    };
    let indexed = arguments.iter().enumerate();
    let (positions, mut values): (_, Vec<_>) =
        indexed.filter_map(|(position, argument)| Some((position, password_in(argument)?))).unzip();
    let replacement = Some("--pgsql-password=".to_owned());
    Some(Secret { variable: "PGPASSWORD", value: values.pop()?, positions, replacement })
}

/// Returns what sysbench would say about an error of riops, with its own option.
pub(super) fn in_its_words(text: &str) -> Option<String> {
    text.contains("--protocol prepared is not supported by this pooler")
        .then(|| "prepared statements need --db-ps-mode=disable behind this pooler".to_owned())
}

/// Translates a command line.
pub(super) fn translate(arguments: &[String], outside: &Outside<'_>) -> Translated {
    let line = Line::read(arguments, outside)?;
    if line.is_on("version") {
        let version = concat!("sysbench 1.0.20 (riops ", env!("CARGO_PKG_VERSION"), ")\n");
        return Ok(Meaning::Text(version.to_owned()).without_notices());
    }
    let Some(typed) = line.test.clone() else {
        let help = USAGE.to_owned() + "\nGeneral options:\n" + &listed(GENERAL);
        return Ok(Meaning::Text(help).without_notices());
    };
    let Named { name, notice } = named(&typed, outside)?;
    let test = test_of(&name)?;
    let own = OF_TESTS.iter().find(|(test, _)| *test == name).map_or(&[][..], |(_, own)| *own);
    let is_bulk = test == OltpTest::BulkInsert;
    let common = if is_bulk { &[] } else { OLTP };
    let known: Vec<&Known> = GENERAL.iter().chain(common).chain(own).collect();
    let command = line.command.as_deref();
    if !is_bulk && (line.is_on("help") || command == Some("help")) {
        let help = format!("{name} options:\n{}{}", listed(own), listed(OLTP));
        return Ok(Meaning::Text(help).without_notices());
    }
    let Some(command) = command else {
        return Err("a command is required: prepare, prewarm, run, cleanup, help".to_owned());
    };
    let mut options = Options::check(&line, &known)?;
    options.notices.extend(notice);
    let is_quiet = options.integer("verbosity") < VERBOSITY_OF_REPORTS;
    let words = match command {
        "create" | "load" if !is_bulk => {
            options.notices.push(
                "create and load are one step: the first of them creates and fills the tables, the second keeps them"
                    .to_owned(),
            );
            options.prepare()
        }
        "help" | "prewarm" | "warmup" if is_bulk => {
            return Err(format!("the test 'bulk_insert' has no command '{command}'"));
        }
        "prepare" if is_bulk => options.prepare_bulk(),
        "prepare" => options.prepare(),
        "run" => options.run(test, outside)?,
        "cleanup" => options.on_server("cleanup oltp --schema=public"),
        "prewarm" | "warmup" => {
            let mut words = options.on_server("warm oltp --schema=public");
            options.part(&mut words);
            words
        }
        other => return Err(format!("unknown command: {other}")),
    };
    if is_quiet {
        let quiet = std::iter::once("--quiet".to_owned()).chain(words.0).collect();
        return Ok(Meaning::Silent(vec![quiet]).without_notices());
    }
    Ok(Translation { meaning: Meaning::Commands(vec![words.0]), notices: options.notices })
}

/// A test of the command line.
struct Named {
    name: String,
    /// A notice if a file was typed.
    notice: Option<String>,
}

/// Returns the test that a word names. A script is known by its contents, whatever its name is: one of the user would be
/// ignored in silence, because riops has no Lua.
fn named(typed: &str, outside: &Outside<'_>) -> Result<Named, Refused> {
    let path = Path::new(typed);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(typed).to_owned();
    let is_path = typed.contains('/');
    // sysbench looks for scripts in the working directory first.
    let scripts = [typed.to_owned(), format!("{typed}.lua")];
    let readable = scripts.iter().find_map(|path| Some((path, (outside.read)(path).ok()?)));
    if let Some((script, text)) = readable {
        let name = stock_script(&text).filter(|name| *name != COMMON_SCRIPT);
        let name = name.ok_or_else(|| unlike_stock(script))?;
        let beside = Path::new(script).with_file_name(format!("{COMMON_SCRIPT}.lua"));
        for common in [beside, format!("{COMMON_SCRIPT}.lua").into()] {
            let common = common.display().to_string();
            if (outside.read)(&common).is_ok_and(|text| stock_script(&text).is_none()) {
                return Err(unlike_stock(&common));
            }
        }
        let notice = Some(format!("runs the built-in test {name}, whose script is {script}"));
        return Ok(Named { name: name.to_owned(), notice });
    }
    let is_own = path.parent().is_some_and(|parent| parent.ends_with(OWN_SCRIPTS));
    if is_path && is_own && stem.parse::<OltpTest>().is_ok_and(|test| test.sysbench_name() == stem)
    {
        // Without an installation of sysbench, its command lines work too.
        let notice = Some(format!("runs the built-in test {stem}; {typed} does not exist"));
        return Ok(Named { name: stem, notice });
    }
    if is_path {
        return Err(format!("cannot find benchmark '{typed}': no such file"));
    }
    Ok(Named { name: stem, notice: None })
}

fn unlike_stock(script: &str) -> Refused {
    format!(
        "Lua scripts are not supported, and {script} differs from all scripts of sysbench; built-in tests: {}",
        built_in()
    )
}

fn built_in() -> String {
    OltpTest::sysbench_names().collect::<Vec<_>>().join(", ")
}

/// Returns the built-in test of this name.
fn test_of(name: &str) -> Result<OltpTest, Refused> {
    if OTHER_TESTS.contains(&name) {
        return Err(format!(
            "sysbench's test '{name}' is not supported: riops runs its OLTP tests"
        ));
    }
    let advice = match name {
        "oltp" => "its name is oltp_read_write since sysbench 1.0".to_owned(),
        "idleconnection" => {
            r"it sends nothing; for idle connections: echo '\sleep 1 s' | riops run script -f - -c N -t TIME -d …"
                .to_owned()
        }
        _ => format!("built-in tests: {}", built_in()),
    };
    let test = name.parse::<OltpTest>().ok().filter(|test| test.sysbench_name() == name);
    test.ok_or_else(|| format!("cannot find benchmark '{name}': {advice}"))
}

/// The options, one per line, with their meanings and defaults.
fn listed(options: &[Known]) -> String {
    let mut text = String::new();
    for (name, kind, default, _, meaning) in options {
        let value = match kind {
            Kind::Number | Kind::Rate => "=N".to_owned(),
            Kind::Text => "=STRING".to_owned(),
            Kind::Switch => "[=on|off]".to_owned(),
            Kind::OneOf(texts) => format!("={{{}}}", texts.join(",")),
        };
        let option = format!("--{name}{value}");
        let _ = writeln!(text, "  {option:<32} {meaning} [{default}]");
    }
    text
}

/// The words of a command line.
#[derive(Default)]
struct Line {
    test: Option<String>,
    command: Option<String>,
    /// The options with their values, as typed; a later one replaces an earlier one.
    given: Vec<(String, Option<String>)>,
    /// Configuration files that were read.
    files: usize,
}

impl Line {
    fn read(arguments: &[String], outside: &Outside<'_>) -> Result<Self, Refused> {
        let mut line = Self::default();
        for argument in arguments {
            match argument.strip_prefix("--") {
                Some(option) => line.option(option, outside)?,
                None if line.test.is_none() => line.test = Some(argument.clone()),
                None if line.command.is_none() => line.command = Some(argument.clone()),
                None => return Err(format!("unrecognized command line argument: {argument}")),
            }
        }
        Ok(line)
    }

    fn option(&mut self, option: &str, outside: &Outside<'_>) -> Result<(), Refused> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (option, None),
        };
        let name = name.replace('-', "_");
        let name =
            ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, own)| own);
        match (name, value) {
            ("config_file", Some(path)) => {
                self.files += 1;
                if self.files > CONFIG_FILES_MAX {
                    return Err(format!(
                        "more than {CONFIG_FILES_MAX} configuration files: {path}"
                    ));
                }
                let text = (outside.read)(&path)
                    .map_err(|error| format!("cannot read {path}: {error}"))?;
                for line in text.lines().map(str::trim) {
                    if !line.is_empty() && !line.starts_with('#') {
                        self.option(line.trim_start_matches("--"), outside)?;
                    }
                }
            }
            // The form of sysbench 0.5: the command is then the first word.
            ("test", Some(test)) => {
                self.command = self.test.replace(test).or(self.command.take());
            }
            (name, value) => self.given.push((name.to_owned(), value)),
        }
        Ok(())
    }

    fn is_on(&self, name: &str) -> bool {
        self.given.iter().any(|(given, value)| {
            given == name && value.as_deref().is_none_or(|value| value == "on")
        })
    }
}

/// The options that were given, with checked values.
struct Options {
    given: BTreeMap<&'static str, (Use, String)>,
    notices: Vec<String>,
}

impl Options {
    fn check(line: &Line, known: &[&Known]) -> Result<Self, Refused> {
        let mut options = Self { given: BTreeMap::new(), notices: Vec::new() };
        for (name, value) in &line.given {
            let dashed = name.replace('_', "-");
            // The other options of MySQL, such as --mysql-host.
            let option = known.iter().find(|(known, ..)| known == name);
            if option.is_none() && name.starts_with("mysql_") {
                options.notices.push(format!("--{dashed} has no effect: it is an option of MySQL"));
                continue;
            }
            let &&(name, kind, _, used, _) =
                option.ok_or_else(|| format!("invalid option: --{dashed}"))?;
            let value = checked(kind, value.as_deref()).ok_or_else(|| {
                format!("invalid value for --{dashed}: {}", value.as_deref().unwrap_or("none"))
            })?;
            match used {
                Use::Ignored(why) => {
                    options.notices.push(format!("--{dashed} has no effect: {why}"));
                }
                Use::Refused(why) => return Err(format!("--{dashed} is not supported: {why}")),
                _ => {}
            }
            options.given.insert(name, (used, value));
        }
        options.check_general()?;
        Ok(options)
    }

    fn check_general(&mut self) -> Result<(), Refused> {
        if let Some(driver) = self.text("db_driver").filter(|driver| *driver != "pgsql") {
            return Err(format!("--db-driver={driver} is not supported: riops needs pgsql"));
        }
        match self.text("forced_shutdown") {
            None | Some("off") => {}
            Some(seconds) if seconds.parse::<u64>().is_ok() => self.notices.push(
                "--forced-shutdown has no effect: riops waits for the transactions in flight"
                    .to_owned(),
            ),
            Some(other) => return Err(format!("invalid value for --forced-shutdown: '{other}'")),
        }
        if self.integer("threads") == 0 {
            return Err("invalid value for --threads: 0".to_owned());
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(|(_, value)| value.as_str())
    }

    /// The value of an option; its default if it was not given.
    fn value(&self, name: &str) -> &str {
        let default = || {
            let known = GENERAL.iter().chain(OLTP).find(|(known, ..)| *known == name);
            known.map_or("", |(_, _, default, ..)| *default)
        };
        self.text(name).unwrap_or_else(default)
    }

    fn integer(&self, name: &str) -> u64 {
        self.value(name).parse().unwrap_or_default()
    }

    /// The value of a number that was given and for which 0 means off.
    fn positive(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok().filter(|&value| value > 0)
    }

    fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("on")
    }

    /// Returns a command of riops on the server of the options. Without any of them, it uses riops's default server.
    fn on_server(&self, command: &str) -> Words {
        let mut words = Words::new(command);
        let any = self.given.keys().any(|name| name.starts_with("pgsql_"));
        if any {
            let given = [
                ("host", self.value("pgsql_host")),
                ("port", self.value("pgsql_port")),
                ("user", self.value("pgsql_user")),
                ("password", self.value("pgsql_password")),
                ("sslmode", self.text("pgsql_sslmode").unwrap_or_default()),
            ];
            let database = self.value("pgsql_db");
            words.set("database", ConnInfo::with_settings(database, &given, Precedence::Beside));
        }
        words
    }

    /// Adds the options that have the same name in riops.
    fn same(&self, words: &mut Words, uses: &[Use]) {
        for (name, (_, value)) in self.given.iter().filter(|(_, (used, _))| uses.contains(used)) {
            words.set(&name.replace('_', "-"), value);
        }
    }

    fn prepare(&self) -> Words {
        let mut words = self.on_server("prepare oltp --schema=public");
        self.same(&mut words, &[Use::Prepare, Use::Both]);
        words.set("connections", self.integer("threads"));
        // Without it, tables of earlier versions of riops are accepted.
        if self.given.keys().any(|name| name.starts_with("rand_") && *name != "rand_seed") {
            words.set("rand-type", self.distribution());
        }
        words.set_some("seed", self.positive("rand_seed"));
        words
    }

    fn prepare_bulk(&self) -> Words {
        let mut words = self.on_server("prepare oltp --schema=public --bulk-insert");
        words.set("tables", self.integer("threads"));
        words
    }

    /// The form of the report: the options that were given belong to a version.
    fn form(&self, outside: &Outside<'_>) -> Result<&'static str, Refused> {
        let is_newer = match (outside.variable)(SYSBENCH_VERSION).as_deref() {
            Some("1.0") => false,
            Some("1.1") => true,
            Some(other) => {
                return Err(format!(
                    "invalid value for {SYSBENCH_VERSION}: {other}: expected 1.0 or 1.1"
                ));
            }
            None => OF_1_1.iter().any(|name| self.given.contains_key(name)),
        };
        Ok(if is_newer { "sysbench-1.1" } else { "sysbench" })
    }

    fn run(&mut self, test: OltpTest, outside: &Outside<'_>) -> Result<Words, Refused> {
        let mut words = self.on_server("run oltp");
        // This test has no tables.
        let has_tables = test != OltpTest::SelectOne;
        words.flag("schema=public", has_tables);
        words.set("output", self.form(outside)?);
        // sysbench starts a transaction again after these errors until it succeeds.
        words.set("max-retries", u32::MAX);
        words.flag("redraw", true);
        words.set("test", test);
        // Only inserts use sequences.
        let inserts = test == OltpTest::Insert;
        self.same(&mut words, if inserts { &[Use::Run, Use::Both] } else { &[Use::Run] });
        words.set("sessions", self.integer("threads"));
        let events = if test == OltpTest::BulkInsert {
            let rows = self.rows_of_statements();
            words.set("batch-insert-count", rows);
            rows
        } else {
            if has_tables {
                self.part(&mut words);
            }
            words.set("distribution", self.distribution());
            1
        };
        words.set_some("seed", self.positive("rand_seed"));
        words.set("warmup", format!("{}s", self.integer("warmup_time")));
        self.stop(&mut words);
        let rate = self.positive("rate").map(|rate| rate as f64 / events as f64);
        words.set_some("rate", rate);
        words.flag("poisson", rate.is_some());
        let timeout = self.positive("thread_init_timeout");
        words.set_some("thread-init-timeout", timeout.map(|seconds| format!("{seconds}s")));
        words.set_some("report-checkpoints", self.checkpoints()?);
        words.set_some("percentile", self.text("percentile"));
        words.flag("print-histogram", self.is_on("histogram"));
        // sysbench never prepares these statements.
        let unprepared = inserts || test == OltpTest::BulkInsert;
        let is_simple = unprepared || self.text("db_ps_mode") == Some("disable");
        words.flag("protocol=simple", is_simple);
        Ok(words)
    }

    /// Adds the part of the tables that sysbench uses, whatever was prepared.
    fn part(&self, words: &mut Words) {
        words.set("tables", self.value("tables"));
        words.set("table-size", self.value("table_size"));
    }

    /// The number of rows of each statement of `bulk_insert`. Its events are rows: their number becomes one of
    /// statements.
    fn rows_of_statements(&mut self) -> u64 {
        let Some(events) = self.positive("events") else {
            return BULK_ROWS;
        };
        let threads = self.integer("threads").min(events);
        let rows = events.div_ceil(events.div_ceil(BULK_ROWS).max(threads));
        let statements = events.div_ceil(rows);
        if statements * rows > events {
            let inserted = statements * rows;
            self.notices.push(format!(
                "inserts {inserted} rows instead of {events}: all statements have {rows}"
            ));
        }
        self.given.insert("events", (Use::Translated, statements.to_string()));
        rows
    }

    /// The times of the checkpoints in ascending order.
    fn checkpoints(&self) -> Result<Option<String>, Refused> {
        let Some(text) = self.text("report_checkpoints").filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let times = text.split(',').map(|time| time.trim().parse()).collect::<Result<_, _>>();
        let times: BTreeSet<u64> =
            times.map_err(|_| format!("invalid value for --report-checkpoints: {text}"))?;
        let times: Vec<String> = times.iter().map(u64::to_string).collect();
        Ok(Some(times.join(",")))
    }

    /// Adds the end of the run and the interval of its series.
    fn stop(&self, words: &mut Words) {
        let (events, time_s) = (self.positive("events"), self.integer("time"));
        let reported_s = self.positive("report_interval");
        let time_s = if time_s == 0 && events.is_none() { UNLIMITED_S } else { time_s };
        let interval_s = reported_s.unwrap_or(1);
        words.set_some("transactions", events);
        if events.is_none() || time_s > 0 {
            let option = if events.is_none() { "duration" } else { "max-duration" };
            words.set(option, format!("{time_s}s"));
            words.set("drain", Drain::Counted);
        }
        words.set("interval", format!("{interval_s}s"));
        words.flag("no-intervals", reported_s.is_none());
    }

    fn distribution(&self) -> String {
        let draws = self.value("rand_spec_iter");
        match self.value("rand_type") {
            "special" => {
                let (keys, accesses) = (self.value("rand_spec_pct"), self.value("rand_spec_res"));
                format!("special:{keys}:{accesses}:{draws}")
            }
            "gaussian" => format!("gaussian:{draws}"),
            "pareto" => format!("pareto:{}", self.value("rand_pareto_h")),
            "zipfian" => format!("zipfian:{}", self.value("rand_zipfian_exp")),
            other => other.to_owned(),
        }
    }
}

/// The value of an option as riops writes it; `None` if sysbench does not accept it.
fn checked(kind: Kind, value: Option<&str>) -> Option<String> {
    match (kind, value) {
        (Kind::Switch, None | Some("on" | "true" | "1")) => Some("on".to_owned()),
        (Kind::Switch, Some("off" | "false" | "0")) => Some("off".to_owned()),
        (Kind::Switch, Some(_))
        | (Kind::Number | Kind::Rate | Kind::Text | Kind::OneOf(_), None) => None,
        (Kind::Number, Some(text)) => Some(text.parse::<i64>().ok()?.max(0).to_string()),
        (Kind::Rate, Some(text)) => Some(text.parse::<u64>().ok()?.to_string()),
        (Kind::Text, Some(text)) => Some(text.to_owned()),
        (Kind::OneOf(texts), Some(text)) => texts.contains(&text).then(|| text.to_owned()),
    }
}

#[cfg(test)]
#[path = "sysbench_tests.rs"]
mod tests;
