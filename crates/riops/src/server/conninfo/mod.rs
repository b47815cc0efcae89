//! Where a target is, who connects, and how: everything that libpq takes, in all its forms.
//!
//! The order is libpq's: connection string, service file, `PG*` variables, defaults; the password
//! file last. What is not understood is an error, never ignored, and no error shows a password.
//! The settings are those of "Parameter Key Words" in the chapter "libpq" of PostgreSQL's manual.

mod error;
mod files;
mod options;
mod server;
mod sources;
mod text;
mod values;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use riops_wire::auth::{AuthPolicy, Method};
use riops_wire::startup::Credentials;

pub use error::ConnInfoError;
pub use options::{Keepalive, SessionAttrs};
pub use server::{DEFAULT_PORT, Host, Server};

use super::tls::{self, SslMode};
use files::PasswordFile;
use options::{ChannelBinding, NO_KEEPALIVE};
use sources::{fill_in, password_of};
use text::Settings;
use values::{
    CONNECT_TIMEOUT, channel_binding, connect_timeout, keepalive, load_balance,
    refuse_what_is_not_offered, required_methods, servers, session_attrs, tls_settings,
};

/// Everything that is needed to connect.
#[derive(Clone)]
pub struct ConnInfo {
    /// The servers in the order given; never empty.
    pub servers: Vec<Server>,
    /// The role.
    pub user: String,
    password: Option<String>,
    /// The database.
    pub database: String,
    /// What the server shows as the session's program, where the user decided.
    pub application_name: Option<String>,
    options: Option<String>,
    /// How long connecting to one server may take.
    pub connect_timeout: Duration,
    /// When TLS is used.
    pub ssl_mode: SslMode,
    /// How; `None` where TLS is never used.
    pub tls: Option<Arc<tls::Tls>>,
    allowed: Option<Vec<Method>>,
    cleartext_by_name: bool,
    binding: ChannelBinding,
    /// What the server has to be.
    pub session_attrs: SessionAttrs,
    /// Whether the servers, and the addresses of each, are tried in a random order.
    pub load_balance: bool,
    /// For TCP connections.
    pub keepalive: Keepalive,
    /// What the user should hear of, though it prevents nothing.
    pub warnings: Vec<String>,
}

impl fmt::Debug for ConnInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ConnInfo({self})")
    }
}

impl fmt::Display for ConnInfo {
    /// What people recognize the target by; never the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "database {} on {}", self.database, self.address())
    }
}

