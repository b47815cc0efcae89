//! Keeps passwords out of the process title, which every user of the machine can read.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use riops::server::ConnInfo;

use crate::scan::CommandLine;

/// The environment variable of `--database`.
const VARIABLE: &str = "RIOPS_DATABASE";

/// If the command line contains a connection string with a password, executes riops again in the same
/// process, with the string in the environment, which only the same user can read. Returns if the command
/// line contains no password, or if the execution failed.
pub(crate) fn hide_password(line: &CommandLine) {
    let Some((database, rest)) = without_database(line) else {
        return;
    };
    // A string that cannot be parsed without service files and environment variables may contain a password.
    let is_harmless = database
        .to_str()
        .is_some_and(|text| ConnInfo::parse(text, |_| None).is_ok_and(|info| !info.has_password()));
    if is_harmless {
        return;
    }
    if let (Ok(program), Some((name, rest))) = (std::env::current_exe(), rest.split_first()) {
        // `exec` returns only on failure. The command then runs with the password in the title.
        let _ = Command::new(program).arg0(name).args(rest).env(VARIABLE, database).exec();
    }
}

/// Returns the value of `--database`, and the command line without it. Also returns `None` if clap rejects
/// the command line, so that clap's message shows the original arguments.
fn without_database(line: &CommandLine) -> Option<(OsString, Vec<OsString>)> {
    let mut uses = line.uses("database");
    let (option, None) = (uses.next()?, uses.next()) else {
        return None;
    };
    let value = option.value.clone().filter(|_| line.is_complete())?;
    Some((value, line.without(option)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn split(line: &str) -> Option<(OsString, Vec<OsString>)> {
        without_database(&CommandLine::scan(crate::args::command(), words(line)))
    }

    #[test]
    fn removes_the_database_in_every_form() {
        for (typed, rest) in [
            ("-d x=1 -c 2", "-c 2"),
            ("-dx=1 -c 2", "-c 2"),
            ("-d=x=1 -c 2", "-c 2"),
            ("--database x=1 -c 2", "-c 2"),
            ("--database=x=1 -c 2", "-c 2"),
            ("-qd x=1 -c 2", "-q -c 2"),
            ("-nd x=1 -c 2", "-n -c 2"),
            ("-nqdx=1 -c 2", "-nq -c 2"),
            ("-nd=x=1 -c 2", "-n -c 2"),
            ("-c2 -d x=1", "-c2"),
        ] {
            let (database, left) = split(&format!("riops run load {typed}")).unwrap();
            assert_eq!(database, "x=1", "{typed}");
            assert_eq!(left, words(&format!("riops run load {rest}")), "{typed}");
        }
    }

    #[test]
    fn does_not_change_a_command_line_that_clap_rejects() {
        for line in [
            "riops run load -d x=1 -d y=1",
            "riops run load -d x=1 --color blue",
            "riops run load --color -d x=1",
            "riops run load -d",
            "riops run load -d --quiet",
            "riops server start -d x=1",
            "riops -d x=1 run load",
        ] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn ignores_values_of_other_options_and_arguments_of_psql() {
        for line in ["riops server psql -- -d x=1", "riops run load --label=-d", "riops run load"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
