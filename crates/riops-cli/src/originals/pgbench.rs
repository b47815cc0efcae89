//! The command line of pgbench 18.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use riops::plan::script::Builtin;
use riops::units::conninfo;

use super::pgbench_errors::{as_pgbench, check_scripts, refuse};
use super::pgbench_options::{BENCHMARKING, CommandLine, INITIALIZATION, SCRIPTS};
use super::translation::{Meaning, Outside, Refused, Secret, Translation};
use crate::failure::{FAILED, INTERRUPTED, NOT_VALID};
use crate::options::PGBENCH_CONNECTION;

/// The variable with the random seed.
const SEED: &str = "PGBENCH_RANDOM_SEED";
/// What the arguments contain instead of it.
const HIDDEN: &str = "(hidden)";

/// The options of a run that initialization accepts.
const IN_BOTH_MODES: [&str; 4] = ["allow_shell", "no_vacuum", "progress_timestamp", "scale"];

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
pub(super) fn translate(
    arguments: &[String],
    outside: &Outside<'_>,
) -> Result<Translation, Refused> {
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
        let names =
            Builtin::ALL.map(|each| format!("{:>15}: {}\n", each.name(), each.description()));
        let list = format!("Available builtin scripts:\n{}\n", names.concat());
        return Ok(Meaning::Message(list).without_notices());
    }
    if let Some(name) = &line.show_script {
        let found: Builtin = name.parse().map_err(|error| format!("{error}"))?;
        let (name, description) = (found.name(), found.description());
        let script = format!("-- {name}: {description}\n{}\n", found.text().trim_end());
        return Ok(Meaning::Message(script).without_notices());
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
        if let Some((_, text)) = self.conflicts().iter().find(|(refused, _)| *refused) {
            return refuse(text);
        }
        if let (Some(each), Some(all)) = (self.aggregate_interval, self.time)
            && (each > all || all % each != 0)
        {
            return refuse(&if each > all {
                format!(
                    "number of seconds for aggregation ({each}) must not be higher than test duration ({all})"
                )
            } else {
                format!("duration ({all}) must be a multiple of aggregation interval ({each})")
            });
        }
        if let Some(pair) = self.define.iter().find(|pair| !pair.contains('=')) {
            return refuse(&format!("invalid variable definition: \"{pair}\""));
        }
        // Those of -S and -N have the weight 1.
        let others = usize::from(self.select_only) + usize::from(self.skip_some_updates);
        check_scripts(&self.builtin, &self.file, others)?;
        if self.init_steps.as_deref().is_some_and(|steps| steps.trim().is_empty()) {
            return refuse("no initialization steps specified");
        }
        let steps = self.init_steps.as_deref().unwrap_or_default();
        match steps.chars().find(|step| !"dtgGvpf ".contains(*step)) {
            Some(step) => refuse(&format!(
                "unrecognized initialization step \"{step}\": Allowed step characters are: \"dtgGvpf\"."
            )),
            None => Ok(()),
        }
    }

    /// Combinations of options, with the reason why they are refused.
    fn conflicts(&self) -> [(bool, &'static str); 12] {
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
                self.sampling_rate.is_some_and(|share| !(share > 0.0 && share <= 1.0)),
                "invalid sampling rate",
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
        let hidden = (outside.variable)(PGBENCH_CONNECTION);
        let named = self.named().filter(|named| *named != HIDDEN).or(hidden.as_ref());
        let options = [("host", &self.host), ("port", &self.port), ("user", &self.username)];
        let options: Vec<(&str, &String)> =
            options.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?))).collect();
        let mut parts: Vec<String> =
            options.iter().map(|(name, value)| conninfo::pair(name, value)).collect();
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
            Some(name) => parts.push(conninfo::pair("dbname", name)),
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
                    "error while setting random seed from --random-seed option: unrecognized random seed option \"{seed}\": Expecting an unsigned integer, \"time\" or \"rand\"."
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
            // The script has the rights of the user who calls pgbench.
            (true, "--allow-shell"),
            (self.verbose_errors, "--verbose-errors"),
            (self.debug, "--debug"),
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

#[cfg(test)]
#[path = "pgbench_tests.rs"]
mod tests;