impl ConnInfo {
    /// Reads a URL, a `key=value` string or the name of a database; what it leaves out comes from
    /// the service file, from the `PG*` variables that `environment` answers, from the defaults.
    ///
    /// # Errors
    /// [`ConnInfoError`]
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        Self::from_settings(text::parse(text)?, &environment)
    }

    /// Takes everything from the `PG*` variables that `environment` answers.
    ///
    /// # Errors
    /// [`ConnInfoError`]
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        Self::from_settings(Settings::new(), &environment)
    }

    /// Whether the `PG*` variables name a target at all.
    #[must_use]
    pub fn is_in_environment(environment: impl Fn(&str) -> Option<String>) -> bool {
        ["PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE"]
            .iter()
            .any(|name| environment(name).is_some_and(|value| !value.is_empty()))
    }

    /// A connection through the socket in `folder`.
    #[must_use]
    pub fn unix(folder: &Path, port: u16, user: &str, database: &str) -> Self {
        Self {
            servers: vec![Server {
                host: Host::Unix(folder.to_owned()),
                address: None,
                port,
                password: None,
            }],
            user: user.to_owned(),
            password: None,
            database: database.to_owned(),
            application_name: None,
            options: None,
            connect_timeout: CONNECT_TIMEOUT,
            ssl_mode: SslMode::Disable,
            tls: None,
            allowed: None,
            cleartext_by_name: false,
            binding: ChannelBinding::Prefer,
            session_attrs: SessionAttrs::Any,
            load_balance: false,
            keepalive: NO_KEEPALIVE,
            warnings: Vec::new(),
        }
    }

    /// The same settings for another server, whose password is that of the first.
    pub(super) fn at(&self, host: &str, port: u16) -> Self {
        let password = self.servers.first().and_then(|server| server.password.clone());
        let server = Server { host: Host::Tcp(host.to_owned()), address: None, port, password };
        Self { servers: vec![server], load_balance: false, ..self.clone() }
    }

    /// The addresses, for messages: the socket's file, or host and port.
    #[must_use]
    pub fn address(&self) -> String {
        self.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Whether the servers run on this machine, as far as the addresses tell.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.servers.iter().all(Server::is_local)
    }

    /// Whether a password is part of the settings; one of the password file is not.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// What the startup message to `server` needs, given what TLS made sure of.
    #[must_use]
    pub fn credentials(
        &self,
        server: &Server,
        encrypted: bool,
        server_end_point: Option<Vec<u8>>,
    ) -> Credentials {
        let program = self.application_name.clone().unwrap_or_else(|| "riops".to_owned());
        let mut settings = vec![("application_name".to_owned(), program)];
        if let Some(options) = &self.options {
            settings.push(("options".to_owned(), options.clone()));
        }
        let on_this_machine = matches!(server.host, Host::Unix(_));
        Credentials {
            user: self.user.clone(),
            password: self.password.clone().or_else(|| server.password.clone()),
            database: self.database.clone(),
            settings,
            policy: AuthPolicy {
                allowed: self.allowed.clone(),
                cleartext: encrypted || on_this_machine || self.cleartext_by_name,
                binding_required: self.binding == ChannelBinding::Require,
                server_end_point: server_end_point
                    .filter(|_| self.binding != ChannelBinding::Disable),
            },
        }
    }

    fn from_settings(
        mut settings: Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        if let Some(inner) =
            settings.get("dbname").filter(|name| text::is_connection_string(name)).cloned()
        {
            settings.remove("dbname");
            for (name, value) in text::parse(&inner)? {
                settings.insert(name, value);
            }
        }
        fill_in(&mut settings, environment)?;
        let mut take = |name: &str| settings.remove(name).filter(|value| !value.is_empty());
        let user = take("user").unwrap_or_else(|| files::user(environment));
        let database = take("dbname").unwrap_or_else(|| user.clone());
        let mut servers = {
            let (host, hostaddr, port) = (take("host"), take("hostaddr"), take("port"));
            servers(host.as_deref(), hostaddr.as_deref(), port.as_deref())?
        };
        let mut warnings = Vec::new();
        let password = take("password");
        let password_file = take("passfile")
            .map(PathBuf::from)
            .or_else(|| files::home(environment).map(|home| home.join(".pgpass")));
        if let Some(path) = password_file.filter(|_| password.is_none()) {
            let file = PasswordFile::read(&path);
            for server in &mut servers {
                server.password = password_of(&file, server, &database, &user);
            }
            warnings.extend(file.warning);
        }
        let (tls, tls_mode) = tls_settings(&mut take, files::home(environment).as_deref())?;
        let (allowed, cleartext_by_name) = required_methods(take("require_auth"))?;
        let wants_tls = tls_mode != SslMode::Disable
            && servers.iter().any(|server| matches!(server.host, Host::Tcp(_)));
        let info = Self {
            servers,
            password,
            application_name: {
                let fallback = take("fallback_application_name");
                take("application_name").or(fallback)
            },
            options: take("options"),
            connect_timeout: connect_timeout(take("connect_timeout"))?,
            tls: wants_tls.then(|| tls::Tls::new(&tls).map(Arc::new)).transpose()?,
            ssl_mode: tls_mode,
            allowed,
            cleartext_by_name,
            binding: channel_binding(take("channel_binding"))?,
            session_attrs: session_attrs(take("target_session_attrs"))?,
            load_balance: load_balance(take("load_balance_hosts"))?,
            keepalive: keepalive(&mut take)?,
            warnings,
            user,
            database,
        };
        refuse_what_is_not_offered(&mut take)?;
        match settings.into_keys().next() {
            // What stands where a name should be may be the rest of a password with a space in it.
            Some(_) if info.has_password() => Err(ConnInfoError::UnknownSetting(
                "… (not shown, since a password stands beside it)".to_owned(),
            )),
            Some(unknown) => Err(ConnInfoError::UnknownSetting(unknown)),
            None => Ok(info),
        }
    }
}

#[cfg(test)]
mod tests;
