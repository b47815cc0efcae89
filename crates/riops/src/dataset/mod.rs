//! Datasets in a database: creates, registers, locks, verifies and drops them.
//!
//! Everything is in the schema `riops`, except adopted tables. Workloads describe datasets; this module
//! sends the statements.

mod adopted;
mod catalog;
mod cleanup;
mod condition;
pub mod database;
mod error;
mod holders;
mod initialize;
mod ledger;
mod leftovers;
mod lock;
mod parallel;
pub mod pgbench;
pub mod prepare;
mod registry;
mod rights;
mod routines;
mod space;
pub mod sysbench;
mod verify;

pub use adopted::Unreported;
pub use cleanup::{Dropped, cleanup};
pub use error::DatasetError;
pub use holders::Holders;
pub use initialize::Initialization;
pub use ledger::Changes;
pub use lock::OnWait;
pub use registry::{Entry, Registry, State};
pub use rights::{Access, Needs, missing_grants};
pub use verify::verify;
