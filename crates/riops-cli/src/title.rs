//! Keeps passwords out of the process title, which every user of the machine can read.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use riops::server::ConnInfo;

/// The variable that takes the place of `--database`.
const VARIABLE: &str = "RIOPS_DATABASE";

/// Where the command line holds a connection string with a password, starts riops anew in the same
/// process, with the string in the environment, which only its own user can read. Returns where
/// there is nothing to hide, or where it cannot be done.
pub(crate) fn hide_password(arguments: &[OsString]) {
    let Some((database, rest)) = without_database(arguments) else {
        return;
    };
    let Some(text) = database.to_str() else {
        return;
    };
    // What cannot be read here, without the files and variables that belong to it, may hold one.
    let is_harmless = ConnInfo::parse(text, |_| None).is_ok_and(|info| !info.has_password());
    if is_harmless {
        return;
    }
    if let (Ok(program), Some((name, rest))) = (std::env::current_exe(), rest.split_first()) {
        // Only an error returns; then it goes on as it is.
        let _ = Command::new(program).arg0(name).args(rest).env(VARIABLE, database).exec();
    }
}

/// The value of `--database` in all its forms, and the command line without it.
fn without_database(arguments: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let mut rest = Vec::new();
    let mut found = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == OsStr::new("--") {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
            break;
        }
        let text = word.to_str().unwrap_or_default();
        if matches!(text, "-d" | "--database") {
            found = words.next().cloned();
        } else if let Some(value) = text.strip_prefix("--database=") {
            found = Some(value.into());
        } else if text == "-qd" {
            rest.push("-q".into());
            found = words.next().cloned();
        } else if let Some(value) = text.strip_prefix("-d") {
            found = Some(value.strip_prefix('=').unwrap_or(value).into());
        } else {
            rest.push(word.clone());
        }
    }
    Some((found?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_found_in_all_forms_and_taken_out() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        for form in ["-d x=1", "-dx=1", "-d=x=1", "--database x=1", "--database=x=1"] {
            let (database, rest) =
                without_database(&words(&format!("riops run {form} -c 2"))).unwrap();
            assert_eq!(database, "x=1", "{form}");
            assert_eq!(rest, words("riops run -c 2"), "{form}");
        }
        let (_, rest) = without_database(&words("riops run -qd x=1 -c 2")).unwrap();
        assert_eq!(rest, words("riops run -q -c 2"));
        assert!(without_database(&words("riops server psql -- -d x")).is_none());
    }
}
