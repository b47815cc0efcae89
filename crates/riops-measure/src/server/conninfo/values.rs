//! Valid values of each setting and their meaning.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use riops_wire::auth::Method;

use super::super::tls::{self, RootCertificates, SslMode, TlsSettings};
use super::error::ConnInfoError;
use super::server::{DEFAULT_PORT, Host, Server};

/// Default timeout for connecting to one server.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of hosts in a connection string.
const HOSTS_MAX: usize = 1000;
/// Default socket directories: Debian's, then PostgreSQL's.
pub(super) const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Required properties of the server: `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Any server.
    Any,
    /// Sessions are read-write by default.
    ReadWrite,
    /// Sessions are read-only by default.
    ReadOnly,
    /// Not a standby.
    Primary,
    /// A standby.
    Standby,
    /// A standby if one is available, otherwise any server.
    PreferStandby,
}

impl SessionAttrs {
    /// All values with their names.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];

    /// Returns the value in connection strings.
    pub(in super::super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// Whether SCRAM is bound to the TLS channel: `channel_binding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

impl ChannelBinding {
    /// All values with their names.
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("disable", Self::Disable), ("prefer", Self::Prefer), ("require", Self::Require)];
}

/// TCP keepalive settings; `None` means the default of the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether keepalive probes are sent.
    pub enabled: bool,
    /// Idle time before the first probe.
    pub idle: Option<Duration>,
    /// Interval between probes.
    pub interval: Option<Duration>,
    /// Number of unanswered probes after which the connection counts as broken.
    pub count: Option<u32>,
    /// How long sent data may remain unacknowledged.
    pub user_timeout: Option<Duration>,
}

pub(super) fn bad<T>(
    name: &'static str,
    value: impl Into<String>,
    reason: impl Into<String>,
) -> Result<T, ConnInfoError> {
    Err(ConnInfoError::BadValue {
        name,
        variable: None,
        value: value.into(),
        reason: reason.into(),
    })
}

/// Takes a setting with this name, if it is given.
pub(super) type Take<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// The names of a choice between off and on.
const FLAG: [(&str, bool); 2] = [("0", false), ("1", true)];

/// Takes a setting whose values have names; without a value, it is the default.
pub(super) fn choice<T: Copy>(
    take: Take<'_>,
    name: &'static str,
    default: T,
    choices: &[(&str, T)],
) -> Result<T, ConnInfoError> {
    let Some(value) = take(name) else {
        return Ok(default);
    };
    if let Some((_, chosen)) = choices.iter().find(|(choice, _)| *choice == value) {
        return Ok(*chosen);
    }
    let mut names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
    let last = names.pop().unwrap_or_default();
    bad(name, value, format!("expected {} or {last}", names.join(", ")))
}

/// Combines the lists of hosts, addresses and ports. There must be one port per host, or one for
/// all. With `verify-full`, an address without a host is an error, because a certificate is for a name.
pub(super) fn servers(
    hosts: Option<String>,
    addresses: Option<String>,
    ports: Option<String>,
    mode: SslMode,
) -> Result<Vec<Server>, ConnInfoError> {
    let list = |text: Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
    };
    let (names, numbers, port_texts) = (list(hosts), list(addresses), list(ports));
    // Paths and abstract names of sockets start with these.
    let is_name = |name: &&String| !name.starts_with(['/', '@']);
    if names.iter().filter(is_name).any(|name| name.contains(['@', ';', '=', ' '])) {
        return Err(ConnInfoError::MistypedUrl);
    }
    let count = names.len().max(numbers.len()).max(1);
    if count > HOSTS_MAX {
        return bad("host", "…", "more than 1000 hosts");
    }
    if !names.is_empty() && !numbers.is_empty() && names.len() != numbers.len() {
        let reason = "the number of addresses differs from the number of hosts";
        return bad("hostaddr", numbers.join(","), reason);
    }
    if port_texts.len() > 1 && port_texts.len() != count {
        let reason = "the number of ports differs from the number of hosts";
        return bad("port", port_texts.join(","), reason);
    }
    (0..count)
        .map(|position| {
            let at = |list: &[String]| list.get(position).filter(|text| !text.is_empty()).cloned();
            let parsed = |text: String| {
                text.parse().or_else(|_| bad("hostaddr", text, "expected an IP address"))
            };
            let address: Option<IpAddr> = at(&numbers).map(parsed).transpose()?;
            let host = match (at(&names), address) {
                (None, Some(_)) if mode == SslMode::VerifyFull => {
                    return bad(
                        "sslmode",
                        mode.name(),
                        "hostaddr without host: there is no name to verify",
                    );
                }
                (None, Some(address)) => Host::Tcp(address.to_string()),
                // With an address, the host is only a name.
                (Some(name), Some(_)) => Host::Tcp(name),
                (name, None) => host(name),
            };
            let of_all = || port_texts.first().filter(|_| port_texts.len() == 1).cloned();
            let port = port(at(&port_texts).or_else(of_all))?;
            Ok(Server { host, address, port, password: None })
        })
        .collect()
}

