//! The command lines of the tools that riops replaces. Each is translated into commands of riops.

mod pgbench;
mod pgbench_errors;
mod pgbench_options;
mod pgio;
mod sysbench;
mod sysbench_options;
mod translation;
mod ysql_bench;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use pgbench_errors::in_its_words;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use translation::{Meaning, Outside, Secret, Translated, Translation};

use crate::failure::{FAILED, INTERRUPTED, NOT_VALID, also_in_words_of};
use crate::ui::Ui;

/// A tool whose command line riops accepts.
pub(crate) struct Tool {
    name: &'static str,
    translate: fn(&[String], &Outside<'_>) -> Translated,
    /// Finds a password among the arguments.
    password: fn(&[String]) -> Option<Secret>,
    /// Returns what the tool says about an error of riops.
    words: fn(&str) -> Option<String>,
}

impl Tool {
    /// Returns the exit code of the tool for a failure of riops: 1, and in pgbench 2 if a client was aborted or the results
    /// are not valid. After an interruption, the exit code is riops's own.
    fn exit_code(&self, code: ExitCode) -> ExitCode {
        if code == ExitCode::from(INTERRUPTED) {
            code
        } else if self.name == PGBENCH && code == ExitCode::from(NOT_VALID) {
            ExitCode::from(2)
        } else {
            ExitCode::from(FAILED)
        }
    }
}

static TOOLS: [Tool; 4] = [
    Tool {
        name: "sysbench",
        translate: sysbench::translate,
        password: sysbench::password,
        words: sysbench::in_its_words,
    },
    Tool {
        name: "ysql-bench",
        translate: ysql_bench::translate,
        password: ysql_bench::password,
        words: |_| None,
    },
    Tool { name: "pgio", translate: pgio::translate, password: |_| None, words: |_| None },
    Tool {
        name: PGBENCH,
        translate: pgbench::translate,
        password: pgbench::password,
        words: in_its_words,
    },
];

const PGBENCH: &str = "pgbench";

/// The names under which riops is the tool, also with `riops-` before them, and the arguments that a name implies.
const NAMES: [(&str, &str, &[&str]); 8] = [
    ("pgbench", "pgbench", &[]),
    ("sysbench", "sysbench", &[]),
    ("ysql-bench", "ysql-bench", &[]),
    ("ysql_bench", "ysql-bench", &[]),
    ("pgio", "pgio", &[]),
    ("setup.sh", "pgio", &["setup"]),
    ("runit.sh", "pgio", &["run"]),
    ("csv_generator", "generate", &["csv"]),
];

/// Start of the names of links beside the tools themselves.
const PREFIX: &str = "riops-";

/// Inserts the subcommand into the arguments if the program was called by the name of a tool, for example through a
/// symbolic link.
pub(crate) fn named(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    let name =
        name.and_then(|name| name.to_str()).map(|name| name.strip_prefix(PREFIX).unwrap_or(name));
    let alias = name.and_then(|name| NAMES.iter().find(|(known, ..)| name == *known));
    if let Some((_, subcommand, implied)) = alias {
        let words = std::iter::once(subcommand).chain(implied.iter()).map(OsString::from);
        arguments.splice(1..1, words);
    }
    arguments
}

/// Returns the tool that the first argument names, and its arguments.
pub(crate) fn find_tool(arguments: &[OsString]) -> Option<(&'static Tool, &[OsString])> {
    let (name, own) = arguments.get(1..)?.split_first()?;
    Some((TOOLS.iter().find(|tool| name == tool.name)?, own))
}

/// Translates the arguments and executes the commands with `execute`, up to the first that fails.
pub(crate) fn run(
    tool: &Tool,
    arguments: &[OsString],
    ui: Ui,
    execute: impl Fn(Vec<OsString>) -> ExitCode,
) -> ExitCode {
    let unicode = |argument: &OsString| argument.to_str().map(str::to_owned);
    let Some(arguments) = arguments.iter().map(unicode).collect::<Option<Vec<_>>>() else {
        crate::ui::error("the arguments are not valid UTF-8");
        return ExitCode::from(FAILED);
    };
    hide_password(tool, &arguments);
    also_in_words_of(tool.words);
    let outside = Outside {
        variable: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        read: &|path| {
            text_limited(Path::new(path), TEXT_BYTES_MAX).map_err(|error| error.to_string())
        },
    };
    let Translation { meaning, notices } = match (tool.translate)(&arguments, &outside) {
        Ok(translation) => translation,
        Err(refused) => {
            crate::ui::error(&refused);
            return ExitCode::from(FAILED);
        }
    };
    for notice in notices {
        ui.notice(&notice);
    }
    let commands = match meaning {
        Meaning::Message(text) => {
            crate::ui::print_error(&text);
            return ExitCode::SUCCESS;
        }
        Meaning::Text(text) => {
            let Err(error) = crate::ui::print(&text) else {
                return ExitCode::SUCCESS;
            };
            crate::ui::error(&format!("{error:#}"));
            return ExitCode::from(FAILED);
        }
        Meaning::Silent(commands) => {
            crate::ui::discard_results();
            commands
        }
        Meaning::Commands(commands) => commands,
    };
    for command in commands {
        let words = std::iter::once("riops".to_owned()).chain(command).map(OsString::from);
        let code = execute(words.collect());
        if code != ExitCode::SUCCESS {
            return tool.exit_code(code);
        }
    }
    ExitCode::SUCCESS
}

/// If the arguments contain a password, executes riops again without it, with the password in the environment.
fn hide_password(tool: &Tool, arguments: &[String]) {
    let Some(Secret { variable, value, positions, replacement }) = (tool.password)(arguments)
    else {
        return;
    };
    let all: Vec<OsString> = std::env::args_os().collect();
    // The arguments of the tool are the last ones.
    let before = all.len() - arguments.len();
    let mut kept = Vec::new();
    for (position, word) in all.into_iter().enumerate() {
        let own = position.checked_sub(before);
        if own.is_none_or(|own| !positions.contains(&own)) {
            kept.push(word);
        } else if own == positions.last().copied() {
            kept.extend(replacement.clone().map(OsString::from));
        }
    }
    crate::title::execute_again(&kept, [(variable, value)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbolic_link_with_the_name_of_a_tool_is_the_tool() {
        let named = |line: &str| {
            let words = named(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named("/bin/sysbench cpu run"), "/bin/sysbench sysbench cpu run");
        assert_eq!(named("ysql_bench -o insert"), "ysql_bench ysql-bench -o insert");
        assert_eq!(named("./runit.sh"), "./runit.sh pgio run");
        assert_eq!(named("csv_generator -r 5"), "csv_generator generate csv -r 5");
        assert_eq!(named("/opt/riops run rows"), "/opt/riops run rows");
    }
}
