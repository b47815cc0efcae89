//! Where a target is and who connects: URLs, `key=value` strings and the `PG*` variables.
//!
//! One host; several hosts, TLS, service and password files are not understood yet, and what is
//! not understood is an error, never ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use riops_wire::startup::Credentials;

/// PostgreSQL's port.
pub const DEFAULT_PORT: u16 = 5432;
/// How long connecting may take where nothing else was asked for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why connection settings cannot be used. Never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The text follows neither form.
    #[error(
        "the connection string is not understood near {0}: give a URL (postgresql://user@host/database) or key=value pairs"
    )]
    Syntax(String),
    /// A setting that libpq knows and this version does not, or nobody knows.
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
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A folder with a socket in it.
    Unix(PathBuf),
    /// A name or an address.
    Tcp(String),
}

/// Everything that is needed to connect.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnInfo {
    /// Where the server listens.
    pub host: Host,
    /// Its port, which is also part of the socket's name.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// What the server shows as the session's program.
    pub application_name: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
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

type Settings = BTreeMap<String, String>;

impl ConnInfo {
    /// Reads a URL or a `key=value` string; what it leaves out comes from the `PG*` variables
    /// that `environment` answers, then from the defaults.
    ///
    /// # Errors
    /// [`ConnInfoError`]
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        let text = text.trim();
        let settings =
            match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
                Some(rest) => parse_url(rest)?,
                None => parse_pairs(text)?,
            };
        Self::from_settings(settings, environment)
    }

    /// Takes everything from the `PG*` variables that `environment` answers.
    ///
    /// # Errors
    /// [`ConnInfoError`]
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        Self::from_settings(Settings::new(), environment)
    }

    /// Whether the `PG*` variables name a target at all.
    #[must_use]
    pub fn is_in_environment(environment: impl Fn(&str) -> Option<String>) -> bool {
        ["PGHOST", "PGSERVICE", "PGDATABASE"]
            .iter()
            .any(|name| environment(name).is_some_and(|value| !value.is_empty()))
    }

    /// A connection through the socket in `folder`.
    #[must_use]
    pub fn unix(folder: &Path, port: u16, user: &str, database: &str) -> Self {
        Self {
            host: Host::Unix(folder.to_owned()),
            port,
            user: user.to_owned(),
            password: None,
            database: database.to_owned(),
            application_name: "riops".to_owned(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }

    /// The address, for messages: the socket's file, or host and port.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.host {
            Host::Unix(_) => self.socket_path().display().to_string(),
            Host::Tcp(host) => format!("{host}:{}", self.port),
        }
    }

    /// The file of the socket in a folder.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        match &self.host {
            Host::Unix(folder) => folder.join(format!(".s.PGSQL.{}", self.port)),
            Host::Tcp(_) => PathBuf::new(),
        }
    }

    /// Whether the server runs on this machine, as far as the address tells.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match &self.host {
            Host::Unix(_) => true,
            Host::Tcp(host) => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }

    /// What the startup message needs.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        Credentials {
            user: self.user.clone(),
            password: self.password.clone(),
            database: self.database.clone(),
            settings: vec![("application_name".to_owned(), self.application_name.clone())],
        }
    }

    fn from_settings(
        mut settings: Settings,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        for (setting, variable) in VARIABLES {
            if !settings.contains_key(setting)
                && let Some(value) = environment(variable).filter(|value| !value.is_empty())
            {
                settings.insert(setting.to_owned(), value);
            }
        }
        let mut take = |name: &str| settings.remove(name).filter(|value| !value.is_empty());
        check_sslmode(take("sslmode"))?;
        let user = take("user")
            .or_else(|| environment("USER"))
            .or_else(|| environment("LOGNAME"))
            .unwrap_or_else(|| "postgres".to_owned());
        let info = Self {
            host: host(take("hostaddr").or_else(|| take("host")))?,
            port: port(take("port"))?,
            database: take("dbname").unwrap_or_else(|| user.clone()),
            password: take("password"),
            application_name: take("application_name").unwrap_or_else(|| "riops".to_owned()),
            connect_timeout: connect_timeout(take("connect_timeout"))?,
            user,
        };
        take("host");
        match settings.into_keys().next() {
            Some(unknown) => Err(ConnInfoError::UnknownSetting(unknown)),
            None => Ok(info),
        }
    }
}

