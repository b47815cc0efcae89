//! Datasets in a server: made, found, locked, accounted for, verified and dropped.
//!
//! Everything lies in the schema `riops`, apart from adopted tables. Workloads describe datasets; this
//! module talks to the server.

mod adopted;
pub mod database;
mod ledger;
mod lock;
pub mod prepare;
mod registry;
mod routines;
mod verify;

pub use ledger::Changes;
pub use registry::{DatasetError, Entry, Registry, State};
pub use verify::verify;
