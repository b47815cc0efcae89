//! Results of commands on a dataset.

use super::CacheState;

/// The objects that were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Names of the dropped tables.
    pub tables: Vec<String>,
    /// Whether the dedicated database was dropped.
    pub database: bool,
    /// Databases that are named like the dedicated one and have no mark of riops. They are kept.
    pub foreign_databases: Vec<String>,
    /// Schema of adopted tables whose registration was removed. The tables are kept.
    pub unregistered_schema: Option<String>,
}

/// The tables that were read, and the state of the caches.
#[derive(Debug)]
pub struct Warmed {
    /// Number of tables.
    pub tables: usize,
    /// State of the caches after reading.
    pub state: CacheState,
}
