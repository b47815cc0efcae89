//! The command line of pgbench 18.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use riops::plan::script::Builtin;

use super::pgbench_options::CommandLine;
use super::translation::{Meaning, Outside, Refused, Secret, Translation, quoted};
use crate::failure::{FAILED, INTERRUPTED, NOT_VALID};

/// The variable with the random seed.
const SEED: &str = "PGBENCH_RANDOM_SEED";
/// The variable with a connection string that contains a password, which is not shown among the arguments.
pub(crate) const CONNECTION: &str = "RIOPS_PGBENCH_CONNECTION";

/// What the arguments contain instead of it.
const HIDDEN: &str = "(hidden)";

/// Options that require `-i`.
const ONLY_INITIALIZATION: [&str; 9] = [
    "init_steps",
    "fillfactor",
    "quiet",
    "foreign_keys",
    "index_tablespace",
    "partition_method",
    "partitions",
    "tablespace",
    "unlogged_tables",
];
/// Options that cannot be combined with it.
const ONLY_RUN: [&str; 26] = [
    "builtin",
    "file",
    "skip_some_updates",
    "select_only",
    "client",
    "connect",
    "define",
    "jobs",
    "log",
    "latency_limit",
    "protocol",
    "progress",
    "report_per_command",
    "rate",
    "transactions",
    "time",
    "vacuum_all",
    "aggregate_interval",
    "exit_on_abort",
    "continue_on_error",
    "failures_detailed",
    "log_prefix",
    "max_tries",
    "random_seed",
    "sampling_rate",
    "verbose_errors",
];

/// Returns the exit code of pgbench: 2 if a client was aborted or the results are not valid, otherwise 1.
pub(super) fn exit_code(code: ExitCode) -> ExitCode {
    if code == ExitCode::SUCCESS || code == ExitCode::from(INTERRUPTED) {
        code
    } else if code == ExitCode::from(NOT_VALID) {
        ExitCode::from(2)
    } else {
        ExitCode::from(FAILED)
    }
}

/// Returns the connection string among the arguments if it may contain a password.
pub(super) fn connection_with_password(arguments: &[String]) -> Option<Secret> {
    let has_password = |text: &String| {
        text.contains("password=")
            || text.split_once("://").is_some_and(|(_, rest)| {
                rest.split_once('@').is_some_and(|(user, _)| user.contains(':'))
            })
    };
    // Without a valid command line, nothing is executed that others could see.
    let value = parsed(arguments).ok()?.0.named().cloned().filter(has_password)?;
    // The option may be shortened or grouped with others: the argument is the one whose change changes the connection.
    arguments.iter().enumerate().find_map(|(position, argument)| {
        let replacement = format!("{}{HIDDEN}", argument.strip_suffix(&value)?);
        let mut changed = arguments.to_vec();
        changed.get_mut(position)?.clone_from(&replacement);
        let is_hidden =
            parsed(&changed).is_ok_and(|(line, _)| line.named().is_some_and(|name| name == HIDDEN));
        is_hidden.then(|| Secret {
            variable: CONNECTION,
            value: value.clone(),
            positions: vec![position],
            replacement: Some(replacement),
        })
    })
}

/// Parses a command line.
fn parsed(arguments: &[String]) -> Result<(CommandLine, ArgMatches), clap::Error> {
    let typed = std::iter::once("pgbench").chain(arguments.iter().map(String::as_str));
    let matches = <CommandLine as CommandFactory>::command().try_get_matches_from(typed)?;
    Ok((CommandLine::from_arg_matches(&matches)?, matches))
}

fn said(text: String) -> Translation {
    Translation { meaning: Meaning::Text(text), notices: Vec::new() }
}

fn noted(text: String) -> Translation {
    Translation { meaning: Meaning::Message(text), notices: Vec::new() }
}

