//! All parameters of libpq 15 to 18 with their environment variables, and what riops does with each: the sections "Parameter
//! Key Words" and "Environment Variables" in the chapter "libpq" of PostgreSQL's manual.
//!
//! `sources.rs` reads the other variables `PGSYSCONFDIR`, `PGREQUIRESSL`, `PGDATESTYLE`, `PGTZ` and `PGGEQO`.
//! `PGLOCALEDIR` and `PGOAUTHDEBUG` concern only messages of libpq.

use super::ConnInfoError;
use super::values::{Take, bad};

/// Use of a parameter by riops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It names the service, which is read before all others.
    Service,
    /// It is read by a function of `values`.
    Read,
    /// It only concerns authentication methods that riops does not support, so that a server that requests one is an error.
    WithoutEffect,
    /// These values change nothing; any other requires something that riops lacks.
    Only(&'static [&'static str]),
    /// Any value requires something that riops lacks, for this reason.
    Refused(&'static str),
}

/// A parameter of libpq.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// The environment variable that sets it.
    pub(super) variable: Option<&'static str>,
    pub(super) usage: Use,
}

const fn parameter(name: &'static str, variable: Option<&'static str>, usage: Use) -> Parameter {
    Parameter { name, variable, usage }
}

const fn read(name: &'static str, variable: &'static str) -> Parameter {
    parameter(name, Some(variable), Use::Read)
}

const fn read_from_string(name: &'static str) -> Parameter {
    parameter(name, None, Use::Read)
}

/// The parameters that hold a secret.
const SECRETS: [&str; 5] =
    ["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"];

const SCRAM_KEYS: Use = Use::Refused("not supported by riops, which needs the password");

/// All parameters.
pub(super) const PARAMETERS: [Parameter; 51] = [
    parameter("service", Some("PGSERVICE"), Use::Service),
    parameter("servicefile", Some("PGSERVICEFILE"), Use::Service),
    read("host", "PGHOST"),
    read("hostaddr", "PGHOSTADDR"),
    read("port", "PGPORT"),
    read("user", "PGUSER"),
    read("password", "PGPASSWORD"),
    read("passfile", "PGPASSFILE"),
    read("dbname", "PGDATABASE"),
    read("options", "PGOPTIONS"),
    read("application_name", "PGAPPNAME"),
    read_from_string("fallback_application_name"),
    read("connect_timeout", "PGCONNECT_TIMEOUT"),
    read("client_encoding", "PGCLIENTENCODING"),
    read("target_session_attrs", "PGTARGETSESSIONATTRS"),
    read("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    read("min_protocol_version", "PGMINPROTOCOLVERSION"),
    read("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    read("require_auth", "PGREQUIREAUTH"),
    read("requirepeer", "PGREQUIREPEER"),
    read("channel_binding", "PGCHANNELBINDING"),
    read("sslmode", "PGSSLMODE"),
    read("sslnegotiation", "PGSSLNEGOTIATION"),
    read("sslcert", "PGSSLCERT"),
    read("sslkey", "PGSSLKEY"),
    read("sslcertmode", "PGSSLCERTMODE"),
    read_from_string("sslpassword"),
    read("sslrootcert", "PGSSLROOTCERT"),
    read("sslcrl", "PGSSLCRL"),
    read("sslcrldir", "PGSSLCRLDIR"),
    read("sslsni", "PGSSLSNI"),
    read_from_string("sslkeylogfile"),
    read("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    read("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    read_from_string("keepalives"),
    read_from_string("keepalives_idle"),
    read_from_string("keepalives_interval"),
    read_from_string("keepalives_count"),
    read_from_string("tcp_user_timeout"),
    parameter("sslcompression", Some("PGSSLCOMPRESSION"), Use::Only(&["0"])),
    parameter("replication", None, Use::Only(&["false", "off", "no", "0"])),
    parameter("gssencmode", Some("PGGSSENCMODE"), Use::Only(&["disable", "prefer"])),
    parameter("krbsrvname", Some("PGKRBSRVNAME"), Use::WithoutEffect),
    parameter("gsslib", Some("PGGSSLIB"), Use::WithoutEffect),
    parameter("gssdelegation", Some("PGGSSDELEGATION"), Use::WithoutEffect),
    parameter("oauth_issuer", None, Use::WithoutEffect),
    parameter("oauth_client_id", None, Use::WithoutEffect),
    parameter("oauth_client_secret", None, Use::WithoutEffect),
    parameter("oauth_scope", None, Use::WithoutEffect),
    parameter("scram_client_key", None, SCRAM_KEYS),
    parameter("scram_server_key", None, SCRAM_KEYS),
];

/// Whether the value of a parameter is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// Takes the parameters that no other function reads. A value that requires a feature that riops lacks is an error.
pub(super) fn take_others(take: Take<'_>) -> Result<(), ConnInfoError> {
    for Parameter { name, usage, .. } in &PARAMETERS {
        let reason = match usage {
            Use::Service | Use::Read => continue,
            Use::WithoutEffect | Use::Only(_) => "not supported by riops",
            Use::Refused(reason) => reason,
        };
        let Some(value) = take(name) else {
            continue;
        };
        let is_accepted = match usage {
            Use::Only(values) => values.contains(&value.as_str()),
            usage => *usage == Use::WithoutEffect,
        };
        if !is_accepted {
            let shown = if is_secret(name) { "…".to_owned() } else { value };
            return bad(name, shown, reason);
        }
    }
    Ok(())
}
