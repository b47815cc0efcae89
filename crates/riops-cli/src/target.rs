//! Selects the server: `--database`, else the `PG*` environment variables, else the embedded server.

use std::path::{Path, PathBuf};

use anyhow::Result;
use riops::dataset::{Access, missing_grants};
use riops::host::Interrupt;
use riops::record::Record;
use riops::run::RunError;
use riops::server::embedded::{Embedded, Options};
use riops::server::{ConnInfo, Connection, ConnectionError, SelectError, Selector, Target};
use riops::study::ServerChoice;
use riops::units::sql::identifier;

use crate::args::{EmbeddedOptions, TargetOptions};
use crate::failure::{Hint, select_error};
use crate::terminal::ask_if_missing;
use crate::ui::Ui;

/// Selects and announces the server.
pub(crate) fn open(options: &TargetOptions, ui: Ui) -> Result<Target> {
    let target = select(options, ui).map_err(select_error)?;
    target.announce(&|text| ui.notice(text));
    Ok(target)
}

/// Selects the server. Starts the embedded server if no other one is specified.
pub(crate) fn select(options: &TargetOptions, ui: Ui) -> Result<Target, SelectError> {
    let selector = Selector {
        variable: &|name: &str| std::env::var(name).ok(),
        keeper: &keeper(),
        ask: &|conninfo: &mut ConnInfo| ask_if_missing(conninfo, ui.interrupt),
        notify: &|text| ui.notice(text),
        interrupt: ui.interrupt,
    };
    selector.select(options.database.as_deref(), &embedded_options(&options.embedded))
}

/// This program, which is also the keeper of the embedded server.
fn keeper() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "riops".into())
}

/// Prints a notice if a stored run, which is about to be repeated, used another server or database.
pub(crate) fn announce_another_server(target: &Target, before: &Record, ui: Ui) {
    let (address, database) = (target.conninfo.address(), &target.conninfo.database);
    let stored = &before.target;
    // The port of an embedded server, and with it the name of its socket, may change at each start.
    let is_same_server = if stored.embedded && target.embedded.is_some() {
        Path::new(&address).parent() == Path::new(&stored.address).parent()
    } else {
        address == stored.address
    };
    if !is_same_server || *database != stored.database {
        ui.notice(&format!(
            "warning: the stored run used database {} on {}, this run uses database {database} on {address}; \
             select the server with --database",
            stored.database, stored.address
        ));
    }
}

/// Prints a warning if a connection is not encrypted although TLS was tried first.
pub(crate) fn warn_if_unencrypted(connection: &Connection, ui: Ui) {
    if let Some(reason) = connection.unencrypted_reason() {
        ui.notice(&format!("warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"));
    }
}

/// Adds the statements that grant the missing privileges to an error, if the role lacks some.
pub(crate) fn with_grants(target: &Target, error: RunError, access: Access<'_>) -> anyhow::Error {
    let is_missing = error.connection_error().is_some_and(ConnectionError::is_privilege_missing);
    let grants = if is_missing { grants_for(&target.conninfo, access) } else { Vec::new() };
    let error = anyhow::Error::from(error);
    if !is_about(&format!("{error:#}"), &grants) {
        return error;
    }
    let hint = format!("have a superuser or the owner run: {}", grants.join("; "));
    error.context(Hint(hint))
}

/// The role cannot connect at all if it lacks the privilege to connect.
fn grants_for(conninfo: &ConnInfo, access: Access<'_>) -> Vec<String> {
    match Connection::open(conninfo, &Interrupt::new()) {
        Ok(mut connection) => missing_grants(&mut connection, access).unwrap_or_default(),
        Err(error) if error.is_privilege_missing() => {
            let (database, user) = (&conninfo.database, &conninfo.user);
            vec![format!(
                "grant connect on database {} to {}",
                identifier(database),
                identifier(user)
            )]
        }
        Err(_) => Vec::new(),
    }
}

/// Whether an error names an object of these grants. It may be about another object, or about none.
fn is_about(error: &str, grants: &[String]) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || "_$".contains(character);
    let names = |object: &str| {
        let name = object.rsplit_once(['.', ' ']).map_or(object, |(_, name)| name);
        let name = object
            .strip_suffix('"')
            .and_then(|rest| rest.rsplit_once('"'))
            .map_or(name, |(_, name)| name);
        error.match_indices(name).any(|(at, _)| {
            let before = error.get(..at).unwrap_or_default();
            let after = error.get(at + name.len()..).unwrap_or_default();
            !before.ends_with(is_name) && !after.starts_with(is_name)
        })
    };
    // grant select on riops.dataset, riops.run to "some one"
    let objects = |grant: &String| {
        let (_, rest) = grant.split_once(" on ")?;
        let (objects, _role) = rest.rsplit_once(" to ")?;
        Some(objects.split(", ").any(names))
    };
    grants.iter().filter_map(objects).any(|is_named| is_named)
}

/// Returns the schema of the tables, if the dataset names one.
pub(crate) fn schema_of(parameters: &serde_json::Value) -> Option<String> {
    parameters.get("schema")?.as_str().map(str::to_owned)
}

/// Starts the embedded server, or attaches to it if it is running.
pub(crate) fn embedded(options: &EmbeddedOptions, ui: Ui) -> Result<Embedded> {
    Ok(Embedded::acquire(&embedded_options(options), &keeper(), ui.interrupt, &|notice| {
        ui.notice(notice);
    })?)
}

/// The options of the embedded server of an experiment.
pub(crate) fn embedded_of(choice: &ServerChoice) -> EmbeddedOptions {
    EmbeddedOptions {
        server_dir: choice.server_dir.clone(),
        server_data: choice.server_data.clone(),
        server_user: choice.server_user.clone(),
        server_port: choice.server_port,
        server_set: choice.settings.clone(),
        cache_dir: choice.cache_dir.clone(),
    }
}

/// Converts the options into the library's form.
pub(crate) fn embedded_options(options: &EmbeddedOptions) -> Options {
    Options {
        server_dir: options.server_dir.clone(),
        data: options.server_data.clone(),
        cache: options.cache_dir.clone(),
        user: options.server_user.clone(),
        port: options.server_port,
        address: None,
        settings: options.server_set.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_about_an_error_if_they_contain_its_object() {
        let grants = [
            "grant connect on database \"bench-db\" to \"my user\"".to_owned(),
            "grant usage on schema riops to me".to_owned(),
            "grant select on riops.dataset, \"Other schema\".\"my table\" to me".to_owned(),
        ];
        for named in ["database \"bench-db\"", "schema riops", "table dataset", "table my table"] {
            for text in ["permission denied for", "keine Berechtigung für"] {
                assert!(is_about(&format!("{text} {named} (SQLSTATE 42501)"), &grants), "{named}");
            }
        }
        for other in ["table pgbench_branches", "table dataset_2", "to create database", "user me"]
        {
            assert!(!is_about(&format!("permission denied for {other}"), &grants), "{other}");
        }
    }
}
