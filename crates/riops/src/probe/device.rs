//! The block device of a directory, with the counters of /proc/diskstats.
//!
//! Field definitions: Linux kernel, Documentation/admin-guide/iostats.rst.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Unit of the sector counters, independent of the device's own sector size.
const SECTOR_BYTES: f64 = 512.0;

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    major: u32,
    minor: u32,
    name: String,
}

/// Counters of a block device since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceCounters {
    reads: u64,
    sectors_read: u64,
    writes: u64,
    sectors_written: u64,
    busy_ms: u64,
}

/// Activity of a block device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Name of the device: `nvme0n1`.
    pub name: String,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Read rate, in MB (10^6 bytes) per second.
    pub read_mb_s: f64,
    /// Write rate, in MB per second.
    pub write_mb_s: f64,
    /// Share of the time with at least one request in flight, 0 to 1.
    pub busy_share: f64,
}

impl Device {
    /// Returns the device of `path`; `None` if it is not a block device (tmpfs, network or overlay file
    /// systems).
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let number = fs::metadata(path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let stats = fs::read_to_string("/proc/diskstats").ok()?;
        let (name, _) = find(&stats, major, minor)?;
        Some(Self { major, minor, name })
    }

    /// Returns the name of the device: `nvme0n1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the current counters.
    #[must_use]
    pub fn read(&self) -> Option<DeviceCounters> {
        let stats = fs::read_to_string("/proc/diskstats").ok()?;
        find(&stats, self.major, self.minor).map(|(_, counters)| counters)
    }

    pub(super) fn usage(&self, change: DeviceCounters, seconds: f64) -> DeviceUse {
        DeviceUse {
            name: self.name.clone(),
            reads_per_s: change.reads as f64 / seconds,
            writes_per_s: change.writes as f64 / seconds,
            read_mb_s: change.sectors_read as f64 * SECTOR_BYTES / 1e6 / seconds,
            write_mb_s: change.sectors_written as f64 * SECTOR_BYTES / 1e6 / seconds,
            busy_share: (change.busy_ms as f64 / 1e3 / seconds).min(1.0),
        }
    }
}

impl DeviceCounters {
    /// Returns the difference to `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            sectors_read: self.sectors_read.saturating_sub(earlier.sectors_read),
            writes: self.writes.saturating_sub(earlier.writes),
            sectors_written: self.sectors_written.saturating_sub(earlier.sectors_written),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
        }
    }
}

/// Finds the line of a device: major, minor, name, reads, merged, sectors, ms, writes, merged, sectors,
/// ms, in flight, busy ms, …
fn find(stats: &str, major: u32, minor: u32) -> Option<(String, DeviceCounters)> {
    stats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [found_major, found_minor, name, counters @ ..] = fields.as_slice() else {
            return None;
        };
        if found_major.parse() != Ok(major) || found_minor.parse() != Ok(minor) {
            return None;
        }
        let counters: Vec<u64> =
            counters.iter().take(10).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [reads, _, sectors_read, _, writes, _, sectors_written, _, _, busy_ms] =
            *counters.as_slice()
        else {
            return None;
        };
        let counters = DeviceCounters { reads, sectors_read, writes, sectors_written, busy_ms };
        Some(((*name).to_owned(), counters))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = " 7 0 loop0 1 0 2 3 0 0 0 0 0 1 1\n 254 0 vda 1000 5 80000 70 500 6 16000 90 0 4000 160 0 0 0 0 0 0\n";

    #[test]
    fn computes_rates_from_the_counters_of_a_device() {
        let (name, counters) = find(STATS, 254, 0).unwrap();
        assert_eq!(name, "vda");
        let device = Device { major: 254, minor: 0, name };
        let usage = device.usage(counters, 8.0);
        assert_eq!((usage.reads_per_s, usage.writes_per_s), (125.0, 62.5));
        assert_eq!((usage.read_mb_s, usage.write_mb_s), (5.12, 1.024));
        assert_eq!(usage.busy_share, 0.5);
    }

    #[test]
    fn returns_none_for_an_unknown_device() {
        assert_eq!(find(STATS, 8, 0), None);
        assert_eq!(find("254 0 vda x", 254, 0), None);
    }
}
