//! Stored runs.

pub mod live;
mod sqlite;

pub use sqlite::{RunSummary, SqliteStore, StoreError, default_path};
