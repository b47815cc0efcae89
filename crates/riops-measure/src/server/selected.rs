//! The server that a command uses: given by its address, by the environment, or the embedded one.

use std::path::Path;

use super::conninfo::ConnInfoError;
use super::embedded::{Embedded, EmbeddedError, Options};
use super::{Changes, ConnInfo, ConnectionError, Server};
use crate::host::Interrupt;

/// Why a server could not be selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The address is not valid.
    #[error(transparent)]
    ConnInfo(#[from] ConnInfoError),
    /// The embedded server could not be started.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// A connection failed, or was interrupted.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Selects a server.
pub struct Selector<'a> {
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The program that becomes the keeper of the embedded server when it is called with `server keep`.
    pub keeper: &'a Path,
    /// Reads a password that is missing.
    pub ask: &'a dyn Fn(&mut ConnInfo) -> Result<(), ConnectionError>,
    /// Receives notices for the user.
    pub notify: &'a dyn Fn(&str),
    /// Ends the wait for the embedded server.
    pub interrupt: &'a Interrupt,
}

impl Selector<'_> {
    /// Selects the server of this address, otherwise the server of the `PG*` variables. If neither names one, starts
    /// the embedded server, or attaches to it.
    ///
    /// # Errors
    /// [`SelectError`] if the address is not valid, or the embedded server cannot be started.
    pub fn select(
        &self,
        database: Option<&str>,
        embedded: &Options,
    ) -> Result<Target, SelectError> {
        let Self { variable, keeper, ask, notify, interrupt } = self;
        let mut conninfo = match database {
            Some(text) => ConnInfo::parse(text, variable)?,
            None if ConnInfo::is_in_environment(variable) => ConnInfo::parse("", variable)?,
            None => {
                let embedded = Embedded::acquire(embedded, keeper, interrupt, notify)?;
                let conninfo = embedded.state().conninfo().with_session_variables(variable);
                return Ok(Target {
                    conninfo,
                    embedded: Some(embedded),
                    changes: Changes::default(),
                });
            }
        };
        ask(&mut conninfo)?;
        Ok(Target { conninfo, embedded: None, changes: Changes::default() })
    }
}

/// A selected server. The embedded one runs at least until this value is dropped.
#[derive(Debug)]
pub struct Target {
    /// Connection settings.
    pub conninfo: ConnInfo,
    /// The embedded server, if it was selected.
    pub embedded: Option<Embedded>,
    /// How its settings may be changed.
    pub changes: Changes,
}

impl Target {
    /// Returns the server of an address: a URL, `key=value` pairs, or the name of a database.
    ///
    /// # Errors
    /// [`SelectError`] if the address is not valid.
    pub fn at(address: &str) -> Result<Self, SelectError> {
        let conninfo = ConnInfo::parse(address, |name| std::env::var(name).ok())?;
        Ok(Self { conninfo, embedded: None, changes: Changes::default() })
    }

    /// Returns how to connect to it.
    pub fn server(&self) -> Server {
        Server {
            conninfo: self.conninfo.clone(),
            embedded: self.embedded.is_some(),
            changes: self.changes.clone(),
        }
    }

    /// Passes on the connection settings and the warnings about them.
    pub fn announce(&self, notify: &dyn Fn(&str)) {
        notify(&format!("target: {}", self.conninfo));
        for warning in &self.conninfo.warnings {
            notify(&format!("warning: {warning}"));
        }
    }

    /// Releases the embedded server and reports errors; dropping the value would ignore them.
    ///
    /// # Errors
    /// [`EmbeddedError`] if it cannot be released.
    pub fn close(self) -> Result<(), EmbeddedError> {
        self.embedded.map(Embedded::leave).transpose()?;
        Ok(())
    }
}
