//! Keeps passwords and tokens out of the process title, which every user of the machine can read.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use riops::server::ConnInfo;
use riops::store::StoreLocation;

use crate::options::variable;
use crate::scan::CommandLine;
use crate::settings;

/// Whether a value may contain a secret.
type MayContainSecret = fn(&str) -> bool;

/// The options that may contain a secret.
const OPTIONS: [(&str, MayContainSecret); 4] = [
    // A string that cannot be parsed without service files and environment variables may contain a password.
    ("database", |text| {
        let has_password = |info: ConnInfo| info.has_password();
        ConnInfo::parse(text, |_| None).map_or(true, has_password)
            || ConnInfo::without_password(text).is_none_or(|shown| shown != text.trim())
    }),
    ("store", store_may_contain_password),
    ("token", |_| true),
    ("metrics-token", |_| true),
];

/// If the command line contains a secret, executes riops again in the same process, with the option in the
/// environment, which only the same user can read. Returns if the command line contains no secret, if it is rejected,
/// because the message is about the original arguments, or if the execution failed.
pub(crate) fn hide_password(line: &CommandLine) {
    let (hidden, rest) = without_secrets(line);
    if !hidden.is_empty() && line.is_accepted() && settings::is_valid(line) {
        execute_again(&rest, hidden.into_iter().map(|(name, value)| (variable(name), value)));
    }
}

/// Returns the options with secrets, and the command line without them.
fn without_secrets(line: &CommandLine) -> (Vec<(&'static str, OsString)>, Vec<OsString>) {
    let secret = |(name, may_contain_secret): (&'static str, MayContainSecret)| {
        let value = line.value(name)?;
        // A text that is not UTF-8 may contain a password.
        value.to_str().is_none_or(may_contain_secret).then_some((name, value))
    };
    let hidden: Vec<_> = OPTIONS.into_iter().filter_map(secret).collect();
    let rest = line.without(|long| hidden.iter().any(|(name, _)| *name == long));
    (hidden, rest)
}

/// Executes riops again in the same process, with other arguments and some environment variables. Returns if the
/// execution failed: the command then runs with the password in the title.
pub(crate) fn execute_again(
    arguments: &[OsString],
    variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
) {
    if let (Ok(program), Some((name, rest))) = (std::env::current_exe(), arguments.split_first()) {
        let _ = Command::new(program).arg0(name).args(rest).envs(variables).exec();
    }
}

fn store_may_contain_password(text: &str) -> bool {
    match StoreLocation::parse(text, |_| None) {
        Ok(StoreLocation::File(_)) => false,
        Ok(StoreLocation::Postgresql(info)) => info.has_password(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options with secrets, and the rest of the command line.
    fn split(line: &str) -> (Vec<(&'static str, OsString)>, String) {
        let line = CommandLine::read(line.split(' ').map(OsString::from).collect());
        if !line.is_accepted() {
            return (Vec::new(), String::new());
        }
        let (hidden, rest) = without_secrets(&line);
        let rest: Vec<_> = rest.iter().map(|word| word.to_str().unwrap()).collect();
        (hidden, rest.join(" "))
    }

    #[test]
    fn removes_the_database_in_every_form() {
        let url = "postgresql://u:p@h/d";
        for (typed, rest) in [
            ("-d URL -c 2", "--sessions=2"),
            ("-dURL -c 2", "--sessions=2"),
            ("-d=URL -c 2", "--sessions=2"),
            ("--database URL -c 2", "--sessions=2"),
            ("--database=URL -c 2", "--sessions=2"),
            ("-qd URL -c 2", "--quiet --sessions=2"),
            ("-nd URL -c 2", "--non-transactional --sessions=2"),
            ("-nqdURL -c 2", "--non-transactional --quiet --sessions=2"),
            ("-nd=URL -c 2", "--non-transactional --sessions=2"),
            ("-c2 -d URL", "--sessions=2"),
        ] {
            let (hidden, left) = split(&format!("riops run load {}", typed.replace("URL", url)));
            assert_eq!(hidden, [("database", url.into())], "{typed}");
            assert_eq!(left, format!("riops run load {rest}"), "{typed}");
        }
    }

    #[test]
    fn does_not_change_a_command_line_that_clap_rejects() {
        for line in [
            "riops run load -d URL -d URL",
            "riops run load -d URL --color blue",
            "riops run load --color -d URL",
            "riops run load -d",
            "riops run load -d --quiet",
            "riops server start -d URL",
            "riops -d URL run load",
        ] {
            assert_eq!(split(&line.replace("URL", "host=h password=x")).0, [], "{line}");
        }
    }

    #[test]
    fn ignores_values_of_other_options_and_arguments_of_psql() {
        for line in
            ["riops server psql -- -d password=x", "riops run load --label=-d", "riops run load"]
        {
            assert_eq!(split(line).0, [], "{line}");
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
        let (hidden, rest) = split("riops runs list --store postgresql://me:secret@h/db --limit 3");
        assert_eq!(hidden, [("store", "postgresql://me:secret@h/db".into())]);
        assert_eq!(rest, "riops runs list --limit=3");
    }

    #[test]
    fn tokens_are_always_hidden() {
        for (name, may_be_secret) in OPTIONS {
            assert_eq!(may_be_secret("anything"), name.ends_with("token"), "{name}");
        }
        let (hidden, rest) = split("riops serve --store s --token=0123456789abcdef --allow-edit");
        assert_eq!(hidden, [("token", "0123456789abcdef".into())]);
        assert_eq!(rest, "riops serve --store=s --allow-edit");
    }
}
