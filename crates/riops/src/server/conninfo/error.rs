//! Why connection settings cannot be used.

use std::path::PathBuf;

use super::super::tls::TlsError;

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
