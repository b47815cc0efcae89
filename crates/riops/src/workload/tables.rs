//! What a dataset consists of: tables, and the jobs that fill them. Plain descriptions; `dataset` makes them.

use serde_json::Value;

/// A row of COPY data at a time, until it returns false.
pub type CopySource = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// One transaction of loading.
pub enum Job {
    /// COPY FROM STDIN with data made here.
    Copy {
        /// The statement.
        sql: String,
        /// Rows that it brings.
        rows: u64,
        /// The data.
        source: CopySource,
    },
    /// A statement that makes the rows in the server.
    Sql {
        /// The statement.
        sql: String,
        /// Rows that it brings.
        rows: u64,
    },
}

/// A table of a dataset and how it is filled.
pub struct Table {
    /// Its name with its schema.
    pub name: String,
    /// Statements that make it, empty, as one text.
    pub create: String,
    /// How many jobs fill it.
    pub jobs: u64,
    /// Makes one of them, by its number from 0.
    pub job: Box<dyn Fn(u64) -> Job + Send + Sync>,
    /// Statements that follow when it is full: indexes, statistics. Each is run by itself.
    pub finish: Vec<String>,
    /// What has to be zero then.
    pub zeros: Vec<Zero>,
    /// Its rows, when it is full.
    pub rows: u64,
}

/// A number that has to be zero in a table that was just made.
pub struct Zero {
    /// What is counted.
    pub what: String,
    /// The query.
    pub sql: String,
}

/// What `prepare` makes for a workload.
#[derive(Default)]
pub struct Dataset {
    /// Its parameters, for the registry.
    pub parameters: Value,
    /// Queries that fail where the parameters make no sense to the server, before anything is
    /// dropped or made.
    pub probes: Vec<String>,
    /// Settings of the sessions that load.
    pub settings: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
}
