//! The command line of pgbench 18.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use riops::plan::Drain;
use riops::plan::script::Builtin;
use riops::server::ConnInfo;
use riops::server::conninfo::Precedence;

use super::pgbench_errors::{as_pgbench, check_scripts, refuse};
use super::pgbench_options::{BENCHMARKING, CommandLine, INITIALIZATION, SCRIPTS};
use super::translation::{Meaning, Outside, Refused, Secret, Translated, Translation, Words};
use crate::options::PGBENCH_CONNECTION;

/// The variable with the random seed.
const SEED: &str = "PGBENCH_RANDOM_SEED";
const VARIABLE_OF_SEED: &str = "PGBENCH_RANDOM_SEED environment variable";
/// What the arguments contain instead of it.
const HIDDEN: &str = "(hidden)";

/// The options of a run that initialization accepts.
const IN_BOTH_MODES: [&str; 4] = ["allow_shell", "no_vacuum", "progress_timestamp", "scale"];

/// Returns the connection string among the arguments if it may contain a password.
pub(super) fn password(arguments: &[String]) -> Option<Secret> {
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
            variable: PGBENCH_CONNECTION,
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

/// Translates a command line.
pub(super) fn translate(arguments: &[String], outside: &Outside<'_>) -> Translated {
    let (line, matches) = match parsed(arguments) {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Meaning::Text(error.render().to_string()).without_notices());
        }
        Err(error) => {
            return Err(as_pgbench(&error));
        }
    };
    if line.version {
        let own = env!("CARGO_PKG_VERSION");
        let version = format!("pgbench (PostgreSQL) 18 (riops {own})\n");
        return Ok(Meaning::Text(version).without_notices());
    }
    if line.builtin.iter().any(|name| name == "list") {
        let names = Builtin::ALL
            .map(|builtin| format!("{:>15}: {}\n", builtin.name(), builtin.description()));
        let list = format!("Available builtin scripts:\n{}\n", names.concat());
        return Ok(Meaning::Message(list).without_notices());
    }
    if let Some(name) = &line.show_script {
        let builtin: Builtin = name.parse().map_err(|error| format!("{error}"))?;
        let (name, description) = (builtin.name(), builtin.description());
        let script = format!("-- {name}: {description}\n{}\n", builtin.text().trim_end());
        return Ok(Meaning::Message(script).without_notices());
    }
    line.check(&matches)?;
    if line.initialize {
        let words = line.initialization(outside);
        return Ok(Meaning::Commands(vec![words.0]).without_notices());
    }
    line.run(&matches, outside)
}

