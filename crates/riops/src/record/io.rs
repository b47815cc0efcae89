//! Logical and physical I/O of a stage, and where its blocks came from.

use serde::{Deserialize, Serialize};

use super::device::{DeviceUse, DiskUse};

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
    /// What else accessed the tables of the dataset during the stage. LIOPS and blocks per row include it; they
    /// are exact only without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_include: Vec<String>,
    /// Where the blocks of the rows came from.
    pub sources: Option<Sources>,
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
    /// Found in the page cache of the operating system: what the server processes read, but not from the device.
    /// This share and that of the device are absent if neither processes nor device can be observed, if the
    /// processes also read other files, and if the server read asynchronously, in processes whose reads cannot be
    /// assigned to the sessions. Records of earlier releases have shares that were counted independently.
    pub page_cache_share: Option<f64>,
    /// Read from the device. If the server processes cannot be observed, these are all reads of the device.
    pub device_share: Option<f64>,
}

impl Sources {
    /// Returns the sum of the shares; `None` if one of them is absent.
    #[must_use]
    pub fn sum(&self) -> Option<f64> {
        Some(self.buffers_share + self.page_cache_share? + self.device_share?)
    }
}
