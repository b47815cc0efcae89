//! Connection settings in all forms that libpq accepts.
//!
//! The precedence is libpq's: connection string, service file, `PG*` variables, defaults, and the
//! password file last. Unsupported settings are errors and never ignored, wherever they come from: `parameters.rs` lists all
//! of them. No error shows a password.

mod error;
mod parameters;
mod password_file;
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
pub use server::{DEFAULT_PORT, Host, Server};
pub use sources::remove_variables;
pub use text::is_mistyped_url;
pub use values::{Keepalive, SessionAttrs};

use super::tls::{self, SslMode};
use parameters::{PARAMETERS, take_others};
use password_file::add_passwords;
use riops_model::units::conninfo::quoted;
use sources::{fill_in, home, session_settings, system_user};
use text::Settings;
use values::{
    CONNECT_TIMEOUT, ChannelBinding, choice, client_encoding, connect_timeout, keepalive,
    protocol_versions, required_methods, servers, tls_settings,
};

/// Precedence between a value in a connection string and a value that is given separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// The value in the string takes precedence, as in psql and pgbench (`PQconnectdbParams`).
    String,
    /// The separate value takes precedence, as in sysbench (`PQsetdbLogin`).
    Beside,
}

/// All settings of a connection.
#[derive(Clone)]
pub struct ConnInfo {
    /// Servers in the given order; never empty.
    pub servers: Vec<Server>,
    /// Role name.
    pub user: String,
    password: Option<String>,
    /// Database name.
    pub database: String,
    /// `application_name`, if the user set it.
    pub application_name: Option<String>,
    options: Option<String>,
    /// Session settings of the environment, by name.
    session_settings: Vec<(&'static str, String)>,
    /// Timeout for connecting to one server.
    pub connect_timeout: Duration,
    /// `sslmode`.
    pub ssl_mode: SslMode,
    /// TLS configuration; `None` if TLS is never used.
    pub tls: Option<Arc<tls::Tls>>,
    allowed: Option<Vec<Method>>,
    /// Whether `require_auth` lists the cleartext password.
    cleartext_listed: bool,
    binding: ChannelBinding,
    /// `target_session_attrs`.
    pub session_attrs: SessionAttrs,
    /// Whether the servers and the addresses of each are tried in random order.
    pub load_balance: bool,
    /// Keepalive settings of TCP connections.
    pub keepalive: Keepalive,
    /// `requirepeer`: the user that must run the server, for Unix sockets.
    pub(super) required_peer: Option<String>,
    /// Warnings for the user that do not prevent connecting.
    pub warnings: Vec<String>,
}

impl fmt::Debug for ConnInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ConnInfo({self})")
    }
}

impl fmt::Display for ConnInfo {
    /// Writes the database and the addresses; never the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "database {} on {}", self.database, self.address())
    }
}

