//! What a transaction cost: the counters around a stage, divided by its transactions.

use serde::{Deserialize, Serialize};

/// What a successful transaction of a stage cost on average: all that server and client counted, also for other sessions and
/// for transactions that failed. A value that was not counted is absent.
///
/// CPU, context switches, devices and network are those of the measurement. The counters of the database arrive up to a
/// second late; they are those from before the first session connected until after the last one ended, divided by all
/// acknowledged transactions, with those of the warm-up.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostRecord {
    /// Rows per transaction.
    pub rows: f64,
    /// CPU time of all processes of the server, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Time in which processes of the server waited for a processor, in microseconds.
    pub server_run_queue_us: Option<f64>,
    /// CPU time of riops, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// Context switches of the client's machine.
    pub context_switches: Option<f64>,
    /// Accesses to blocks that were in shared buffers: of the tables of the dataset, otherwise of the database.
    pub blocks_hit: Option<f64>,
    /// Accesses to blocks that were not.
    pub blocks_read: Option<f64>,
    /// Blocks that the statements of the run changed first, from `pg_stat_statements`.
    pub blocks_dirtied: Option<f64>,
    /// Blocks that sessions and checkpoints wrote, or added to a table.
    pub blocks_written: Option<f64>,
    /// Bytes of write-ahead log.
    pub wal_bytes: Option<f64>,
    /// Records of write-ahead log.
    pub wal_records: Option<f64>,
    /// Full-page images in it.
    pub wal_full_page_images: Option<f64>,
    /// Bytes of temporary files.
    pub temporary_bytes: Option<f64>,
    /// Reads of all disks of the server.
    pub device_reads: Option<f64>,
    /// Bytes read.
    pub device_read_bytes: Option<f64>,
    /// Writes of all disks of the server.
    pub device_writes: Option<f64>,
    /// Bytes written.
    pub device_written_bytes: Option<f64>,
    /// Bytes that the client's machine received.
    pub received_bytes: Option<f64>,
    /// Bytes that it sent.
    pub sent_bytes: Option<f64>,
    /// Growth of the tables of the dataset, in bytes; negative if they became smaller.
    pub table_bytes: Option<f64>,
    /// Growth of their indexes.
    pub index_bytes: Option<f64>,
    /// Each disk of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskCost>,
}

/// What a transaction cost one disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Name of the disk.
    pub name: String,
    /// What the server stores on it.
    pub roles: Vec<String>,
    /// Reads.
    pub reads: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}
