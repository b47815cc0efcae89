//! Keeps passwords and tokens out of the process title, which every user of the machine can read.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use riops::server::ConnInfo;
use riops::store::StoreLocation;

use crate::scan::CommandLine;

/// Whether a value may contain a secret.
type MayContainSecret = fn(&str) -> bool;

/// The options that may contain a secret, and their environment variables.
const OPTIONS: [(&str, &str, MayContainSecret); 4] = [
    ("database", "RIOPS_DATABASE", database_may_contain_password),
    ("store", "RIOPS_STORE", store_may_contain_password),
    ("token", "RIOPS_TOKEN", |_| true),
    ("metrics-token", "RIOPS_METRICS_TOKEN", |_| true),
];

/// If the command line contains a connection string with a password, executes riops again in the same
/// process, with the string in the environment, which only the same user can read. Returns if the command
/// line contains no password, or if the execution failed.
pub(crate) fn hide_password(line: &CommandLine) {
    let mut shorter: Option<CommandLine> = None;
    let mut hidden = Vec::new();
    for (name, variable, may_contain_password) in OPTIONS {
        if let Some((value, without)) = without_option(shorter.as_ref().unwrap_or(line), name)
            // A text that is not UTF-8 may contain a password.
            && value.to_str().is_none_or(may_contain_password)
        {
            hidden.push((variable, value));
            shorter = Some(CommandLine::scan(crate::args::built(), without));
        }
    }
    if let Some(shorter) = shorter {
        execute_again(shorter.arguments(), hidden);
    }
}

/// Executes riops again in the same process, with other arguments and some environment variables. Returns if the
/// execution failed: the command then runs with the password in the title.
pub(crate) fn execute_again(
    arguments: &[OsString],
    variables: impl IntoIterator<Item = (&'static str, impl AsRef<OsStr>)>,
) {
    if let (Ok(program), Some((name, rest))) = (std::env::current_exe(), arguments.split_first()) {
        let _ = Command::new(program).arg0(name).args(rest).envs(variables).exec();
    }
}

/// A string that cannot be parsed without service files and environment variables may contain a password.
fn database_may_contain_password(text: &str) -> bool {
    ConnInfo::parse(text, |_| None).map_or(true, |info| info.has_password())
}

fn store_may_contain_password(text: &str) -> bool {
    match StoreLocation::parse(text, |_| None) {
        Ok(StoreLocation::File(_)) => false,
        Ok(StoreLocation::Postgresql(info)) => info.has_password(),
        Err(_) => true,
    }
}

/// Returns the value of an option, and the command line without it. Also returns `None` if clap rejects the
/// command line, so that clap's message shows the original arguments.
fn without_option(line: &CommandLine, name: &str) -> Option<(OsString, Vec<OsString>)> {
    let mut uses = line.uses(name);
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
        without_option(&CommandLine::scan(crate::args::built(), words(line)), "database")
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
    fn a_store_is_hidden_only_if_it_may_contain_a_password() {
        for hidden in ["postgresql://me:secret@h/db", "host=h password=x", "host=h password=a b"] {
            assert!(store_may_contain_password(hidden), "{hidden}");
        }
        for shown in ["runs.sqlite", "/a:b@c/runs.sqlite", "postgresql://me@h/db", "host=h"] {
            assert!(!store_may_contain_password(shown), "{shown}");
        }
        let line = words("riops runs list --store x=1 --limit 3");
        let line = CommandLine::scan(crate::args::built(), line);
        let (store, rest) = without_option(&line, "store").unwrap();
        assert_eq!(store, "x=1");
        assert_eq!(rest, words("riops runs list --limit 3"));
    }

    #[test]
    fn tokens_are_always_hidden() {
        for (name, _, may_be_secret) in OPTIONS {
            assert_eq!(may_be_secret("anything"), name.ends_with("token"), "{name}");
        }
        let line = words("riops serve --store s --token=0123456789abcdef --allow-edit");
        let line = CommandLine::scan(crate::args::built(), line);
        let (token, rest) = without_option(&line, "token").unwrap();
        assert_eq!(token, "0123456789abcdef");
        assert_eq!(rest, words("riops serve --store s --allow-edit"));
    }
}