pub(super) fn host(value: Option<String>) -> Host {
    match value {
        Some(folder) if folder.starts_with(['/', '@']) => Host::Unix(folder.into()),
        Some(name) => Host::Tcp(name),
        None => {
            let [first, last] = SOCKET_DIRECTORIES;
            let folder = if Path::new(first).is_dir() { first } else { last };
            Host::Unix(folder.into())
        }
    }
}

fn port(value: Option<String>) -> Result<u16, ConnInfoError> {
    let Some(value) = value else {
        return Ok(DEFAULT_PORT);
    };
    match value.trim().parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        // In a URL with an unescaped password this may be a part of the password.
        _ if value.chars().any(|character| !character.is_ascii_digit()) => bad(
            "port",
            "…",
            "expected a number from 1 to 65535 (in a URL, encode / @ : ? in a password as %2F %40 %3A %3F)",
        ),
        _ => bad("port", value, "expected a number from 1 to 65535"),
    }
}

/// Returns the connection timeout. In libpq, zero, a negative value and no value mean no timeout;
/// here they mean the default.
pub(super) fn connect_timeout(value: Option<String>) -> Result<Duration, ConnInfoError> {
    let value = value.unwrap_or_else(|| "0".to_owned());
    let seconds = value.trim().parse::<i32>();
    match seconds.or_else(|_| bad("connect_timeout", value, "expected a number of seconds"))? {
        seconds @ 1.. => Ok(Duration::from_secs(seconds.unsigned_abs().into())),
        _ => Ok(CONNECT_TIMEOUT),
    }
}

/// Returns the TLS settings. Adds a warning for each named file that is missing and, as in libpq, does without it.
pub(super) fn tls_settings(
    take: Take<'_>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<TlsSettings, ConnInfoError> {
    // As in libpq, unset files default to those in ~/.postgresql, if they exist.
    let default_file = |name: &str| {
        home.map(|home| home.join(".postgresql").join(name)).filter(|path| path.is_file())
    };
    let file = |value: Option<String>, default_name: &str| {
        value.map(PathBuf::from).or_else(|| default_file(default_name))
    };
    let root = take("sslrootcert");
    let system = root.as_deref() == Some("system");
    let default = if system { SslMode::VerifyFull } else { SslMode::Prefer };
    let mode = choice(take, "sslmode", default, &SslMode::ALL)?;
    // With the system's root certificates, only this is secure.
    if system && mode != SslMode::VerifyFull {
        return bad("sslmode", mode.name(), "sslrootcert=system requires verify-full");
    }
    let negotiations = [("postgres", false), ("direct", true)];
    let direct = choice(take, "sslnegotiation", false, &negotiations)?;
    if direct && mode < SslMode::Require {
        return bad("sslnegotiation", "direct", "sslmode=require or stronger is required");
    }
    let certificate_modes = [("allow", true), ("disable", false)];
    let client_certificate = choice(take, "sslcertmode", true, &certificate_modes)?;
    if take("sslpassword").is_some() {
        return bad("sslpassword", "…", "encrypted keys are not supported; decrypt the key");
    }
    let certificate = file(take("sslcert"), "postgresql.crt").filter(|_| client_certificate);
    let certificate = certificate.filter(|path| {
        exists(path, warnings, "client certificate", "riops connects without it (sslcert)")
    });
    let key = file(take("sslkey"), "postgresql.key");
    if let (Some(path), None) = (&certificate, &key) {
        let reason = "the private key is missing; set sslkey";
        return bad("sslcert", path.display().to_string(), reason);
    }
    let versions =
        tls::versions(take("ssl_min_protocol_version"), take("ssl_max_protocol_version")).or_else(
            |value| bad("ssl_min_protocol_version", value, "expected TLSv1.2 or TLSv1.3"),
        )?;
    let revocations_folder = take("sslcrldir").map(PathBuf::from);
    let revocations = match take("sslcrl") {
        Some(path) => Some(PathBuf::from(path)),
        // As in libpq, the default file is used only if neither is set.
        None if revocations_folder.is_some() => None,
        None => default_file("root.crl"),
    };
    let roots = match root {
        Some(_) if system => Some(RootCertificates::System),
        Some(path) => root_file(path.into(), mode, warnings),
        None => default_file("root.crt").map(RootCertificates::File),
    };
    Ok(TlsSettings {
        mode,
        direct,
        roots,
        certificate: certificate.zip(key),
        revocations,
        revocations_folder,
        sni: choice(take, "sslsni", true, &FLAG)?,
        versions,
        key_log: take("sslkeylogfile").map(PathBuf::from),
    })
}

