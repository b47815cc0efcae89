//! Selects the server: `--database`, else the `PG*` environment variables, else the embedded server.

use std::path::Path;

use anyhow::Result;
use riops::dataset::{Access, missing_grants};
use riops::host::Interrupt;
use riops::record::Record;
use riops::run::RunError;
use riops::server::embedded::{Embedded, Options};
use riops::server::{ConnInfo, Connection, ConnectionError, Server};

use crate::args::{EmbeddedOptions, TargetOptions};
use crate::failure::Hint;
use crate::password::ask_if_missing;
use crate::ui::Ui;

/// The selected server. The embedded server runs at least until this value is dropped.
pub(crate) struct Target {
    pub(crate) conninfo: ConnInfo,
    pub(crate) embedded: Option<Embedded>,
}

impl Target {
    /// Selects the server. Starts the embedded server if no other one is specified.
    pub(crate) fn open(options: &TargetOptions, interrupt: &Interrupt, ui: Ui) -> Result<Self> {
        let environment = |name: &str| std::env::var(name).ok();
        let named = match &options.database {
            Some(text) => Some(ConnInfo::parse(text, environment)?),
            None if ConnInfo::is_in_environment(environment) => {
                Some(ConnInfo::from_environment(environment)?)
            }
            None => None,
        };
        if let Some(mut conninfo) = named {
            if options.embedded.selects_a_server() {
                ui.notice("the options of the embedded server are ignored: --database or the PG* variables select another server");
            }
            ask_if_missing(&mut conninfo, interrupt)?;
            return Ok(Self { conninfo, embedded: None });
        }
        let embedded = embedded(&options.embedded, interrupt, ui)?;
        Ok(Self { conninfo: embedded.conninfo(), embedded: Some(embedded) })
    }

    /// Returns the server in the library's form.
    pub(crate) fn server(&self) -> Server {
        Server { conninfo: self.conninfo.clone(), embedded: self.embedded.is_some() }
    }

    /// Prints the connection settings and the warnings about them.
    pub(crate) fn announce(&self, ui: Ui) {
        ui.notice(&format!("target: {}", self.conninfo));
        for warning in &self.conninfo.warnings {
            ui.notice(&format!("warning: {warning}"));
        }
    }

    /// Prints a notice if a stored run, which is about to be repeated, used another server or database.
    pub(crate) fn announce_another_server(&self, before: &Record, ui: Ui) {
        let (address, database) = (self.conninfo.address(), &self.conninfo.database);
        let stored = &before.target;
        // The port of an embedded server, and with it the name of its socket, may change at each start.
        let is_same_server = if stored.embedded && self.embedded.is_some() {
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
            ui.notice(&format!(
                "warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"
            ));
        }
    }

    /// Adds the statements that grant the missing privileges to an error, if the role lacks some.
    pub(crate) fn with_grants(&self, error: RunError, access: Access<'_>) -> anyhow::Error {
        let is_missing =
            error.connection_error().is_some_and(ConnectionError::is_privilege_missing);
        let grants = if is_missing { self.missing_grants(access) } else { Vec::new() };
        let error = anyhow::Error::from(error);
        if !allows(&grants, &format!("{error:#}")) {
            return error;
        }
        let hint = format!("have a superuser or the owner run: {}", grants.join("; "));
        error.context(Hint(hint))
    }

    /// The role cannot connect at all if it lacks the privilege to connect.
    fn missing_grants(&self, access: Access<'_>) -> Vec<String> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        match Connection::open(&self.conninfo, &Interrupt::new()) {
            Ok(mut connection) => missing_grants(&mut connection, access).unwrap_or_default(),
            Err(error) if error.is_privilege_missing() => {
                let (database, user) = (&self.conninfo.database, &self.conninfo.user);
                vec![format!("grant connect on database {} to {}", quoted(database), quoted(user))]
            }
            Err(_) => Vec::new(),
        }
    }

    /// Releases the embedded server and reports errors; dropping the value would ignore them.
    pub(crate) fn close(self) -> Result<()> {
        match self.embedded {
            Some(embedded) => Ok(embedded.leave()?),
            None => Ok(()),
        }
    }
}

/// Whether the grants contain the object of this error. It may be about another one, or about no object.
fn allows(grants: &[String], error: &str) -> bool {
    let Some((_, object)) = error.split_once("permission denied for ") else {
        return false;
    };
    let object = object.split(" (SQLSTATE").next().unwrap_or(object);
    let name = object.split_once(' ').map_or(object, |(_kind, name)| name).trim_matches('"');
    let is_separator = |each: char| !(each.is_alphanumeric() || "_$".contains(each));
    grants.iter().any(|grant| grant.split(is_separator).any(|word| word == name))
}

/// Returns the schema of the tables, if the dataset names one.
pub(crate) fn schema_of(parameters: &serde_json::Value) -> Option<String> {
    parameters.get("schema")?.as_str().map(str::to_owned)
}

/// Starts the embedded server, or attaches to it if it is running.
pub(crate) fn embedded(
    options: &EmbeddedOptions,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<Embedded> {
    let keeper = std::env::current_exe()?;
    Ok(Embedded::acquire(&embedded_options(options), &keeper, interrupt, &|notice| {
        ui.notice(notice);
    })?)
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
