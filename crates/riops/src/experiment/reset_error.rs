//! Errors of resetting a dataset.

use crate::dataset::{DatasetError, Holders};
use crate::plan::PlanError;
use crate::record::Flavor;
use crate::run::RunError;
use crate::server::ConnectionError;

/// Why a dataset could not be brought into its defined state.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The server cannot copy a database as required.
    #[error("reset = \"restore\" is not supported by {0}: use reset = \"prepare\"")]
    Unsupported(Flavor),
    /// Other sessions are connected to the database.
    #[error(
        "cannot copy or drop database \"{database}\" while other sessions are connected to it{holders}; end them, or use a separate database for the dataset"
    )]
    InUse {
        /// Name of the database.
        database: String,
        /// The sessions.
        holders: Holders,
    },
    /// A database with the required name exists that this experiment did not create.
    #[error(
        "database \"{0}\" exists and was not created by this experiment: rename or drop it first"
    )]
    Foreign(String),
    /// The role may not create or copy a database.
    #[error(
        "cannot copy database \"{database}\": {source}; the role needs the attribute CREATEDB and must own the database, or use reset = \"prepare\""
    )]
    Privilege {
        /// Name of the database.
        database: String,
        /// Error of the server.
        source: Box<ConnectionError>,
    },
    /// A setting of the database cannot be set for the copy.
    #[error(
        "cannot set \"{name}\" for the copy of the database as ALTER DATABASE … SET did for the database: {source}"
    )]
    Setting {
        /// Name of the setting.
        name: String,
        /// Error of the server.
        source: Box<ConnectionError>,
    },
    /// The dataset cannot be found.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The dataset cannot be prepared.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The connection or a statement failed, or the user interrupted it.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<PlanError> for ResetError {
    fn from(error: PlanError) -> Self {
        Self::Run(error.into())
    }
}

impl ResetError {
    /// Returns whether the user interrupted the reset.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let is_interrupt = |error: &ConnectionError| matches!(error, ConnectionError::Interrupted);
        match self {
            Self::Connection(error) | Self::Dataset(DatasetError::Connection(error)) => {
                is_interrupt(error)
            }
            Self::Setting { source, .. } => is_interrupt(source),
            Self::Run(error) => error.connection_error().is_some_and(is_interrupt),
            _ => false,
        }
    }
}
