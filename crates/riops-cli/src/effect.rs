//! Options that are set but have no effect together with the other options. riops refuses them and never ignores one.
//!
//! The environment and the file of `--config` serve several commands: an option that only another command has is not an
//! error. In the file, an option of another workload is an error.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use riops::plan::{OltpRun, OltpTest, WorkPlan};
use riops::report;
use riops::server::ConnInfo;

use crate::args::cells::SINGLE_RUN_ONLY;
use crate::options::{OptionNames, Origin, Values, settable, variable};
use crate::scan::CommandLine;

/// A command with the options that are set, and where they come from.
struct SetOptions<'a> {
    /// Names of the commands without `riops`, outermost first.
    path: &'a [&'a str],
    /// The innermost command, built.
    command: &'a Command,
    /// Its matches.
    matches: &'a ArgMatches,
    /// The values of the file of `--config`.
    file: &'a Values,
    /// The `PG*` variable that selects a server.
    server_variable: Option<&'static str>,
    /// Whether the command is a run of an experiment.
    is_cell: bool,
}

/// Where an option comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Typed,
    Environment,
    File,
}

/// Which sources a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    /// All of them: the result would contradict the option.
    All,
    /// The environment sets it for the commands that use it.
    NotEnvironment,
    /// Only an option of the command line is about this command alone.
    Typed,
}

/// Options that have no effect for a reason.
struct Rule {
    options: &'static [&'static str],
    sources: Sources,
    /// Returns the reason if it applies.
    reason: fn(&SetOptions<'_>) -> Option<String>,
}

const EMBEDDED: &[&str] =
    &["server-dir", "server-data", "server-user", "server-port", "server-set"];
const TARGET: &[&str] = &[
    "database",
    "server-dir",
    "server-data",
    "server-user",
    "server-port",
    "server-set",
    "cache-dir",
];

