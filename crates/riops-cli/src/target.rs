//! Which database: the one that was named, the one of the `PG*` variables, or the embedded one.

use anyhow::Result;
use riops::host::Interrupt;
use riops::server::embedded::{Embedded, Options};
use riops::server::{ConnInfo, Connection, Server};

use crate::args::{EmbeddedOptions, TargetOptions};
use crate::ui::Ui;

/// A database to work with. Where it is the embedded server, that server runs at least as long as
/// this value lives.
pub(crate) struct Target {
    pub(crate) conninfo: ConnInfo,
    pub(crate) embedded: Option<Embedded>,
}

impl Target {
    /// Finds the target and, where that is the embedded server, starts it.
    pub(crate) fn open(options: &TargetOptions, interrupt: &Interrupt, ui: Ui) -> Result<Self> {
        let environment = |name: &str| std::env::var(name).ok();
        let named = match &options.database {
            Some(text) => Some(ConnInfo::parse(text, environment)?),
            None if ConnInfo::is_in_environment(environment) => {
                Some(ConnInfo::from_environment(environment)?)
            }
            None => None,
        };
        if let Some(conninfo) = named {
            if options.embedded.names_a_server() {
                ui.notice("the options of the embedded server have no effect on a named database");
            }
            return Ok(Self { conninfo, embedded: None });
        }
        let embedded = embedded(&options.embedded, interrupt, ui)?;
        Ok(Self { conninfo: embedded.conninfo(), embedded: Some(embedded) })
    }

    /// The server, as the library takes it.
    pub(crate) fn server(&self) -> Server {
        Server { conninfo: self.conninfo.clone(), embedded: self.embedded.is_some() }
    }

    /// Names the target, and what its settings gave cause to say.
    pub(crate) fn announce(&self, ui: Ui) {
        ui.notice(&format!("target: {}", self.conninfo));
        for warning in &self.conninfo.warnings {
            ui.notice(&format!("warning: {warning}"));
        }
    }

    /// Says so where a connection is not encrypted though TLS was tried first.
    pub(crate) fn tell_encryption(connection: &Connection, ui: Ui) {
        if let Some(reason) = connection.plain_because() {
            ui.notice(&format!(
                "warning: the sessions are NOT encrypted (sslmode=prefer): {reason}"
            ));
        }
    }

    /// Ends the use of the target in good order.
    pub(crate) fn close(self) -> Result<()> {
        match self.embedded {
            Some(embedded) => Ok(embedded.leave()?),
            None => Ok(()),
        }
    }
}

/// Starts the embedded server, or joins those who use it.
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

/// The library's form of the options.
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