impl ConnInfo {
    /// Parses a URL, a `key=value` string or a database name, which may be empty. Missing settings come from the service
    /// file, then from the `PG*` variables returned by `environment`, then from the defaults.
    ///
    /// # Errors
    /// [`ConnInfoError`] if a setting is invalid or unsupported, or a file cannot be used.
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        let environment: &dyn Fn(&str) -> Option<String> = &environment;
        let mut settings = text::parse(text)?;
        let from_variables = fill_in(&mut settings, environment)?;
        Self::from_settings(settings, environment).map_err(|error| match error {
            ConnInfoError::BadValue { name, value, reason, .. } => {
                let known = PARAMETERS.iter().find(|parameter| parameter.name == name);
                let variable = known.filter(|_| from_variables.contains(&name));
                let variable = variable.and_then(|parameter| parameter.variable);
                ConnInfoError::BadValue { name, variable, value, reason }
            }
            other => other,
        })
    }

    fn from_settings(
        mut settings: Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        let mut take = |name: &str| settings.remove(name).filter(|value| !value.is_empty());
        let mut tls_warnings = Vec::new();
        let user = take("user").unwrap_or_else(|| system_user(environment));
        let database = take("dbname").unwrap_or_else(|| user.clone());
        if database.contains("://") {
            return Err(ConnInfoError::MistypedUrl);
        }
        let tls = tls_settings(&mut take, home(environment).as_deref(), &mut tls_warnings)?;
        let mut servers = servers(take("host"), take("hostaddr"), take("port"), tls.mode)?;
        let password = take("password");
        let password_file = take("passfile")
            .map(PathBuf::from)
            .or_else(|| home(environment).map(|home| home.join(".pgpass")));
        let password_file = password_file.filter(|_| password.is_none());
        let warning =
            password_file.and_then(|path| add_passwords(&path, &mut servers, &database, &user));
        let (allowed, cleartext_listed) = required_methods(take("require_auth"))?;
        let application = take("fallback_application_name");
        let wants_tls = tls.mode != SslMode::Disable
            && servers.iter().any(|server| matches!(server.host, Host::Tcp(_)));
        client_encoding(&mut take)?;
        protocol_versions(&mut take)?;
        let info = Self {
            servers,
            password,
            application_name: take("application_name").or(application),
            options: take("options"),
            session_settings: session_settings(environment),
            connect_timeout: connect_timeout(take("connect_timeout"))?,
            tls: wants_tls.then(|| tls::Tls::new(&tls).map(Arc::new)).transpose()?,
            ssl_mode: tls.mode,
            allowed,
            cleartext_listed,
            binding: choice(
                &mut take,
                "channel_binding",
                ChannelBinding::Prefer,
                &ChannelBinding::ALL,
            )?,
            session_attrs: choice(
                &mut take,
                "target_session_attrs",
                SessionAttrs::Any,
                &SessionAttrs::ALL,
            )?,
            load_balance: choice(
                &mut take,
                "load_balance_hosts",
                false,
                &[("disable", false), ("random", true)],
            )?,
            keepalive: keepalive(&mut take)?,
            required_peer: take("requirepeer"),
            warnings: warning
                .into_iter()
                .chain(tls_warnings.into_iter().filter(|_| wants_tls))
                .collect(),
            user,
            database,
        };
        take_others(&mut take)?;
        match settings.into_keys().next() {
            None => Ok(info),
            Some(unknown) => Err(info.unknown_setting(&unknown)),
        }
    }

    fn unknown_setting(&self, name: &str) -> ConnInfoError {
        // The unknown name may be the rest of a password that contains a space.
        ConnInfoError::UnknownSetting(if self.has_password() {
            "(hidden because it may be part of the password)".to_owned()
        } else {
            text::shown_name(name)
        })
    }

    /// Returns a connection string with these settings beside it, as tools have options for host, port and user. An empty value is
    /// none. A text that cannot be parsed is returned unchanged: it is an error wherever it is used.
    pub fn with_settings(text: &str, beside: &[(&str, &str)], precedence: Precedence) -> String {
        let Ok(mut settings) = text::parse(text) else {
            return text.to_owned();
        };
        let given: Vec<_> = beside.iter().filter(|(_, value)| !value.is_empty()).collect();
        if given.is_empty() {
            return text.to_owned();
        }
        for (name, value) in given {
            if precedence == Precedence::Beside || !settings.contains_key(*name) {
                settings.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        let pairs: Vec<_> =
            settings.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        pairs.join(" ")
    }

    /// Returns the role that libpq uses if nothing else names one: the name of the user that runs this process.
    pub fn default_user(environment: impl Fn(&str) -> Option<String>) -> String {
        system_user(&environment)
    }

    /// Returns whether the `PG*` variables specify a server, a database or a role. The others, such as
    /// `PGPASSWORD` and `PGSSLMODE`, only describe a connection.
    pub fn is_in_environment(environment: impl Fn(&str) -> Option<String>) -> bool {
        Self::server_variable(environment).is_some()
    }

    /// Returns the name of the first variable that specifies one of them.
    pub fn server_variable(environment: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"]
            .into_iter()
            .find(|name| environment(name).is_some_and(|value| !value.is_empty()))
    }

    /// Adds the variables that describe sessions, which have an effect on every server: `PGOPTIONS`, `PGAPPNAME`,
    /// `PGTZ` and others.
    pub fn with_session_variables(self, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let value = |name| environment(name).filter(|value: &String| !value.is_empty());
        Self {
            options: self.options.or_else(|| value("PGOPTIONS")),
            application_name: self.application_name.or_else(|| value("PGAPPNAME")),
            session_settings: session_settings(environment),
            ..self
        }
    }

    /// Returns a connection string with `***` in place of each password; `None` if it cannot be parsed, so
    /// that any part of it may be a password.
    pub fn without_password(text: &str) -> Option<String> {
        text::without_password(text).ok()
    }

    /// Returns a connection string without its passwords, for a command that is typed again; `None` as in
    /// [`Self::without_password`].
    pub fn to_type_again(text: &str) -> Option<String> {
        text::to_type_again(text).ok()
    }

    /// Sets the password for all servers.
    pub fn set_password(&mut self, password: String) {
        self.password = Some(password);
    }

    /// Returns the settings for a connection through the Unix socket in `folder`.
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
            session_settings: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            ssl_mode: SslMode::Disable,
            tls: None,
            allowed: None,
            cleartext_listed: false,
            binding: ChannelBinding::Prefer,
            session_attrs: SessionAttrs::Any,
            load_balance: false,
            keepalive: Keepalive::default(),
            required_peer: None,
            warnings: Vec::new(),
        }
    }

    /// Returns the same settings for another server, with the password of the first server.
    pub(super) fn at(&self, host: &str, port: u16) -> Self {
        let password = self.servers.first().and_then(|server| server.password.clone());
        self.with_server(Server { host: Host::Tcp(host.to_owned()), address: None, port, password })
    }

    /// Returns the same settings for one server.
    pub(super) fn with_server(&self, server: Server) -> Self {
        Self { servers: vec![server], load_balance: false, ..self.clone() }
    }

    /// Returns the addresses for messages: path of the socket, or host and port.
    pub fn address(&self) -> String {
        self.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether the servers run on this machine, according to their addresses.
    pub fn is_local(&self) -> bool {
        self.servers.iter().all(Server::is_local)
    }

    /// Returns whether the settings include a password. The password file does not count.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns the credentials for the startup of a session on `server`. `encrypted` and
    /// `server_end_point` describe the TLS channel.
    pub fn credentials(
        &self,
        server: &Server,
        encrypted: bool,
        server_end_point: Option<Vec<u8>>,
    ) -> Credentials {
        let program = self.application_name.clone().unwrap_or_else(|| "riops".to_owned());
        let mut settings = vec![("application_name".to_owned(), program)];
        let of_environment = self.session_settings.iter();
        settings.extend(of_environment.map(|(name, value)| ((*name).to_owned(), value.clone())));
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
                cleartext: encrypted || on_this_machine || self.cleartext_listed,
                binding_required: self.binding == ChannelBinding::Require,
                server_end_point: server_end_point
                    .filter(|_| self.binding != ChannelBinding::Disable),
            },
        }
    }
}

#[cfg(test)]
mod tests;
