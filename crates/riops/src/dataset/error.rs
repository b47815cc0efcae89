//! Why a dataset cannot be prepared, used or dropped.

use crate::server::{ConnectionError, Flavor, ServerError};

/// Why a dataset cannot be made, used or dropped.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The connection or a statement failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Session locks cannot be relied on.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Tables that somebody else has made cannot be measured.
    #[error("{0}")]
    Unadoptable(String),
    /// Somebody else's table has the name.
    #[error("the table {0} exists and was not made by riops: rename or drop it first")]
    Foreign(String),
    /// Somebody else's database has the name.
    #[error(
        "the database {0} exists and was not made by riops: rename or drop it first, or use --place schema"
    )]
    ForeignDatabase(&'static str),
    /// Somebody is in a database that is to be dropped.
    #[error(
        "somebody is connected to the database {0}, which is to be dropped: another riops run cbc, or a session in what an earlier one has left; wait for it, or end it"
    )]
    DatabaseInUse(&'static str),
    /// Somebody else's routine has the name.
    #[error("the routine riops.{0} exists and was not made by riops: rename or drop it first")]
    ForeignRoutine(&'static str),
    /// An option that only another relative of PostgreSQL has.
    #[error("{option} is for YugabyteDB: the target is {flavor}")]
    Unsupported {
        /// The option.
        option: &'static str,
        /// The target.
        flavor: Flavor,
    },
    /// There is no dataset.
    #[error(
        "there is no dataset for the workload {workload} in {target}: make one there with: \
         riops prepare {workload}, or let the run do it with --prepare"
    )]
    Missing {
        /// Name of the workload.
        workload: &'static str,
        /// Where.
        target: String,
    },
    /// The dataset was not loaded to its end.
    #[error(
        "the dataset for the workload {0} is incomplete (its preparation or load did not end): make it \
         anew with: riops prepare {0}"
    )]
    Incomplete(&'static str),
    /// A table of it is not there any more, or is another one.
    #[error(
        "the table {table} is gone, or not the one that riops made: make the dataset anew \
         with: riops prepare {workload} --recreate"
    )]
    Gone {
        /// Name of the workload.
        workload: &'static str,
        /// The table.
        table: String,
    },
    /// The dataset has other parameters.
    #[error(
        "the dataset for the workload {workload} was prepared with {option} {found}, not {wanted}; \
         to replace it, prepare it with --recreate and all the options that it is to have"
    )]
    Differs {
        /// Name of the workload.
        workload: &'static str,
        /// The first option that differs.
        option: String,
        /// Its value in the registry.
        found: String,
        /// The value asked for.
        wanted: String,
    },
    /// Somebody uses it, or makes it.
    #[error(
        "another riops is using the dataset for the workload {0} in this database: wait for it to end"
    )]
    InUse(&'static str),
    /// The registry has entries that cannot be read.
    #[error("the registry riops.dataset is damaged: {0}")]
    Damaged(String),
    /// What was loaded is not what was sent.
    #[error("the loaded data are wrong: {0}")]
    Wrong(String),
}