/// Settings and the variables that stand in for them.
const VARIABLES: [(&str, &str); 10] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("dbname", "PGDATABASE"),
    ("application_name", "PGAPPNAME"),
    ("sslmode", "PGSSLMODE"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("service", "PGSERVICE"),
];

/// Debian's folder, then the one that PostgreSQL is built with.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

fn host(value: Option<String>) -> Result<Host, ConnInfoError> {
    match value {
        Some(list) if list.contains(',') => Err(ConnInfoError::BadValue {
            name: "host",
            value: list,
            reason: "several hosts are not supported",
        }),
        Some(folder) if folder.starts_with('/') => Ok(Host::Unix(folder.into())),
        Some(name) => Ok(Host::Tcp(name)),
        None => {
            let [first, last] = SOCKET_FOLDERS;
            let folder = if Path::new(first).is_dir() { first } else { last };
            Ok(Host::Unix(folder.into()))
        }
    }
}

fn port(value: Option<String>) -> Result<u16, ConnInfoError> {
    let Some(value) = value else {
        return Ok(DEFAULT_PORT);
    };
    match value.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        // Of an URL with an unescaped password this may be a part of it.
        _ if value.chars().any(|character| !character.is_ascii_digit()) => {
            Err(ConnInfoError::BadValue {
                name: "port",
                value: "…".to_owned(),
                reason: "a port is a number from 1 to 65535 (in a URL, write / @ : ? of a password as %2F %40 %3A %3F)",
            })
        }
        _ => Err(ConnInfoError::BadValue {
            name: "port",
            value,
            reason: "a port is a number from 1 to 65535",
        }),
    }
}

fn connect_timeout(value: Option<String>) -> Result<Duration, ConnInfoError> {
    let Some(value) = value else {
        return Ok(CONNECT_TIMEOUT);
    };
    match value.parse::<u64>() {
        Ok(0) => Ok(CONNECT_TIMEOUT),
        Ok(seconds) if seconds <= 3600 => Ok(Duration::from_secs(seconds)),
        _ => Err(ConnInfoError::BadValue {
            name: "connect_timeout",
            value,
            reason: "seconds, from 1 to 3600",
        }),
    }
}

/// Without TLS only the modes that allow a plain connection can be kept.
fn check_sslmode(value: Option<String>) -> Result<(), ConnInfoError> {
    match value.as_deref() {
        None | Some("disable" | "allow" | "prefer") => Ok(()),
        Some(_) => Err(ConnInfoError::BadValue {
            name: "sslmode",
            value: value.unwrap_or_default(),
            reason: "this version of riops does not speak TLS",
        }),
    }
}

fn decoded(text: &str) -> Result<String, ConnInfoError> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| ConnInfoError::Syntax("a percent sign".to_owned()))
}

/// What stands behind `postgresql://`: `[user[:password]@][host][:port][/database][?name=value…]`.
fn parse_url(rest: &str) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::new();
    let mut put = |name: &str, value: &str| -> Result<(), ConnInfoError> {
        if !value.is_empty() {
            settings.insert(name.to_owned(), decoded(value)?);
        }
        Ok(())
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, tail)) => (address, tail.strip_prefix(':').unwrap_or(tail)),
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    put("user", user)?;
    put("password", password)?;
    put("host", name)?;
    put("port", port)?;
    put("dbname", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| ConnInfoError::Syntax("the part behind the question mark".to_owned()))?;
        put(&decoded(name)?, value)?;
    }
    Ok(settings)
}

