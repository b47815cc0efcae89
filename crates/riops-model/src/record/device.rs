//! The block devices of the server: file system, rates over a stage, maximum rates; logical and physical I/O of a stage.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Rates of a block device over a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Name of the device, for example `nvme0n1`.
    pub name: String,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// MB (10^6 bytes) read per second.
    pub read_mb_s: f64,
    /// MB written per second.
    pub write_mb_s: f64,
    /// Share of the time with at least one request in flight, 0 to 1.
    pub busy_share: f64,
    /// Mean number of requests in flight.
    pub queue_depth: Option<f64>,
}

/// Rates of a disk over a stage, and what the server stores on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskUse {
    /// `data` (the data directory), `wal`, `tablespace NAME` (with measured tables or indexes), `temporary`.
    pub roles: Vec<String>,
    /// Name and rates.
    #[serde(flatten)]
    pub usage: DeviceUse,
}

/// A disk of the server. Unknown values are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Name of the disk, for example `nvme0n1`.
    pub name: String,
    /// Files that the server stores on it, as in [`DiskUse`].
    pub roles: Vec<String>,
    /// Model name that the disk reports.
    pub model: Option<String>,
    /// Hash of the ids of machine, disk and volume.
    pub identity: Option<String>,
    /// Its maximum rates, if they were measured before.
    pub disk_limit: Option<DiskLimit>,
}

/// The file system and the device of the server's data. Unknown values are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// File system: `ext4`, `xfs`, `tmpfs`, …
    pub file_system: Option<String>,
    /// Mount options.
    pub mount_options: Option<String>,
    /// Block device of the file system.
    pub device: Option<String>,
    /// Model name that the device reports.
    pub model: Option<String>,
    /// Whether the kernel reports the device as rotational.
    pub rotational: Option<bool>,
    /// I/O scheduler: `none`, `mq-deadline`, …
    pub scheduler: Option<String>,
}

/// One measurement of a device.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskRate {
    /// MB (10^6 bytes) per second.
    pub mb_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// 99th percentile of the latency, in microseconds.
    pub p99_us: Option<f64>,
    /// Number of fio jobs, each with its own queue.
    pub jobs: Option<u32>,
}

/// Maximum rates of a device, measured with fio. Also the format of the run store and of `doctor --disk`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskLimit {
    /// Name of the device, for example `nvme0n1`.
    pub device: String,
    /// Identity of the device: a hash of the ids of machine, disk and volume.
    pub identity: Option<String>,
    /// Time of the measurement.
    pub measured_at: Timestamp,
    /// Name and version of the program that measured it.
    pub tool: String,
    /// Size of the test file, in bytes.
    pub file_bytes: u64,
    /// Length of each measurement, in seconds.
    pub seconds: f64,
    /// Sequential reads of 1 MiB, 16 in flight per job.
    pub sequential_read: DiskRate,
    /// Sequential writes of 1 MiB, 16 in flight per job.
    pub sequential_write: DiskRate,
    /// Random reads of one database block, 64 in flight per job.
    pub random_read: DiskRate,
    /// Random writes of one database block, 64 in flight per job.
    pub random_write: DiskRate,
    /// Writes of one database block, each of which is synchronized (fdatasync) before the next one; absent in records of
    /// earlier releases.
    pub synchronized_write: Option<DiskRate>,
    /// Share of the time before the tests in which the device was busy with the requests of others, 0 to 1; absent in records
    /// of earlier releases.
    #[serde(default)]
    pub others_busy_share: Option<f64>,
}

/// Logical and physical I/O of a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IoRecord {
    /// Logical block reads (hits and reads) per second, in the tables and indexes of the dataset.
    pub liops: Option<f64>,
    /// Physical reads per second from the device, by all processes.
    pub piops: Option<f64>,
    /// Share of the logical reads that hit shared buffers, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Logical reads per row.
    pub blocks_per_row: Option<f64>,
    /// Other activity that accessed the tables of the dataset during the stage. LIOPS and blocks per row include
    /// it; they are exact only if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_include: Vec<String>,
    /// Where the blocks of the rows came from.
    pub sources: Option<Sources>,
    /// Share of the bytes that sessions and I/O workers read for which the workers were responsible, 0 to 1; 0 if no
    /// statement can read asynchronously. Absent if unknown, as with `io_uring`, and if the server reads nothing asynchronously.
    pub async_read_share: Option<f64>,
    /// Write-ahead log, in MB (10^6 bytes) per second.
    pub wal_mb_s: Option<f64>,
    /// Storage requests per row, if the server has no blocks (`YugabyteDB`).
    pub storage_requests_per_row: Option<f64>,
    /// The device of the measured tables and indexes. If they are on several, or their file system is: the
    /// sum of the rates, and the busy share of the busiest.
    #[serde(flatten)]
    pub device: Option<DeviceUse>,
    /// The disks of the server, below partitions and logical volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DiskUse>,
}

/// Shares of the accesses to the blocks of the rows, 0 to 1. They add up to 1.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Found in shared buffers.
    pub buffers_share: f64,
    /// Found in the page cache of the operating system: blocks that the server processes read, but not from the
    /// device. This share and the device's share are absent if neither processes nor device can be observed, if the
    /// processes also read other files, or if the server read asynchronously, in processes whose reads cannot be
    /// assigned to the sessions. Records of earlier releases have shares that were counted independently.
    pub page_cache_share: Option<f64>,
    /// Read from the device. If the server processes cannot be observed, these are all reads of the device.
    pub device_share: Option<f64>,
}

impl Sources {
    /// Returns the sum of the shares; `None` if one of them is absent.
    pub fn sum(&self) -> Option<f64> {
        Some(self.buffers_share + self.page_cache_share? + self.device_share?)
    }
}
