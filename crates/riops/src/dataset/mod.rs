//! Datasets in a server: made, found, locked, accounted for, verified and dropped.
//!
//! Everything lies in the schema `riops`, apart from adopted tables. Workloads describe datasets; this
//! module talks to the server.

mod adopted;
mod cleanup;
pub mod database;
mod error;
mod ledger;
mod leftovers;
mod lock;
pub mod prepare;
mod registry;
mod routines;
pub mod sysbench;
mod verify;

pub use cleanup::{Dropped, cleanup};
pub use error::DatasetError;
pub use ledger::Changes;
pub use registry::{Entry, Registry, State};
pub use verify::verify;
