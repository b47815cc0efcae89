//! Keeps passwords and tokens out of the process title, which every user of the machine can read.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use riops::server::ConnInfo;
use riops::store::StoreLocation;

use crate::options::variable;
use crate::scan::CommandLine;

/// The options that may contain a secret.
const OPTIONS: [&str; 4] = ["database", "store", "token", "metrics-token"];

/// If the command line contains a token, or a connection string with a password, executes riops again in the same
/// process, with the value in the environment, which only the same user can read. Returns if the command line
/// contains no secret, or if the execution failed.
pub(crate) fn hide_password(line: &CommandLine) {
    let secret = OPTIONS.into_iter().find_map(|long| {
        let (value, rest) = without(line, long)?;
        may_be_secret(long, &value).then_some((long, value, rest))
    });
    let Some((long, value, rest)) = secret else {
        return;
    };
    if let (Ok(program), Some((name, rest))) = (std::env::current_exe(), rest.split_first()) {
        // `exec` returns only on failure. The command then runs with the secret in the title. A second secret is
        // hidden by the new process.
        let _ = Command::new(program).arg0(name).args(rest).env(variable(long), value).exec();
    }
}

/// Whether the value of an option must be hidden. A connection string that cannot be parsed without service files and
/// environment variables may contain a password.
fn may_be_secret(long: &str, value: &OsStr) -> bool {
    if long.ends_with("token") {
        return true;
    }
    let has_no_password = |text: &str| match long {
        "store" => match StoreLocation::parse(text, |_| None) {
            Ok(StoreLocation::File(_)) => true,
            Ok(StoreLocation::Postgresql(info)) => !info.has_password(),
            Err(_) => false,
        },
        _ => ConnInfo::parse(text, |_| None).is_ok_and(|info| !info.has_password()),
    };
    // A path that is not UTF-8 is no connection string.
    value.to_str().map_or(long != "store", |text| !has_no_password(text))
}

/// Returns the value of an option, and the command line without it. Also returns `None` if clap rejects the command
/// line, so that clap's message shows the original arguments.
fn without(line: &CommandLine, long: &str) -> Option<(OsString, Vec<OsString>)> {
    let mut uses = line.uses(long);
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
        without(&CommandLine::scan(crate::args::command(), words(line)), "database")
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

    #[test]
    fn tokens_and_passwords_of_stores_are_secrets_but_not_paths() {
        for (long, value, is_secret) in [
            ("token", "anything", true),
            ("metrics-token", "anything", true),
            ("store", "/data/runs.sqlite", false),
            ("store", "postgresql://me@db/results", false),
            ("store", "postgresql://me:secret@db/results", true),
            ("database", "postgresql://me:secret@db/bench", true),
            ("database", "bench", false),
        ] {
            assert_eq!(may_be_secret(long, OsStr::new(value)), is_secret, "--{long} {value}");
        }
        let line = "riops serve --store s --token=0123456789abcdef --allow-edit";
        let (value, rest) =
            without(&CommandLine::scan(crate::args::command(), words(line)), "token").unwrap();
        assert_eq!(
            (value, rest),
            ("0123456789abcdef".into(), words("riops serve --store s --allow-edit"))
        );
    }
}
