//! Collects the options that commands in messages repeat.

use std::path::Path;

use riops::server::ConnInfo;
use riops::store::StoreLocation;

use crate::args::{
    Arguments, Command, EmbeddedOptions, Runs, ScriptCommand, Server, StoreOptions, TargetOptions,
};
use crate::hints::{Given, quoted};

/// Collects the options of a command.
pub(crate) fn given(arguments: &Arguments) -> Given {
    let environment = |name: &str| std::env::var(name).ok();
    let is_in_environment = ConnInfo::is_in_environment(environment);
    let (target, store) = match &arguments.command {
        Command::Prepare { workload } => (Some(&workload.options().options().target), None),
        Command::Run(run) => match &run.workload {
            Some(workload) => {
                let options = workload.options();
                (Some(options.target()), Some(&options.result_options().store))
            }
            None => (Some(&run.again.target), Some(&run.again.keep.store)),
        },
        Command::Sweep(sweep) => match &sweep.workload {
            Some(workload) => {
                let options = workload.options().run();
                (Some(options.target()), Some(&options.result_options().store))
            }
            None => (Some(&sweep.target), Some(&sweep.own.store)),
        },
        Command::Ab(options) => (Some(&options.target), Some(&options.store)),
        Command::Verify { workload } => {
            let (_, options) = workload.named();
            (Some(&options.target), Some(&options.store))
        }
        Command::Warm { workload } => (Some(workload.target()), None),
        Command::Cleanup { workload } => (Some(workload.named().1), None),
        Command::Runs { action } => match action {
            Runs::History(options) => (None, Some(&options.store)),
            Runs::Export(options) => (None, Some(&options.store)),
            Runs::Import(options) => (None, Some(&options.store)),
            Runs::List(options) => (None, Some(&options.store)),
            Runs::Tag(options) => (None, Some(&options.store)),
            Runs::Rm(options) => (None, Some(&options.store)),
            Runs::Show { store, .. } => (None, Some(store)),
            Runs::Rerun { again, .. } => (Some(&again.target), Some(&again.keep.store)),
        },
        Command::Compare(options) => (None, Some(&options.store)),
        Command::Report(options) => (None, Some(&options.store)),
        Command::Serve(options) => (None, Some(&options.store)),
        Command::Doctor(options) => (Some(&options.target), Some(&options.store)),
        Command::Script { command } => match command {
            ScriptCommand::Check(options) => (Some(&options.target), None),
            ScriptCommand::Initialize(options) => (Some(&options.target), None),
        },
        Command::Generate { .. }
        | Command::Sysbench(_)
        | Command::YsqlBench(_)
        | Command::Pgio(_)
        | Command::Pgbench(_) => (None, None),
        Command::Server { action } => {
            let embedded = of_action(action).map(embedded_text).unwrap_or_default();
            return Given { embedded, ..Given::default() };
        }
    };
    Given {
        server: target.map(|target| server_text(target, is_in_environment)).unwrap_or_default(),
        embedded: target.map(|target| embedded_text(&target.embedded)).unwrap_or_default(),
        store: store.map(store_text).unwrap_or_default(),
    }
}

fn of_action(action: &Server) -> Option<&EmbeddedOptions> {
    match action {
        Server::Start(server)
        | Server::Status(server)
        | Server::Stop { server, .. }
        | Server::Url { server, .. }
        | Server::Psql { server, .. }
        | Server::Reset { server, .. } => Some(server),
        Server::Keep => None,
    }
}

/// With `--database` or the `PG*` variables, the options of the embedded server have no effect.
fn server_text(options: &TargetOptions, is_in_environment: bool) -> String {
    match &options.database {
        Some(database) => {
            // The text of an invalid connection string may be a password.
            let shown = ConnInfo::without_password(database);
            format!(" -d {}", shown.map_or_else(|| "…".to_owned(), |shown| quoted(&shown)))
        }
        None if is_in_environment => String::new(),
        None => embedded_text(&options.embedded),
    }
}

fn embedded_text(options: &EmbeddedOptions) -> String {
    let single = [
        ("--server-dir", options.server_dir.as_deref().map(path_text)),
        ("--server-data", options.server_data.as_deref().map(path_text)),
        ("--server-user", options.server_user.clone()),
        ("--server-port", options.server_port.map(|port| port.to_string())),
        ("--cache-dir", options.cache_dir.as_deref().map(path_text)),
    ];
    let set = options.server_set.iter();
    let set = set.map(|(name, value)| ("--server-set", Some(format!("{name}={value}"))));
    single
        .into_iter()
        .chain(set)
        .filter_map(|(name, value)| Some(format!(" {name} {}", quoted(&value?))))
        .collect()
}

fn store_text(options: &StoreOptions) -> String {
    let Some(given) = options.given() else {
        return String::new();
    };
    let shown = match options.location() {
        // Without the password, and with the options of the text.
        Ok(StoreLocation::Postgresql(_)) | Err(_) => {
            given.to_str().and_then(ConnInfo::without_password)
        }
        Ok(StoreLocation::File(path)) => Some(path_text(&path)),
    };
    format!(" --store {}", shown.map_or_else(|| "…".to_owned(), |shown| quoted(&shown)))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn of(line: &[&str]) -> Given {
        given(&Arguments::try_parse_from([&["riops"], line].concat()).unwrap())
    }

    #[test]
    fn the_database_is_repeated_without_its_password() {
        let url = of(&["run", "rows", "-d", "postgresql://me:secret@h/db"]);
        assert_eq!(url.server, " -d 'postgresql://me:***@h/db'");
        let pairs = of(&["verify", "load", "-d", "host=h user=me"]);
        assert_eq!(pairs.server, " -d 'host=h user=me'");
        let invalid = of(&["cleanup", "rows", "-d", "host=h password=a b"]);
        assert_eq!(invalid.server, " -d …");
    }

    #[test]
    fn the_options_of_the_embedded_server_are_repeated_and_quoted_where_necessary() {
        let line = ["prepare", "rows", "--server-data", "/my data", "--server-set", "a=it's"];
        let embedded = of(&line);
        assert_eq!(embedded.embedded, " --server-data '/my data' --server-set 'a=it'\\''s'");
        let target = TargetOptions {
            database: Some("bench".to_owned()),
            embedded: EmbeddedOptions { server_port: Some(1), ..no_options() },
        };
        assert_eq!(server_text(&target, false), " -d bench");
        let target = TargetOptions { database: None, ..target };
        assert_eq!(server_text(&target, false), " --server-port 1");
        assert_eq!(server_text(&target, true), "");
    }

    fn no_options() -> EmbeddedOptions {
        EmbeddedOptions {
            server_dir: None,
            server_data: None,
            server_user: None,
            server_port: None,
            server_set: Vec::new(),
            cache_dir: None,
        }
    }

    #[test]
    fn the_store_is_repeated_without_its_password() {
        let store = |given: &str| of(&["runs", "list", "--store", given]).store;
        assert_eq!(store("my runs.sqlite"), " --store 'my runs.sqlite'");
        assert_eq!(store("postgresql://me:secret@h/db"), " --store 'postgresql://me:***@h/db'");
        assert_eq!(store("host=h password=a b"), " --store …");
    }
}