/// All rules. The first one that applies gives the error.
const RULES: &[Rule] = &[
    Rule { options: EMBEDDED, sources: Sources::All, reason: |set| set.other_server() },
    Rule {
        options: &["cache-dir"],
        sources: Sources::NotEnvironment,
        // It also contains the builds of commits.
        reason: |set| {
            set.other_server().filter(|_| !set.is_command("gate") && !set.is_command("bisect"))
        },
    },
    Rule {
        options: &SINGLE_RUN_ONLY,
        sources: Sources::All,
        reason: |set| {
            let is_experiment = set.is_command("sweep") || set.is_command("ab");
            (is_experiment && set.path.len() > 1 || set.is_cell)
                .then(|| "an experiment has several runs".to_owned())
        },
    },
    Rule {
        options: &["print-histogram"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            let forms = set.values("output");
            let has_histogram = |form: &str| {
                let form = form.split('=').next().unwrap_or_default();
                report::FORMS.iter().any(|known| known.name == form && known.has_histogram)
            };
            // If no form is printed, the text is.
            let is_printed = |form: &String| !form.contains('=') && form != "png";
            forms.iter().find(|form| is_printed(form))?;
            let form = forms.last().filter(|_| !forms.iter().any(|form| has_histogram(form)))?;
            Some(format!("--output {form} has no histogram"))
        },
    },
    Rule {
        options: &["details"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            for (option, reason) in [
                ("client", "--client prints everything"),
                ("disk", "--disk prints everything"),
                ("list", "--list has a line for each experiment"),
            ] {
                if set.source(option).is_some() {
                    return Some(reason.to_owned());
                }
            }
            if set.is_cell {
                return Some("it belongs to the command line, not to a cell".to_owned());
            }
            let is_sweep = set.is_command("sweep");
            if set.source("repeat").is_some() && !is_sweep && !set.is_command("ab") {
                return Some("--repeat prints a line for each run".to_owned());
            }
            if set.source("dry-run").is_some() && (is_sweep || set.is_command("ab")) {
                return Some("--dry-run has no result".to_owned());
            }
            let forms = set.values("output");
            let is_printed = |form: &&String| !form.contains('=') && *form != "png";
            let printed: Vec<&String> = forms.iter().filter(is_printed).collect();
            let form = printed.last().filter(|_| !printed.iter().any(|form| *form == "text"))?;
            Some(format!("--output {form} has its own contents"))
        },
    },
    Rule {
        options: &["metrics-token", "metrics-token-file"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            set.source("metrics-listen").is_none().then(|| "it requires --metrics-listen".into())
        },
    },
    Rule {
        options: &["repeat"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            let reason = "an A/B test ends when its result is certain: use --rounds-max";
            set.is_command("ab").then(|| reason.to_owned())
        },
    },
    Rule {
        options: &["restart", "trust"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            let has_settings = !set.values("setting").is_empty();
            (set.is_command("run") && set.path.len() > 1 && !has_settings)
                .then(|| "no --setting changes the server".to_owned())
        },
    },
    Rule {
        options: &["settle"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            if set.source("checkpoint").is_some() || set.source("vacuum").is_some() {
                return None;
            }
            match set.value("repeat").as_deref() {
                None => Some("it requires --repeat, --checkpoint or --vacuum".to_owned()),
                Some("1") => Some("--repeat 1 has no pause between runs".to_owned()),
                Some(_) => None,
            }
        },
    },
    Rule {
        options: &["output"],
        sources: Sources::Typed,
        reason: |set| {
            let is_planned = set.source("dry-run").is_some()
                && (set.is_command("sweep") || set.is_command("ab"));
            // The plan is JSON.
            let is_other = set.values("output").iter().any(|output| output != "json");
            let is_dumped = is_other && set.source("dump-plan").is_some();
            let reason = [
                (is_planned, "--dry-run has no result"),
                (is_dumped, "--dump-plan prints the plan"),
            ];
            reason.into_iter().find_map(|(applies, text)| applies.then(|| text.to_owned()))
        },
    },
    Rule {
        options: &["no-verify"],
        sources: Sources::Typed,
        reason: |set| {
            let workload = WorkPlan::default_of(set.path.get(1)?)?.traits();
            workload
                .dataset
                .is_none()
                .then(|| format!("the workload {} has no data that riops verifies", workload.name))
        },
    },
    Rule {
        options: &["failures-detailed"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            let has_report =
                set.values("output").iter().any(|output| output.starts_with("pgbench"));
            let is_shown = has_report || set.source("log").is_some();
            (!is_shown).then(|| "it requires --output pgbench or --log".to_owned())
        },
    },
    Rule {
        options: &["database-wide"],
        sources: Sources::NotEnvironment,
        reason: |set| {
            set.source("for").map(|_| "--for always shows the waits of all sessions".to_owned())
        },
    },
    Rule {
        options: TARGET,
        sources: Sources::Typed,
        reason: |set| {
            set.source("client")
                .filter(|_| set.is_command("doctor"))
                .map(|_| "--client measures this machine without a server".into())
        },
    },
    Rule {
        options: &["store"],
        sources: Sources::Typed,
        reason: |set| {
            (set.is_command("doctor") && set.source("disk").is_none())
                .then(|| "only the result of --disk is stored".into())
        },
    },
    Rule {
        options: TARGET,
        sources: Sources::Typed,
        reason: |set| set.source("offline").map(|_| "--offline uses no server".into()),
    },
    Rule {
        options: &["server-port", "server-set"],
        sources: Sources::Typed,
        reason: |set| {
            let starts = [["server", "start"], ["server", "restore"]];
            (set.is_command("server") && !starts.iter().any(|path| set.path == path))
                .then(|| "only a start of the server sets it".into())
        },
    },
    Rule {
        options: TARGET,
        sources: Sources::Typed,
        reason: |set| {
            set.source("list")
                .filter(|_| set.is_command("sweep"))
                .map(|_| "--list uses no server".into())
        },
    },
    Rule {
        options: &["trust", "fleet"],
        sources: Sources::Typed,
        reason: |set| {
            set.source("list")
                .filter(|_| set.is_command("sweep"))
                .map(|_| "--list runs nothing".into())
        },
    },
    Rule {
        options: &["database"],
        sources: Sources::Typed,
        reason: |set| {
            let has_files = set.path == ["runs", "import"] && set.source_of_id("files").is_some();
            has_files.then(|| "the files are imported".into())
        },
    },
    Rule {
        options: &["pgbench-column-7"],
        sources: Sources::Typed,
        reason: |set| {
            let format = set.value("from")?;
            (!["auto", "pgbench-log"].contains(&format.as_str()))
                .then(|| format!("results of {format} have no such column"))
        },
    },
];