/// Translates a command line.
pub(super) fn translate(
    arguments: &[String],
    outside: &Outside<'_>,
) -> Result<Translation, Refused> {
    let (line, matches) = match parsed(arguments) {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(said(error.render().to_string()));
        }
        Err(error) => {
            let text = error.render().to_string();
            return Err(text.trim_start_matches("error: ").trim_end().to_owned());
        }
    };
    if line.version {
        let own = env!("CARGO_PKG_VERSION");
        return Ok(said(format!("pgbench (PostgreSQL) 18 (riops {own})\n")));
    }
    if line.builtin.iter().any(|name| name == "list") {
        let names =
            Builtin::ALL.map(|each| format!("{:>15}: {}\n", each.name(), each.description()));
        return Ok(noted(format!("Available builtin scripts:\n{}\n", names.concat())));
    }
    if let Some(name) = &line.show_script {
        let found: Builtin = name.parse().map_err(|error| format!("{error}"))?;
        let (name, description) = (found.name(), found.description());
        return Ok(noted(format!("-- {name}: {description}\n{}\n", found.text().trim_end())));
    }
    line.check(&matches)?;
    let mut notices = Vec::new();
    let words = if line.initialize {
        line.initialization(outside)
    } else {
        line.run(&matches, outside, &mut notices)?
    };
    Ok(Translation { meaning: Meaning::Commands(vec![words]), notices })
}