impl CommandLine {
    /// Refuses the combinations that pgbench refuses.
    fn check(&self, matches: &ArgMatches) -> Result<(), Refused> {
        let command = <Self as CommandFactory>::command();
        let is_given = |headings: &[&str]| {
            command.get_arguments().any(|arg| {
                let id = arg.get_id().as_str();
                arg.get_help_heading().is_some_and(|heading| headings.contains(&heading))
                    && !IN_BOTH_MODES.contains(&id)
                    && matches.value_source(id) == Some(ValueSource::CommandLine)
            })
        };
        if self.initialize && is_given(&[SCRIPTS, BENCHMARKING]) {
            return refuse(
                "some of the specified options cannot be used in initialization (-i) mode",
            );
        }
        if !self.initialize && is_given(&[INITIALIZATION]) {
            return refuse("some of the specified options cannot be used in benchmarking mode");
        }
        self.conflict().map_or(Ok(()), refuse)?;
        match (self.aggregate_interval, self.time) {
            (Some(interval), Some(all)) if interval > all => Err(format!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({all})"
            )),
            (Some(interval), Some(all)) if all % interval != 0 => Err(format!(
                "duration ({all}) must be a multiple of aggregation interval ({interval})"
            )),
            _ => Ok(()),
        }?;
        if let Some(pair) = self.define.iter().find(|pair| !pair.contains('=')) {
            return Err(format!("invalid variable definition: \"{pair}\""));
        }
        check_scripts(self)?;
        let Some(steps) = &self.init_steps else {
            return Ok(());
        };
        if steps.trim().is_empty() {
            return refuse("no initialization steps specified");
        }
        match steps.chars().find(|step| !"dtgGvpf ".contains(*step)) {
            Some(step) => Err(format!(
                "unrecognized initialization step \"{step}\": Allowed step characters are: \"dtgGvpf\"."
            )),
            None => Ok(()),
        }
    }

    /// Returns why a combination of options is refused.
    fn conflict(&self) -> Option<&'static str> {
        let is_limited = self.latency_limit.is_some() || self.time.is_some();
        Some(match () {
            () if self.dbname.is_some() && self.database.is_some() => {
                "too many command-line arguments: two database names"
            }
            () if self.transactions.is_some() && self.time.is_some() => {
                "specify either a number of transactions (-t) or a duration (-T), not both"
            }
            () if self.max_tries == 0 && !is_limited => {
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)"
            }
            () if self.sampling_rate.is_some_and(|share| !(share > 0.0 && share <= 1.0)) => {
                "invalid sampling rate"
            }
            () if !self.log && self.sampling_rate.is_some() => {
                "log sampling (--sampling-rate) is allowed only when logging transactions (-l)"
            }
            () if !self.log && self.aggregate_interval.is_some() => {
                "log aggregation is allowed only when actually logging transactions"
            }
            () if !self.log && self.log_prefix.is_some() => {
                "log file prefix (--log-prefix) is allowed only when logging transactions (-l)"
            }
            () if self.sampling_rate.is_some() && self.aggregate_interval.is_some() => {
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time"
            }
            () if self.progress_timestamp && self.progress.is_none() => {
                "--progress-timestamp is allowed only under --progress"
            }
            () if self.partition_method.is_some() && self.partitions.unwrap_or(0) == 0 => {
                "--partition-method requires greater than zero --partitions"
            }
            () if self.latency_limit.is_some_and(|limit| limit <= 0.0) => "invalid latency limit",
            () if self.rate.is_some_and(|rate| rate <= 0.0) => "invalid rate limit",
            () => return None,
        })
    }

    /// The name of the database, or the connection string.
    fn named(&self) -> Option<&String> {
        self.dbname.as_ref().or(self.database.as_ref())
    }

    /// Returns the connection string; `None` for the server that riops uses by default. As in pgbench, the settings in the
    /// string take precedence over the options. Without a database name, the name is the value of `PGDATABASE` or `PGUSER`, or
    /// the user of the operating system, regardless of the role and the service.
    fn connection(&self, outside: &Outside<'_>) -> Option<String> {
        let hidden = (outside.variable)(PGBENCH_CONNECTION);
        let given = [("host", &self.host), ("port", &self.port), ("user", &self.username)];
        let given: Vec<_> =
            given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
        let default = || {
            let is_selected = !given.is_empty() || ConnInfo::is_in_environment(outside.variable);
            let variable =
                || (outside.variable)("PGDATABASE").or_else(|| (outside.variable)("PGUSER"));
            is_selected
                .then(|| variable().unwrap_or_else(|| ConnInfo::default_user(outside.variable)))
        };
        let named = self.named().filter(|named| *named != HIDDEN).cloned().or(hidden);
        let named = named.filter(|named| !named.is_empty()).or_else(default)?;
        Some(ConnInfo::with_settings(&named, &given, Precedence::String))
    }

    fn initialization(&self, outside: &Outside<'_>) -> Words {
        let mut steps = self.init_steps.clone().unwrap_or_else(|| "dtgvp".to_owned());
        steps.retain(|step| step != ' ' && !(step == 'v' && self.no_vacuum));
        if self.foreign_keys && !steps.contains('f') {
            steps.push('f');
        }
        let mut words = Words::new("script initialize");
        words.set("steps", steps);
        words.set_some("database", self.connection(outside));
        words.set_some("scale", self.scale);
        words.set_some("fillfactor", self.fillfactor);
        words.set_some("partitions", self.partitions);
        words.set_some("partition-method", self.partition_method.as_ref());
        words.set_some("tablespace", self.tablespace.as_ref());
        words.set_some("index-tablespace", self.index_tablespace.as_ref());
        words.flag("unlogged-tables", self.unlogged_tables);
        words
    }

    fn run(&self, matches: &ArgMatches, outside: &Outside<'_>) -> Translated {
        let mut notices = Vec::new();
        let mut words = Words::new(
            "--quiet run script --output=pgbench --warmup=0s --no-verify --allow-no-success",
        );
        words.set_some("database", self.connection(outside));
        words.0.extend(self.scripts(matches));
        words.set("sessions", self.client);
        words.set("workers", self.jobs.min(self.client));
        words.set("protocol", &self.protocol);
        match self.time {
            Some(seconds) => {
                words.set("duration", format!("{seconds}s"));
                words.set("drain", Drain::CountedOnce);
            }
            None => words.set("transactions-per-session", self.transactions.unwrap_or(10)),
        }
        words.set("max-retries", self.max_tries.checked_sub(1).unwrap_or(u32::MAX));
        let on_error = match (self.exit_on_abort, self.continue_on_error) {
            (true, _) => "stop",
            (_, true) => "continue",
            _ => "end-session",
        };
        words.set("on-error", on_error);
        self.limits(&mut words);
        self.outputs(&mut words);
        for pair in &self.define {
            words.set("define", pair);
        }
        let defines_scale = self.define.iter().any(|pair| pair.starts_with("scale="));
        if self.is_without_builtin() && !defines_scale {
            words.set("define", format!("scale={}", self.scale.unwrap_or(1)));
        }
        if !self.no_vacuum {
            words.set("vacuum-first", if self.vacuum_all { "all" } else { "short" });
        }
        if self.scale.is_some() && !self.is_without_builtin() {
            let text =
                "pgbench: warning: scale option ignored, using count from pgbench_branches table";
            notices.push(text.to_owned());
        }
        if let Some(seed) = self.seed(outside)? {
            notices.push(format!("pgbench: setting random seed to {seed}"));
            words.set("seed", seed);
        }
        Ok(Translation { meaning: Meaning::Commands(vec![words.0]), notices })
    }

    /// The seed that was asked for; `None` for one that riops chooses.
    fn seed(&self, outside: &Outside<'_>) -> Result<Option<u64>, Refused> {
        let option = || self.random_seed.clone().map(|seed| (seed, "--random-seed option"));
        let variable = || Some(((outside.variable)(SEED)?, VARIABLE_OF_SEED));
        let Some((seed, source)) = option().or_else(variable) else {
            return Ok(None);
        };
        match seed.as_str() {
            "time" | "rand" => riops::host::random_seed().map(Some).map_err(|e| e.to_string()),
            seed => seed.parse().map(Some).map_err(|_| {
                format!(
                    "error while setting random seed from {source}: unrecognized random seed option \"{seed}\": Expecting an unsigned integer, \"time\" or \"rand\"."
                )
            }),
        }
    }

    fn limits(&self, words: &mut Words) {
        words.set_some("rate", self.rate);
        words.flag("poisson", self.rate.is_some());
        if let Some(limit) = self.latency_limit {
            words.set("latency-limit", format!("{}us", (limit * 1e3).max(1.0).round()));
            words.flag("skip-late", self.rate.is_some());
        }
        words.flag("reconnect=1", self.connect);
    }

    fn outputs(&self, words: &mut Words) {
        words.set_some("interval", self.progress.map(|seconds| format!("{seconds}s")));
        words.flag("progress", self.progress.is_some());
        if self.log {
            words.set("log", self.log_prefix.as_deref().unwrap_or("pgbench_log"));
        }
        words.set_some("sampling-rate", self.sampling_rate);
        words.set_some("aggregate-interval", self.aggregate_interval);
        words.flag("progress-timestamp", self.progress_timestamp);
        words.flag("report-per-command", self.report_per_command);
        let percentiles = self.latency_percentiles.as_deref().or(self.percentile.as_deref());
        words.set_some("latency-percentiles", percentiles);
        words.flag("failures-detailed", self.failures_detailed);
        // The script has the rights of the user who calls pgbench.
        words.flag("allow-shell", true);
        words.flag("verbose-errors", self.verbose_errors);
        words.flag("debug", self.debug);
    }

    fn is_without_builtin(&self) -> bool {
        !self.file.is_empty()
            && self.builtin.is_empty()
            && self.skip_some_updates == 0
            && self.select_only == 0
    }

    /// The scripts in the order of the command line.
    fn scripts(&self, matches: &ArgMatches) -> Vec<String> {
        let indices = |id: &str| matches.indices_of(id).into_iter().flatten();
        let builtin = self.builtin.iter().map(|name| format!("--builtin={name}"));
        let file = self.file.iter().map(|name| format!("--file={name}"));
        let flags = [
            ("skip_some_updates", self.skip_some_updates, "simple-update"),
            ("select_only", self.select_only, "select-only"),
        ];
        let of_flags = flags.into_iter().flat_map(|(id, count, name)| {
            let first = indices(id).next().unwrap_or_default();
            (0..count).map(move |_| (first, format!("--builtin={name}")))
        });
        let named = indices("builtin").zip(builtin).chain(indices("file").zip(file));
        let mut scripts: Vec<_> = named.chain(of_flags).collect();
        scripts.sort_by_key(|(index, _)| *index);
        scripts.into_iter().map(|(_, word)| word).collect()
    }
}

#[cfg(test)]
#[path = "pgbench_tests.rs"]
mod tests;
