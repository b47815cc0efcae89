//! Where a target is, who connects, and how: everything that libpq takes, in all its forms.
//!
//! The order is libpq's: connection string, service file, `PG*` variables, defaults; the password
//! file last. What is not understood is an error, never ignored, and no error shows a password.
//! The settings are those of "Parameter Key Words" in the chapter "libpq" of PostgreSQL's manual.

mod files;
mod text;
mod values;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use riops_wire::auth::{AuthPolicy, Method};
use riops_wire::startup::Credentials;

use super::tls::{self, SslMode, TlsError};
use files::PasswordFile;
use text::Settings;
use values::{
    NO_KEEPALIVE, SOCKET_FOLDERS, channel_binding, connect_timeout, keepalive, load_balance,
    refuse_what_is_not_offered, required_methods, servers, session_attrs, tls_settings,
};

/// PostgreSQL's port.
pub const DEFAULT_PORT: u16 = 5432;
/// How long connecting to one server may take where nothing else was asked for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Hosts of one connection string.
const HOSTS_MAX: usize = 1000;

/// Why connection settings cannot be used. Never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The text follows neither form.
    #[error(
        "the connection string is not understood near {0}: give a URL (postgresql://user@host/database) or key=value pairs"
    )]
    Syntax(String),
    /// A setting that nobody knows, or that has no meaning here.
    #[error("the connection setting `{0}` is not supported")]
    UnknownSetting(String),
    /// A value is out of range.
    #[error("the connection setting {name}={value} is not usable: {reason}")]
    BadValue {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No service file has the service.
    #[error(
        "the service `{0}` is in no service file (PGSERVICEFILE, ~/.pg_service.conf, PGSYSCONFDIR/pg_service.conf)"
    )]
    UnknownService(String),
    /// A line of the service is no setting.
    #[error("the service `{service}` in {} has a line that is no setting", .path.display())]
    BadServiceFile {
        /// The file.
        path: PathBuf,
        /// The service.
        service: String,
    },
    /// Certificates or keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A folder with a socket in it; one that starts with `@` is in the abstract namespace.
    Unix(PathBuf),
    /// A name or an address.
    Tcp(String),
}

/// One of the servers that may be connected to.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens; with TLS this is the name that its certificate has to have.
    pub host: Host,
    /// The address to use instead of asking for the name's.
    pub address: Option<IpAddr>,
    /// Its port, which is also part of the socket's name.
    pub port: u16,
    /// The password for it, from the password file.
    password: Option<String>,
}

impl Server {
    /// The file of its socket.
    #[must_use]
    pub fn socket_path(&self) -> Option<PathBuf> {
        match &self.host {
            Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", self.port))),
            Host::Tcp(_) => None,
        }
    }

    /// Whether it runs on this machine, as far as the address tells.
    fn is_local(&self) -> bool {
        match &self.host {
            Host::Unix(_) => true,
            Host::Tcp(host) => {
                let address = self.address.or_else(|| host.parse().ok());
                address.map_or_else(|| host == "localhost", |address| address.is_loopback())
            }
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.socket_path()) {
            (_, Some(path)) => write!(formatter, "{}", path.display()),
            (Host::Tcp(host), _) if host.contains(':') => {
                write!(formatter, "[{host}]:{}", self.port)
            }
            (Host::Tcp(host), _) => write!(formatter, "{host}:{}", self.port),
            (Host::Unix(_), None) => Ok(()),
        }
    }
}

impl fmt::Debug for Server {
    // The password is never printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({self})")
    }
}

/// What a server has to be: `target_session_attrs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Anything.
    #[default]
    Any,
    /// Sessions may write.
    ReadWrite,
    /// Sessions may not write.
    ReadOnly,
    /// Not a standby.
    Primary,
    /// A standby.
    Standby,
    /// A standby where there is one, else anything.
    PreferStandby,
}

/// Whether SCRAM is bound to the TLS channel: `channel_binding`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChannelBinding {
    Disable,
    #[default]
    Prefer,
    Require,
}

/// How the operating system watches over idle TCP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether it does.
    pub enabled: bool,
    /// Silence before the first probe.
    pub idle: Option<Duration>,
    /// Between probes.
    pub interval: Option<Duration>,
    /// Probes without an answer before the connection counts as broken.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged.
    pub user_timeout: Option<Duration>,
}

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
        let user = take("user")
            .or_else(|| environment("USER"))
            .or_else(|| environment("LOGNAME"))
            .or_else(files::operating_system_user)
            .unwrap_or_else(|| "postgres".to_owned());
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

/// Settings and the variables that stand in for them.
const VARIABLES: [(&str, &str); 29] = [
    ("service", "PGSERVICE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("dbname", "PGDATABASE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("require_auth", "PGREQUIREAUTH"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("gssencmode", "PGGSSENCMODE"),
    ("requirepeer", "PGREQUIREPEER"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("servicefile", "PGSERVICEFILE"),
];

/// Puts in what the connection string left out: the service's settings, then the variables'.
fn fill_in(
    settings: &mut Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConnInfoError> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let service = settings.remove("service").or_else(|| variable("PGSERVICE"));
    let file = settings.remove("servicefile").map(PathBuf::from);
    if let Some(name) = service.filter(|name| !name.is_empty()) {
        for (setting, value) in files::service(&name, file, environment)? {
            settings.entry(setting).or_insert(value);
        }
    }
    for (setting, name) in VARIABLES {
        if !matches!(setting, "service" | "servicefile")
            && !settings.contains_key(setting)
            && let Some(value) = variable(name)
        {
            settings.insert(setting.to_owned(), value);
        }
    }
    Ok(())
}

/// The file knows a socket in the default folder as `localhost`, as libpq has it.
fn password_of(file: &PasswordFile, server: &Server, database: &str, user: &str) -> Option<String> {
    let host = match &server.host {
        Host::Unix(folder) if SOCKET_FOLDERS.iter().any(|known| Path::new(known) == folder) => {
            "localhost".to_owned()
        }
        Host::Unix(folder) => folder.display().to_string(),
        Host::Tcp(name) => name.clone(),
    };
    file.find([&host, &server.port.to_string(), database, user])
}

#[cfg(test)]
mod tests;
