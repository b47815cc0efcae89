//! Stored runs.

mod sqlite;

pub use sqlite::{RunSummary, SqliteStore, StoreError, default_path};
