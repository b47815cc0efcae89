//! Sources of settings that a connection string omits: the service file, the `PG*` variables and the
//! password file.

use std::path::{Path, PathBuf};

use super::error::ConnInfoError;
use super::files::{self, PasswordFile};
use super::server::{Host, Server};
use super::text::Settings;
use super::values::SOCKET_DIRECTORIES;

/// Settings and their environment variables.
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

/// Session settings that libpq takes from the environment.
const SESSION_SETTINGS: [(&str, &str); 3] =
    [("datestyle", "PGDATESTYLE"), ("timezone", "PGTZ"), ("geqo", "PGGEQO")];

/// Returns the session settings of the environment. As in libpq, `default` leaves the choice to the server.
pub(super) fn session_settings(
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<(&'static str, String)> {
    let is_set = |value: &String| !value.is_empty() && !value.eq_ignore_ascii_case("default");
    let value = |name| environment(name).filter(is_set);
    SESSION_SETTINGS.iter().filter_map(|(setting, name)| Some((*setting, value(name)?))).collect()
}

/// Adds settings that the connection string omits: first from the service, then from the variables.
pub(super) fn fill_in(
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

/// Returns the password from the password file. As in libpq, a socket in the default directory has
/// the host name `localhost` there.
pub(super) fn password_of(
    file: &PasswordFile,
    server: &Server,
    database: &str,
    user: &str,
) -> Option<String> {
    let host = match &server.host {
        Host::Unix(folder) if SOCKET_DIRECTORIES.iter().any(|known| Path::new(known) == folder) => {
            "localhost".to_owned()
        }
        Host::Unix(folder) => folder.display().to_string(),
        Host::Tcp(name) => name.clone(),
    };
    file.find([&host, &server.port.to_string(), database, user])
}
