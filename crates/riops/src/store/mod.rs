//! Stored runs: one store, two backends (a SQLite file, a PostgreSQL database) with the same tables.
//!
//! The JSON of the record is the truth. All other tables are derived from it, in the same transaction, so that a
//! person can query them and lists never read the JSON. A store must not interpret the records.

mod backend;
mod derive;
mod error;
mod experiment_lock;
mod experiments;
mod filter;
pub mod live;
mod location;
mod postgresql;
mod schema;
mod shared;
mod sqlite;
mod value;

pub use error::StoreError;
pub use experiment_lock::ExperimentLock;
pub use experiments::{ExperimentState, StoredExperiment};
pub use filter::RunFilter;
pub use location::{StoreLocation, default_path};
pub use shared::{EditNotes, Store, all_runs, open, open_existing};

#[cfg(test)]
mod tests;
