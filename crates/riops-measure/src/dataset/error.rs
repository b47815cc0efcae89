//! Errors of preparing, using and dropping a dataset.

use std::path::PathBuf;

use crate::server::{Connection, ConnectionError, ServerError};
use crate::workload::cbc::DATABASE;
use crate::workload::fill;
use riops_model::plan::PlanError;
use riops_model::record::Flavor;
use riops_model::units::sql::literal;

/// Refuses to adopt existing tables.
pub(super) fn refuse<T>(text: String) -> Result<T> {
    Err(DatasetError::Unadoptable(text))
}

impl From<PlanError> for DatasetError {
    /// The parameters of datasets that exist come from the registry, or from tables.
    fn from(error: PlanError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Returned by most functions of this module.
pub(super) type Result<T, E = DatasetError> = std::result::Result<T, E>;

/// The error of preparing, using or dropping a dataset.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The connection or a statement failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Session-level locks are not reliable on this connection.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Existing tables cannot be adopted.
    #[error("{0}")]
    Unadoptable(String),
    /// The dataset to drop is not in the schema that the user names.
    #[error(
        "the registered dataset of {workload} is in schema \"{registered}\", not in \"{asked}\", and was not dropped: to drop it, use `riops cleanup {workload} --schema {registered}`"
    )]
    OtherSchema {
        /// Name of the workload.
        workload: &'static str,
        /// The schema that the user names.
        asked: String,
        /// The schema of the dataset.
        registered: String,
    },
    /// A table or index with the required name exists that was not created by riops.
    #[error("relation \"{0}\" exists and was not created by riops: rename or drop it first")]
    Foreign(String),
    /// An object that riops did not create is attached to a table that must be dropped.
    #[error(
        "cannot drop table \"{table}\": \"{object}\", which riops did not create, is attached to it as a partition, parent, child or sequence; detach it first"
    )]
    Attached {
        /// Name of the table of riops.
        table: String,
        /// Name of the other object.
        object: String,
    },
    /// A role with fewer rights owns objects that a superuser would use.
    #[error(
        "the schema riops, or a table, routine or trigger function in it, belongs to role \"{0}\", whose code would be executed with the rights of a superuser: connect as \"{0}\", or change the owner"
    )]
    UntrustedOwner(String),
    /// A database with the required name exists that was not created by riops.
    #[error(
        "database \"{DATABASE}\" exists and was not created by riops: rename or drop it first, or use --place schema"
    )]
    ForeignDatabase,
    /// The database to be dropped has active connections.
    #[error(
        "cannot drop database \"{DATABASE}\": other sessions are connected, of another riops run cbc or another client{0}; wait until they have disconnected, or terminate them"
    )]
    DatabaseInUse(Holders),
    /// A routine with the required name exists that was not created by riops.
    #[error("routine \"riops.{0}\" exists and was not created by riops: rename or drop it first")]
    ForeignRoutine(&'static str),
    /// An option that the server does not support.
    #[error("{option} is not supported by {flavor}")]
    Unsupported {
        /// The option.
        option: &'static str,
        /// Flavor of the server.
        flavor: Flavor,
    },
    /// The dataset does not exist.
    #[error(
        "no dataset for the workload {workload} in {target}: create it with `riops prepare {workload}`, or run \
         with --prepare"
    )]
    Missing {
        /// Name of the workload.
        workload: &'static str,
        /// Connection settings of the database.
        target: String,
    },
    /// The load of the dataset did not complete.
    #[error(
        "the dataset for the workload {0} is incomplete (its preparation or load was interrupted): create it \
         again with `riops prepare {0}`"
    )]
    Incomplete(&'static str),
    /// A table of the dataset is missing.
    #[error(
        "table \"{table}\" is missing: create the dataset again with `riops prepare {workload} --recreate`"
    )]
    Gone {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the table.
        table: String,
    },
    /// A table of the dataset was replaced by another one.
    #[error(
        "table \"{table}\" was replaced by one that riops did not create: rename or drop it, then create the dataset \
         again with `riops prepare {workload} --recreate`"
    )]
    Replaced {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the table.
        table: String,
    },
    /// The dataset has different parameters.
    #[error(
        "the dataset for the workload {workload} was prepared with {option} {existing}, not {wanted}; {advice}\
         to replace it, run `riops prepare {workload} --recreate` with all its options"
    )]
    Differs {
        /// Name of the workload.
        workload: &'static str,
        /// The first option that differs.
        option: String,
        /// Its value in the registry.
        existing: String,
        /// The requested value.
        wanted: String,
        /// Alternative to replacing the dataset, followed by a semicolon and a space, or empty.
        advice: String,
    },
    /// Another riops uses or prepares the dataset.
    #[error(
        "another riops is using the dataset for the workload {workload} in this database, wait until it has finished{holders}"
    )]
    InUse {
        /// Name of the workload.
        workload: &'static str,
        /// The sessions that hold the lock.
        holders: Holders,
    },
    /// The device of the server has too little free space.
    #[error(
        "the dataset needs about {need}, but only {free} are free in {}: use fewer rows, free some space, or skip this check with {skip}",
        .path.display()
    )]
    NoSpace {
        /// How the check is skipped, as text.
        skip: String,
        /// The required space, as text.
        need: String,
        /// The free space, as text.
        free: String,
        /// Directory of the tables.
        path: PathBuf,
    },
    /// The registry contains invalid entries.
    #[error("table \"riops.dataset\" contains invalid data: {0}")]
    Damaged(String),
    /// The loaded data are not as expected.
    #[error("verification of the loaded data failed: {0}")]
    Wrong(String),
}

// The sessions for which a lock or a database must wait, for messages.

/// First key of the advisory locks: the letters `riop`.
pub(super) const LOCK_SPACE: i32 = 0x7269_6f70;

const LOCK_HOLDERS: &str = include_str!("../../sql/dataset/lock_holders.sql");
const CONNECTED: &str = include_str!("../../sql/dataset/connected.sql");

/// Sessions of other clients, as text; empty if they are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders(pub(crate) Vec<String>);

impl Holders {
    /// Returns the sessions that hold the advisory lock with this name. They are unknown if the query fails: the
    /// name is only for a message.
    pub(super) fn for_lock(connection: &mut Connection, name: &str) -> Self {
        let space = LOCK_SPACE.to_string();
        Self::query(connection, &fill(LOCK_HOLDERS, &[("space", &space), ("name", &literal(name))]))
    }

    /// Returns the sessions that are connected to a database.
    pub fn for_database(connection: &mut Connection, name: &str) -> Self {
        Self::query(connection, &fill(CONNECTED, &[("name", &literal(name))]))
    }

    /// Adds the sessions that are not in the list.
    pub(crate) fn merge(&mut self, more: Self) {
        let new: Vec<_> = more.0.into_iter().filter(|session| !self.0.contains(session)).collect();
        self.0.extend(new);
    }

    fn query(connection: &mut Connection, sql: &str) -> Self {
        Self(connection.query(sql).into_iter().flatten().flatten().flatten().collect())
    }
}

impl std::fmt::Display for Holders {
    /// Writes the sessions after a colon, or nothing.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => Ok(()),
            sessions => write!(formatter, ": {}", sessions.join("; ")),
        }
    }
}