/// Returns a named root certificate; `None` if it is missing and nothing must be verified.
fn root_file(path: PathBuf, mode: SslMode, warnings: &mut Vec<String>) -> Option<RootCertificates> {
    let effect = format!("the server's certificate is not verified (sslmode={})", mode.name());
    let is_used = mode >= SslMode::VerifyCa || exists(&path, warnings, "root certificate", &effect);
    is_used.then_some(RootCertificates::File(path))
}

/// Whether a file exists, or might: only one that is missing for sure is not used, with a warning that ends with `effect`.
fn exists(path: &Path, warnings: &mut Vec<String>, what: &str, effect: &str) -> bool {
    let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    let is_missing = path.metadata().is_err_and(|error| missing.contains(&error.kind()));
    if is_missing {
        warnings.push(format!("the {what} \"{}\" does not exist: {effect}", path.display()));
    }
    !is_missing
}

/// Checks the versions of the protocol. riops speaks 3.0, as libpq does by default.
pub(super) fn protocol_versions(take: Take<'_>) -> Result<(), ConnInfoError> {
    const REASON: &str = "riops speaks version 3.0 of the protocol";
    if let Some(value) = take("min_protocol_version").filter(|value| value != "3.0") {
        return bad("min_protocol_version", value, REASON);
    }
    match take("max_protocol_version") {
        Some(value) if !["3.0", "3.2", "latest"].contains(&value.as_str()) => {
            bad("max_protocol_version", value, "expected 3.0, 3.2 or latest")
        }
        _ => Ok(()),
    }
}

/// Checks the encoding of the client, which is always UTF8.
pub(super) fn client_encoding(take: Take<'_>) -> Result<(), ConnInfoError> {
    let Some(value) = take("client_encoding") else {
        return Ok(());
    };
    // PostgreSQL ignores case and punctuation in the name of an encoding.
    let letters = value.chars().filter(char::is_ascii_alphanumeric);
    let name = letters.collect::<String>().to_ascii_lowercase();
    if matches!(name.as_str(), "auto" | "utf8" | "unicode") {
        return Ok(());
    }
    bad("client_encoding", value, "not supported by riops, which uses UTF8")
}

/// Parses `require_auth`. Returns the allowed methods and whether the cleartext password is listed.
pub(super) fn required_methods(
    value: Option<String>,
) -> Result<(Option<Vec<Method>>, bool), ConnInfoError> {
    let Some(value) = value else {
        return Ok((None, false));
    };
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    let negated = names.iter().filter(|name| name.starts_with('!')).count();
    if negated != 0 && negated != names.len() {
        return bad("require_auth", value, "either all methods must be negated or none");
    }
    let mut methods = Vec::new();
    for name in &names {
        let plain = name.trim_start_matches('!');
        match Method::ALL.into_iter().find(|method| method.name() == plain) {
            Some(method) => methods.push(method),
            // Methods of libpq that riops does not support; excluding them has no effect.
            None if matches!(plain, "gss" | "sspi" | "oauth") => {}
            None => {
                let reason = "expected a list of none, password, md5, scram-sha-256, either all or none prefixed with !";
                return bad("require_auth", value, reason);
            }
        }
    }
    if negated > 0 {
        let rest = Method::ALL.into_iter().filter(|method| !methods.contains(method)).collect();
        return Ok((Some(rest), false));
    }
    let cleartext = methods.contains(&Method::Password);
    Ok((Some(methods), cleartext))
}

pub(super) fn keepalive(take: Take<'_>) -> Result<Keepalive, ConnInfoError> {
    let mut setting = |name: &'static str| -> Result<Option<u32>, ConnInfoError> {
        let Some(value) = take(name) else {
            return Ok(None);
        };
        let count = value.parse().or_else(|_| bad(name, value, "expected a whole number"))?;
        Ok(Some(count).filter(|&count| count > 0))
    };
    let seconds = |value: Option<u32>| value.map(|value| Duration::from_secs(value.into()));
    Ok(Keepalive {
        idle: seconds(setting("keepalives_idle")?),
        interval: seconds(setting("keepalives_interval")?),
        count: setting("keepalives_count")?,
        user_timeout: setting("tcp_user_timeout")?
            .map(|millis| Duration::from_millis(millis.into())),
        enabled: choice(take, "keepalives", true, &FLAG)?,
    })
}
