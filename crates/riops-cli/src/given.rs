//! Collects the options that commands in messages repeat.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use riops::server::ConnInfo;
use riops::store::StoreLocation;
use riops::units::text::shell_word;

use crate::args::{StoreOptions, TargetOptions};
use crate::hints::Given;

/// The options of the embedded server that only its start uses.
pub(crate) const OF_START: [&str; 2] = ["server_port", "server_set"];

/// Collects the options of the command that was matched by this command line.
pub(crate) fn given(root: &Command, matches: &ArgMatches) -> Given {
    let (mut command, mut matches) = (root, matches);
    while let Some((name, inner)) = matches.subcommand()
        && let Some(subcommand) = command.find_subcommand(name)
    {
        (command, matches) = (subcommand, inner);
    }
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let mut given = Given::default();
    if has("store") {
        let options = StoreOptions::from_arg_matches(matches);
        (given.store, given.omits_password) = options.as_ref().map(store_text).unwrap_or_default();
    }
    // Only these options start a server, the others name one.
    if !has("server_dir") {
        return given;
    }
    let (mut database, mut embedded, mut embedded_home) = (None, Vec::new(), Vec::new());
    for arg in TargetOptions::augment_args(Command::new("riops")).get_arguments() {
        let (id, long) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        let values = if has(id) { matches.get_raw(id) } else { None };
        for value in values.into_iter().flatten() {
            let text = value.to_string_lossy();
            if id == "database" {
                database = Some(text.clone());
            } else {
                let option = format!(" --{long} {}", shell_word(&text));
                if !OF_START.contains(&id) {
                    embedded_home.push(option.clone());
                }
                embedded.push(option);
            }
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            given.target.push(word);
        }
    }
    given.embedded = embedded.concat();
    given.embedded_home = embedded_home.concat();
    let is_in_environment = ConnInfo::is_in_environment(|name| std::env::var(name).ok());
    if has("database") {
        given.omits_password |= database.as_deref().is_some_and(has_password);
        given.server = server_text(database.as_deref(), &given.embedded, is_in_environment);
    }
    given
}

/// With `--database` or the `PG*` variables, no option of the embedded server is set.
fn server_text(database: Option<&str>, embedded: &str, is_in_environment: bool) -> String {
    match database {
        Some(database) => format!(" -d {}", typed_again(database)),
        None if is_in_environment => String::new(),
        None => embedded.to_owned(),
    }
}

/// Returns a connection string without its password, for a shell. An invalid one may be a password.
fn typed_again(text: &str) -> String {
    ConnInfo::to_type_again(text).map_or_else(|| "…".to_owned(), |shown| shell_word(&shown))
}

fn has_password(text: &str) -> bool {
    ConnInfo::to_type_again(text).is_some_and(|shown| shown != text.trim())
}

/// Returns the options that select the store, and whether they had a password.
fn store_text(options: &StoreOptions) -> (String, bool) {
    let Some(given) = options.given() else {
        return (String::new(), false);
    };
    if let Ok(StoreLocation::File(path)) = options.location() {
        return (format!(" --store {}", shell_word(&path.display().to_string())), false);
    }
    let text = given.to_string_lossy();
    (format!(" --store {}", typed_again(&text)), has_password(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Given {
        let words = [&["riops"], line].concat();
        let mut root = crate::args::command().clone();
        let matches = root.try_get_matches_from_mut(words).unwrap();
        given(&root, &matches)
    }

    #[test]
    fn the_database_is_repeated_without_its_password() {
        let url = parsed(&["run", "rows", "-d", "postgresql://me:secret@h/db"]);
        assert_eq!((&*url.server, url.omits_password), (" -d postgresql://me@h/db", true));
        let pairs = parsed(&["verify", "load", "-d", "host=h user=me"]);
        assert_eq!((&*pairs.server, pairs.omits_password), (" -d 'host=h user=me'", false));
        let invalid = parsed(&["cleanup", "rows", "-d", "host=h password=a b"]);
        assert_eq!(invalid.server, " -d …");
    }

    #[test]
    fn the_options_of_the_embedded_server_are_repeated_and_quoted_where_necessary() {
        let line = ["prepare", "rows", "--server-data", "/my data", "--server-set", "a=it's"];
        let embedded = parsed(&line);
        assert_eq!(embedded.embedded, " --server-data '/my data' --server-set 'a=it'\\''s'");
        assert_eq!(embedded.embedded_home, " --server-data '/my data'");
        assert_eq!(server_text(Some("bench"), " --server-port 1", false), " -d bench");
        assert_eq!(server_text(None, " --server-port 1", false), " --server-port 1");
        assert_eq!(server_text(None, " --server-port 1", true), "");
        let word = OsString::from("--server-set=a=it's");
        assert_eq!(embedded.target, ["--server-data=/my data".into(), word]);
    }

    #[test]
    fn the_database_of_an_import_is_not_the_server() {
        let import = parsed(&["runs", "import", "-d", "host=h", "--store", "s"]);
        assert_eq!((import.server, import.store), (String::new(), " --store s".to_owned()));
    }

    #[test]
    fn the_store_is_repeated_without_its_password() {
        let store = |given: &str| parsed(&["runs", "list", "--store", given]).store;
        assert_eq!(store("my runs.sqlite"), " --store 'my runs.sqlite'");
        assert_eq!(store("postgresql://me:secret@h/db"), " --store postgresql://me@h/db");
        assert_eq!(store("host=h password=a b"), " --store …");
    }
}