impl CommandLine {
    /// Refuses the combinations that pgbench refuses.
    fn check(&self, matches: &ArgMatches) -> Result<(), Refused> {
        let is_given =
            |id: &&'static str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if self.initialize && ONLY_RUN.iter().any(is_given) {
            return refuse(
                "some of the specified options cannot be used in initialization (-i) mode",
            );
        }
        if !self.initialize && ONLY_INITIALIZATION.iter().any(is_given) {
            return refuse("some of the specified options cannot be used in benchmarking mode");
        }
        if let Some((_, text)) = self.conflicts().iter().find(|(refused, _)| *refused) {
            return refuse(text);
        }
        if let (Some(each), Some(all)) = (self.aggregate_interval, self.time)
            && (each > all || all % each != 0)
        {
            return refuse("the duration must be a multiple of the aggregation interval");
        }
        if self.init_steps.as_deref().is_some_and(|steps| steps.trim().is_empty()) {
            return refuse("no initialization steps specified");
        }
        let steps = self.init_steps.as_deref().unwrap_or_default();
        match steps.chars().find(|step| !"dtgGvpf ".contains(*step)) {
            Some(step) => refuse(&format!(
                "unrecognized initialization step \"{step}\": allowed step characters are \"dtgGvpf\""
            )),
            None => Ok(()),
        }
    }

    /// Combinations of options, with the reason why they are refused.
    fn conflicts(&self) -> [(bool, &'static str); 11] {
        let is_limited = self.latency_limit.is_some() || self.time.is_some();
        [
            (
                self.dbname.is_some() && self.database.is_some(),
                "too many command-line arguments: two database names",
            ),
            (
                self.transactions.is_some() && self.time.is_some(),
                "specify either a number of transactions (-t) or a duration (-T), not both",
            ),
            (
                self.max_tries == 0 && !is_limited,
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ),
            (
                !self.log && self.sampling_rate.is_some(),
                "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
            ),
            (
                !self.log && self.aggregate_interval.is_some(),
                "log aggregation is allowed only when actually logging transactions",
            ),
            (
                !self.log && self.log_prefix.is_some(),
                "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
            ),
            (
                self.sampling_rate.is_some() && self.aggregate_interval.is_some(),
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
            ),
            (
                self.progress_timestamp && self.progress.is_none(),
                "--progress-timestamp is allowed only under --progress",
            ),
            (
                self.partition_method.is_some() && self.partitions.unwrap_or(0) == 0,
                "--partition-method requires greater than zero --partitions",
            ),
            (self.latency_limit.is_some_and(|limit| limit <= 0.0), "invalid latency limit"),
            (self.rate.is_some_and(|rate| rate <= 0.0), "invalid rate limit"),
        ]
    }

    /// The name of the database, or the connection string.
    fn named(&self) -> Option<&String> {
        self.dbname.as_ref().or(self.database.as_ref())
    }

    /// The connection string; `None` for the server that riops uses by default.
    fn connection(&self, outside: &Outside<'_>) -> Option<String> {
        let hidden = (outside.variable)(CONNECTION);
        let named = self.named().filter(|named| *named != HIDDEN).or(hidden.as_ref());
        let options = [("host", &self.host), ("port", &self.port), ("user", &self.username)];
        let options: Vec<(&str, &String)> =
            options.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?))).collect();
        let mut parts: Vec<String> =
            options.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        match named {
            Some(uri) if uri.contains("://") => {
                let pair = |(name, value): &(&str, &String)| {
                    format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
                };
                let query: Vec<String> = options.iter().map(pair).collect();
                let separator = if uri.contains('?') { '&' } else { '?' };
                return Some(match query.as_slice() {
                    [] => uri.clone(),
                    query => format!("{uri}{separator}{}", query.join("&")),
                });
            }
            Some(conninfo) if conninfo.contains('=') => parts.push(conninfo.clone()),
            Some(name) => parts.push(format!("dbname={}", quoted(name))),
            None if parts.is_empty() => return None,
            None => {}
        }
        Some(parts.join(" "))
    }

    fn initialization(&self, outside: &Outside<'_>) -> Vec<String> {
        let mut steps = self.init_steps.clone().unwrap_or_else(|| "dtgvp".to_owned());
        steps.retain(|step| step != ' ' && !(step == 'v' && self.no_vacuum));
        if self.foreign_keys && !steps.contains('f') {
            steps.push('f');
        }
        let mut words: Vec<String> = ["script", "initialize"].map(str::to_owned).into();
        words.push(format!("--steps={steps}"));
        words.extend(self.connection(outside).map(|connection| format!("--database={connection}")));
        let numbers = [
            ("scale", self.scale),
            ("fillfactor", self.fillfactor.map(u64::from)),
            ("partitions", self.partitions.map(u64::from)),
        ];
        words.extend(
            numbers.iter().filter_map(|(name, value)| Some(format!("--{name}={}", (*value)?))),
        );
        let texts = [
            ("partition-method", &self.partition_method),
            ("tablespace", &self.tablespace),
            ("index-tablespace", &self.index_tablespace),
        ];
        let texts = texts.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        words.extend(texts.map(|(name, value)| format!("--{name}={value}")));
        if self.unlogged_tables {
            words.push("--unlogged-tables".to_owned());
        }
        words
    }

    fn run(
        &self,
        matches: &ArgMatches,
        outside: &Outside<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Vec<String>, Refused> {
        let mut words: Vec<String> =
            ["--quiet", "run", "script", "--output=pgbench", "--warmup=0s", "--no-verify"]
                .map(str::to_owned)
                .into();
        words.push("--allow-no-success".to_owned());
        words.extend(self.connection(outside).map(|connection| format!("--database={connection}")));
        words.extend(self.scripts(matches));
        words.push(format!("--sessions={}", self.client));
        words.push(format!("--workers={}", self.jobs.min(self.client)));
        words.push(format!("--protocol={}", self.protocol));
        words.push(match self.time {
            Some(seconds) => format!("--duration={seconds}s"),
            None => format!("--transactions-per-session={}", self.transactions.unwrap_or(10)),
        });
        let retries = self.max_tries.checked_sub(1).unwrap_or(u32::MAX);
        words.push(format!("--max-retries={retries}"));
        words.push(
            match (self.exit_on_abort, self.continue_on_error) {
                (true, _) => "--on-error=stop",
                (_, true) => "--on-error=continue",
                _ => "--on-error=end-session",
            }
            .to_owned(),
        );
        self.limits(&mut words);
        self.outputs(&mut words);
        words.extend(self.define.iter().map(|pair| format!("--define={pair}")));
        let defines_scale = self.define.iter().any(|pair| pair.starts_with("scale="));
        if self.is_without_builtin() && !defines_scale {
            words.push(format!("--define=scale={}", self.scale.unwrap_or(1)));
        }
        if !self.no_vacuum {
            words.push(format!("--vacuum-first={}", if self.vacuum_all { "all" } else { "short" }));
        }
        if self.scale.is_some() && !self.is_without_builtin() {
            notices
                .push("scale option ignored, using count from pgbench_branches table".to_owned());
        }
        if let Some(seed) = self.seed(outside)? {
            notices.push(format!("setting random seed to {seed}"));
            words.push(format!("--seed={seed}"));
        }
        Ok(words)
    }

    /// The seed that was asked for; `None` for one that riops chooses.
    fn seed(&self, outside: &Outside<'_>) -> Result<Option<u64>, Refused> {
        let Some(seed) = self.random_seed.clone().or_else(|| (outside.variable)(SEED)) else {
            return Ok(None);
        };
        match seed.as_str() {
            "time" | "rand" => riops::host::random_seed().map(Some).map_err(|e| e.to_string()),
            seed => seed.parse().map(Some).map_err(|_| {
                format!(
                    "unrecognized random seed option \"{seed}\": expecting an unsigned integer, \"time\" or \"rand\""
                )
            }),
        }
    }

    fn limits(&self, words: &mut Vec<String>) {
        if let Some(rate) = self.rate {
            words.extend([format!("--rate={rate}"), "--poisson".to_owned()]);
        }
        if let Some(limit) = self.latency_limit {
            words.push(format!("--latency-limit={}us", (limit * 1e3).max(1.0).round()));
            if self.rate.is_some() {
                words.push("--skip-late".to_owned());
            }
        }
        if self.connect {
            words.push("--reconnect=1".to_owned());
        }
    }

    fn outputs(&self, words: &mut Vec<String>) {
        if let Some(seconds) = self.progress {
            words.extend([format!("--interval={seconds}s"), "--progress".to_owned()]);
        }
        if self.log {
            let prefix = self.log_prefix.as_deref().unwrap_or("pgbench_log");
            words.push(format!("--log={prefix}"));
        }
        words.extend(self.sampling_rate.map(|share| format!("--sampling-rate={share}")));
        words.extend(self.aggregate_interval.map(|each| format!("--aggregate-interval={each}")));
        let flags = [
            (self.progress_timestamp, "--progress-timestamp"),
            (self.report_per_command, "--report-per-command"),
            (self.failures_detailed, "--failures-detailed"),
            (self.allow_shell, "--allow-shell"),
        ];
        words.extend(flags.iter().filter(|(given, _)| *given).map(|(_, word)| (*word).to_owned()));
    }

    fn is_without_builtin(&self) -> bool {
        !self.file.is_empty()
            && self.builtin.is_empty()
            && self.skip_some_updates == 0
            && self.select_only == 0
    }

    /// The scripts in the order of the command line.
    fn scripts(&self, matches: &ArgMatches) -> Vec<String> {
        let mut scripts: Vec<(usize, String)> = Vec::new();
        let indices = |id: &str| matches.indices_of(id).into_iter().flatten().collect::<Vec<_>>();
        let named = |id: &str, names: &[String]| {
            let words = names.iter().map(|name| format!("--{id}={name}"));
            indices(id).into_iter().zip(words).collect::<Vec<_>>()
        };
        scripts.extend(named("builtin", &self.builtin));
        scripts.extend(named("file", &self.file));
        for (id, count, name) in [
            ("skip_some_updates", self.skip_some_updates, "simple-update"),
            ("select_only", self.select_only, "select-only"),
        ] {
            let first = indices(id).first().copied().unwrap_or_default();
            scripts.extend((0..count).map(|_| (first, format!("--builtin={name}"))));
        }
        scripts.sort_by_key(|(index, _)| *index);
        scripts.into_iter().map(|(_, word)| word).collect()
    }
}