/// An option that cannot have an effect.
pub(crate) enum WithoutEffect {
    /// Because of others, with the text of the error.
    Refused(String),
    /// Because the file does not set the option that it needs.
    Incomplete(clap::Error),
}

/// Fails if an option that is set cannot have an effect. `root` has parsed the command line.
///
/// # Errors
/// [`WithoutEffect`] for the first one.
pub(crate) fn require_effect(
    root: &mut Command,
    line: &CommandLine,
    matches: &ArgMatches,
    values: &Values,
    origin: Origin,
    is_cell: bool,
) -> Result<(), WithoutEffect> {
    let path = line.subcommands();
    let innermost = path.iter().try_fold(matches, |outer, name| outer.subcommand_matches(name));
    let command = path.iter().try_fold(&*root, |outer, name| outer.find_subcommand(name));
    let (Some(innermost), Some(command)) = (innermost, command) else {
        return Ok(());
    };
    let set = SetOptions {
        path: &path,
        command,
        matches: innermost,
        file: values,
        server_variable: ConnInfo::server_variable(|name| std::env::var(name).ok()),
        is_cell,
    };
    set.require_effect(origin).map_err(WithoutEffect::Refused)?;
    let words = set.words_of_file();
    require_complete_file(root, line, &words).map_err(WithoutEffect::Incomplete)
}

/// Fails if an option of the file has no effect without another one. clap gets the values of the file as defaults, which it
/// does not check. A conflict is not an error: the option that takes precedence replaces the value of the file.
fn require_complete_file(
    command: &mut Command,
    line: &CommandLine,
    words: &[OsString],
) -> Result<(), clap::Error> {
    if words.is_empty() {
        return Ok(());
    }
    let typed = line.arguments();
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (before, after) = typed.split_at_checked(end).unwrap_or((typed, &[]));
    match command.try_get_matches_from_mut([before, words, after].concat()) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Err(error),
        _ => Ok(()),
    }
}

