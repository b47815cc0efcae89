//! Stored runs.

mod sqlite;

pub use sqlite::{Listed, SqliteStore, StoreError, default_path};