fn refuse<T>(text: &str) -> Result<T, Refused> {
    Err(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let outside = Outside { variable: &|_| None, read: &|_| Err(String::new()) };
        translate(&arguments, &outside).map(|translation| match translation.meaning {
            Meaning::Commands(commands) | Meaning::Silent(commands) => commands[0].join(" "),
            Meaning::Text(text) | Meaning::Message(text) => text,
        })
    }

    #[test]
    fn a_run_has_the_defaults_of_pgbench() {
        assert_eq!(
            translated("").unwrap(),
            "--quiet run script --output=pgbench --warmup=0s --no-verify --allow-no-success --sessions=1 --workers=1 --protocol=simple --transactions-per-session=10 --max-retries=0 --on-error=end-session --vacuum-first=short"
        );
        let line = translated("-S -c 8 -j 4 -T 60 -M prepared -P 5 -r -n bench").unwrap();
        for word in [
            "--builtin=select-only",
            "--sessions=8",
            "--workers=4",
            "--duration=60s",
            "--interval=5s --progress",
            "--report-per-command",
            "--database=dbname=bench",
        ] {
            assert!(line.contains(word), "{word}: {line}");
        }
        assert!(!line.contains("--vacuum"), "{line}");
    }

    #[test]
    fn scripts_keep_their_order() {
        let line = translated("-f a.sql@2 -S -b tpcb@3 -f b.sql").unwrap();
        let order = "--file=a.sql@2 --builtin=select-only --builtin=tpcb@3 --file=b.sql";
        assert!(line.contains(order) && !line.contains("scale="), "{line}");
        assert!(translated("-f a.sql").unwrap().contains("--define=scale=1"));
        assert!(translated("-f a.sql -s 7").unwrap().contains("--define=scale=7"));
        assert!(!translated("-f a.sql -D scale=2").unwrap().contains("scale=1"));
    }

    #[test]
    fn connections_are_those_of_libpq() {
        let database = |line: &str| {
            let line = translated(line).unwrap();
            line.split(" --").find_map(|word| word.strip_prefix("database=")).map(str::to_owned)
        };
        assert_eq!(database("-n").as_deref(), None);
        assert_eq!(
            database("-h db -p 5 -U me x").as_deref(),
            Some("host=db port=5 user=me dbname=x")
        );
        assert_eq!(database("-p 5 host=db").as_deref(), Some("port=5 host=db"));
        let uri = database("-U me postgres://db/x").unwrap();
        assert_eq!(uri, "postgres://db/x?user=me");
        let uri = database("-U a&b postgres://db/x?port=1").unwrap();
        assert_eq!(uri, "postgres://db/x?port=1&user=a%26b");
    }

    #[test]
    fn only_a_connection_string_can_have_a_password() {
        let changed = |line: &str| {
            let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let secret = connection_with_password(&arguments)?;
            let [position] = secret.positions[..] else { panic!("{line}") };
            arguments[position] = secret.replacement.unwrap();
            Some((secret.value, arguments.join(" ")))
        };
        for (typed, shown) in [
            ("-n -d password=x -S", "-n -d (hidden) -S"),
            ("-dpassword=x -S", "-d(hidden) -S"),
            ("-Snd password=x", "-Snd (hidden)"),
            ("-Sndpassword=x", "-Snd(hidden)"),
            ("-d=password=x", "-d=(hidden)"),
            ("--dbn=password=x -S", "--dbn=(hidden) -S"),
            ("-S --dbname password=x", "-S --dbname (hidden)"),
            ("-D password=x password=x", "-D password=x (hidden)"),
            ("-D a=password=x -dpassword=x", "-D a=password=x -d(hidden)"),
        ] {
            assert_eq!(changed(typed), Some(("password=x".to_owned(), shown.to_owned())));
        }
        let uri = "postgres://a:b@db/x";
        let shown = Some((uri.to_owned(), "-S (hidden)".to_owned()));
        assert_eq!(changed(&format!("-S {uri}")), shown);
        assert_eq!(changed("-D password=x -f a.sql"), None);
    }

    #[test]
    fn announces_a_given_seed_and_an_ignored_scale() {
        let notices = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let outside = Outside { variable: &|_| None, read: &|_| Err(String::new()) };
            translate(&arguments, &outside).unwrap().notices
        };
        assert_eq!(notices("-n"), Vec::<String>::new());
        assert_eq!(notices("-f a.sql -s 5 --random-seed=7"), ["setting random seed to 7"]);
        assert!(notices("-S -s 5")[0].starts_with("scale option ignored"));
        assert!(notices("--random-seed rand")[0].starts_with("setting random seed to "));
    }

    #[test]
    fn initialization_has_the_steps_of_pgbench() {
        assert_eq!(translated("-i").unwrap(), "script initialize --steps=dtgvp");
        let line = translated("-i -s 10 -I dtpvGvv -n --foreign-keys --partitions 2").unwrap();
        assert_eq!(line, "script initialize --steps=dtpGf --scale=10 --partitions=2");
    }

    #[test]
    fn refuses_what_pgbench_refuses() {
        for line in [
            "-t 1 -T 1",
            "-i -c 2",
            "-F 50",
            "--max-tries=0",
            "--sampling-rate=0.1",
            "-l --sampling-rate=0.1 --aggregate-interval=1",
            "--progress-timestamp",
            "-i -I x",
            "-i --partition-method=hash",
            "-c 0",
            "-T 5 -l --aggregate-interval=2",
            "a b",
            "--random-seed=x",
            "-M binary",
            "--show-script=x",
            "-L 0",
            "--log-prefix=a",
            "-i -I=",
            "-i --verbose-errors",
        ] {
            assert!(translated(line).is_err(), "{line}");
        }
    }

    #[test]
    fn information_is_a_text() {
        assert!(
            translated("-b list").unwrap().contains("  tpcb-like: <builtin: TPC-B (sort of)>\n")
        );
        assert!(translated("--show-script=sel").unwrap().starts_with("-- select-only: <builtin"));
        assert!(translated("-V").unwrap().starts_with("pgbench (PostgreSQL) 18"));
    }
}
