//! Errors in connection settings.

use std::path::PathBuf;

use super::super::tls::TlsError;

/// Why connection settings cannot be used. Never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The text is neither a URL nor `key=value` pairs.
    #[error(
        "invalid connection string near {0}: expected a URL (postgresql://user@host/database) or key=value pairs"
    )]
    Syntax(String),
    /// The text seems to be a URL, but does not start with its scheme.
    #[error(
        "invalid connection string: a URL starts with postgresql://; the name of a database with special characters is written as dbname='…'"
    )]
    MistypedUrl,
    /// A parameter that is unknown or not supported by riops.
    #[error("unsupported connection parameter: {0}")]
    UnknownSetting(String),
    /// A parameter has an invalid value.
    #[error("invalid value \"{value}\" for connection parameter {name}{}: {reason}", in_variable(*.variable))]
    BadValue {
        /// Name of the parameter.
        name: &'static str,
        /// The environment variable that contains the value.
        variable: Option<&'static str>,
        /// The value, or `…` if it may contain a password.
        value: String,
        /// Why the value is invalid.
        reason: String,
    },
    /// No service file defines the service.
    #[error(
        "definition of service \"{0}\" not found in any service file (PGSERVICEFILE, ~/.pg_service.conf, PGSYSCONFDIR/pg_service.conf)"
    )]
    UnknownService(String),
    /// A service definition has an invalid line.
    #[error("syntax error in service file \"{}\", service \"{service}\": expected a parameter as key=value", .path.display())]
    BadServiceFile {
        /// Path of the service file.
        path: PathBuf,
        /// Name of the service.
        service: String,
    },
    /// A service file cannot be read, or not as a whole.
    #[error("cannot read service file \"{}\": {reason}", .path.display())]
    ServiceFile {
        /// Path of the service file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Certificates or keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn in_variable(variable: Option<&'static str>) -> String {
    variable.map_or_else(String::new, |name| format!(" ({name})"))
}