impl SetOptions<'_> {
    /// Fails for the first option that has no effect.
    fn require_effect(&self, origin: Origin) -> Result<(), String> {
        let without_effect = RULES.iter().find_map(|rule| {
            let is_about = |source| match rule.sources {
                // The words of another tool were chosen by the translation.
                _ if origin == Origin::Translated && source == Source::Typed => false,
                Sources::All => true,
                Sources::NotEnvironment => source != Source::Environment,
                Sources::Typed => source == Source::Typed,
            };
            let (source, long) = rule.options.iter().copied().find_map(|long| {
                self.source(long).filter(|&source| is_about(source)).zip(Some(long))
            })?;
            let reason = (rule.reason)(self)?;
            Some(format!("{} has no effect: {reason}", name(source, long)))
        });
        match without_effect {
            Some(text) => Err(text),
            // The original tools accept all options for all tests.
            None if origin == Origin::Translated => Ok(()),
            None => {
                self.require_options_of_test().and_then(|()| self.require_options_of_workload())
            }
        }
    }

    /// Fails for a typed option of the workload `oltp` that its test does not use. The environment serves several tests.
    fn require_options_of_test(&self) -> Result<(), String> {
        if !matches!(self.path, ["run" | "sweep" | "ab", "oltp"]) {
            return Ok(());
        }
        let named = |id| self.matches.try_get_one::<OltpTest>(id).ok().flatten().copied();
        let test = named("test").or_else(|| named("named_test")).unwrap_or_default();
        let longs = self.command.get_arguments().filter_map(Arg::get_long);
        let mut unused = longs.filter(|long| !OltpRun::uses(test, long));
        match unused.find(|long| self.source(long) == Some(Source::Typed)) {
            Some(long) => Err(format!("--{long} has no effect on the test {test}")),
            None => Ok(()),
        }
    }

    /// Fails for an option of another workload in the file. The environment serves all commands.
    fn require_options_of_workload(&self) -> Result<(), String> {
        let [_, workload] = self.path else {
            return Ok(());
        };
        if !WorkPlan::executable_names().iter().any(|name| name == workload) {
            return Ok(());
        }
        let own = OptionNames::of_workload(Some(workload));
        let others = OptionNames::of_workload(None);
        match self.file.keys().find(|long| others.contains(long) && !own.contains(long)) {
            Some(long) => Err(format!(
                "{} has no effect: the workload {workload} has no option --{long}",
                name(Source::File, long)
            )),
            None => Ok(()),
        }
    }

    fn is_command(&self, command: &str) -> bool {
        self.path.first() == Some(&command)
    }

    /// Where the option with this long name was set; `None` also for a switch that is off.
    fn source(&self, long: &str) -> Option<Source> {
        let arg = self.command.get_arguments().find(|arg| arg.get_long() == Some(long))?;
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
        let is_on =
            || self.matches.try_get_one(arg.get_id().as_str()).is_ok_and(|on| on == Some(&true));
        if is_switch && !is_on() {
            return None;
        }
        match self.source_of_id(arg.get_id().as_str())? {
            ValueSource::CommandLine => Some(Source::Typed),
            ValueSource::EnvVariable => Some(Source::Environment),
            _ => self.file.contains_key(long).then_some(Source::File),
        }
    }

    fn source_of_id(&self, id: &str) -> Option<ValueSource> {
        self.matches.try_contains_id(id).ok().filter(|&is_set| is_set)?;
        self.matches.value_source(id)
    }

    /// The value of an option as it was typed, or its default.
    fn value(&self, long: &str) -> Option<String> {
        self.values(long).pop()
    }

    /// The values of an option, which may be its default.
    fn values(&self, long: &str) -> Vec<String> {
        let arg = self.command.get_arguments().find(|arg| arg.get_long() == Some(long));
        let values = arg.and_then(|arg| self.matches.get_raw(arg.get_id().as_str()));
        let values = values.into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect()
    }

    /// What selects another server than the embedded one.
    fn other_server(&self) -> Option<String> {
        self.command.get_arguments().find(|arg| arg.get_long() == Some("server-dir"))?;
        self.command.get_arguments().find(|arg| arg.get_long() == Some("database"))?;
        let by_option = self.source("database").map(|source| name(source, "database"));
        let by_variable = || self.server_variable.map(str::to_owned);
        let name = by_option.or_else(by_variable)?;
        Some(format!("{name} selects another server than the embedded one"))
    }

    /// The words of the values that come from the file, as if they had been typed.
    fn words_of_file(&self) -> Vec<OsString> {
        let from_file = |arg: &&Arg| {
            let long = arg.get_long().unwrap_or_default();
            !arg.is_global_set() && self.source(long) == Some(Source::File)
        };
        let words = |arg: &Arg| {
            let long = settable(arg).unwrap_or_default();
            let values = self.file.get(long).into_iter().flatten();
            let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
            let word = |value: &String| {
                if is_switch { format!("--{long}") } else { format!("--{long}={value}") }
            };
            values.map(word).map(OsString::from).collect::<Vec<_>>()
        };
        self.command.get_arguments().filter(from_file).flat_map(words).collect()
    }
}

/// How an option is named in an error.
fn name(source: Source, long: &str) -> String {
    match source {
        Source::Typed => format!("--{long}"),
        Source::Environment => variable(long),
        Source::File => format!("\"{long}\" in the configuration file"),
    }
}

#[cfg(test)]
#[path = "effect_tests.rs"]
mod tests;