/// `name = value` pairs; a value may be quoted with `'`, inside which `\` escapes.
fn parse_pairs(text: &str) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::new();
    let mut characters = text.chars().peekable();
    loop {
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        let mut name = String::new();
        while let Some(next) = characters.next_if(|&next| next != '=' && !next.is_whitespace()) {
            name.push(next);
        }
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        match characters.next() {
            None if name.is_empty() => return Ok(settings),
            Some('=') if !name.is_empty() => {}
            // The rest may hold a password, so only the name is shown.
            _ => return Err(ConnInfoError::Syntax(format!("`{name}`"))),
        }
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        let value = parse_value(&mut characters)
            .ok_or_else(|| ConnInfoError::Syntax(format!("the value of `{name}`")))?;
        settings.insert(name, value);
    }
}

fn parse_value(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    let quoted = characters.next_if_eq(&'\'').is_some();
    loop {
        match characters.next() {
            Some('\'') if quoted => return Some(value),
            None => return (!quoted).then_some(value),
            Some(next) if next.is_whitespace() && !quoted => return Some(value),
            Some('\\') => value.push(characters.next()?),
            Some(next) => value.push(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConnInfo, ConnInfoError> {
        ConnInfo::parse(text, |name| (name == "USER").then(|| "tester".to_owned()))
    }

    #[test]
    fn a_url_gives_all_its_parts() {
        let info = parse(
            "postgresql://bob:s%40cret@db.example:5433/shop?connect_timeout=3&application_name=me",
        )
        .unwrap();
        assert_eq!(info.host, Host::Tcp("db.example".to_owned()));
        assert_eq!((info.port, info.user.as_str()), (5433, "bob"));
        assert_eq!(info.password.as_deref(), Some("s@cret"));
        assert_eq!((info.database.as_str(), info.application_name.as_str()), ("shop", "me"));
        assert_eq!(info.connect_timeout, Duration::from_secs(3));
        assert_eq!(info.to_string(), "database shop on db.example:5433");
    }

    #[test]
    fn a_url_may_name_an_ipv6_address_or_a_socket() {
        let info = parse("postgres://[::1]:6000/").unwrap();
        assert_eq!((info.host.clone(), info.port), (Host::Tcp("::1".to_owned()), 6000));
        assert!(info.is_local());
        let info = parse("postgresql://%2Ftmp%2Fsock/x").unwrap();
        assert_eq!(info.host, Host::Unix("/tmp/sock".into()));
        let info = parse("postgresql:///x?host=/tmp/sock&port=7000").unwrap();
        assert_eq!(info.address(), "/tmp/sock/.s.PGSQL.7000");
    }

    #[test]
    fn pairs_may_be_quoted_and_spaced() {
        let info = parse(r"host = localhost  user='o\'neil' password='' dbname=a\ b").unwrap();
        assert_eq!(info.user, "o'neil");
        assert_eq!(info.database, "a b");
        assert_eq!(info.password, None);
        assert!(info.is_local());
    }

    #[test]
    fn what_is_left_out_comes_from_the_environment() {
        let environment = |name: &str| match name {
            "PGHOST" => Some("10.0.0.1".to_owned()),
            "PGPORT" => Some("7".to_owned()),
            "PGUSER" => Some("alice".to_owned()),
            _ => None,
        };
        let info = ConnInfo::from_environment(environment).unwrap();
        assert_eq!(info.address(), "10.0.0.1:7");
        assert_eq!((info.user.as_str(), info.database.as_str()), ("alice", "alice"));
        assert!(!info.is_local());
        assert!(ConnInfo::is_in_environment(environment));
        assert!(!ConnInfo::is_in_environment(|_| None));
    }

    #[test]
    fn what_is_not_understood_is_refused_without_showing_a_password() {
        for text in [
            "postgresql://h?sslmode=verify-full",
            "host=a,b",
            "host=h port=0",
            "host=h port=x",
            "host=h colour=blue",
            "service=prod",
            "nonsense",
            "password='s3cret",
            "s3cret =",
            "host=h password=s3cret port",
            "postgresql://%ff@h",
        ] {
            match parse(text) {
                Err(error) => assert!(!error.to_string().contains("'s3cret"), "{error}"),
                Ok(info) => panic!("{text} gave {info:?}"),
            }
        }
        let info = parse("host=h password=s3cret").unwrap();
        assert!(!format!("{info:?} {info}").contains("s3cret"));
    }
}
