//! Counters of block devices, from /proc/diskstats.
//!
//! Field definitions: Linux kernel, Documentation/admin-guide/iostats.rst.

use std::fs;
use std::path::Path;

use super::topology::{Block, Topology};
use crate::record::DeviceUse;

/// Unit of the sector counters, independent of the device's own sector size.
const SECTOR_BYTES: f64 = 512.0;

/// A block device, or several that store the same data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    members: Vec<Block>,
    name: String,
}

/// Counters of all members of a device since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCounters(Vec<BlockCounters>);

/// Counters of a block device since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BlockCounters {
    reads: u64,
    sectors_read: u64,
    writes: u64,
    sectors_written: u64,
    busy_ms: u64,
    /// Time of all requests from start to completion, added up.
    request_ms: u64,
}

impl Device {
    /// Returns the device of `path`; `None` if it is not on a block device (tmpfs, network file systems).
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        Self::of_blocks(Topology::of_this_machine().volume(path)?.members)
    }

    /// Returns the device with these members; `None` without any.
    #[must_use]
    pub fn of_blocks(members: Vec<Block>) -> Option<Self> {
        let names: Vec<_> = members.iter().map(|block| block.name.as_str()).collect();
        let name = names.join("+");
        (!members.is_empty()).then_some(Self { members, name })
    }

    /// Returns the name of the device: `nvme0n1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the current counters.
    #[must_use]
    pub fn read(&self) -> Option<DeviceCounters> {
        self.counters(&fs::read_to_string("/proc/diskstats").ok()?)
    }

    /// Finds the counters in the text of /proc/diskstats.
    pub(super) fn counters(&self, stats: &str) -> Option<DeviceCounters> {
        let members = self.members.iter().map(|block| find(stats, block.major, block.minor));
        members.collect::<Option<_>>().map(DeviceCounters)
    }

    /// Returns the activity that these differences of the counters mean, in an interval of this length.
    #[must_use]
    pub fn usage(&self, change: &DeviceCounters, seconds: f64) -> DeviceUse {
        let sum = |count: fn(&BlockCounters) -> u64| {
            change.0.iter().map(count).sum::<u64>() as f64 / seconds
        };
        let busiest_ms = change.0.iter().map(|member| member.busy_ms).max().unwrap_or(0);
        DeviceUse {
            name: self.name.clone(),
            reads_per_s: sum(|member| member.reads),
            writes_per_s: sum(|member| member.writes),
            read_mb_s: sum(|member| member.sectors_read) * SECTOR_BYTES / 1e6,
            write_mb_s: sum(|member| member.sectors_written) * SECTOR_BYTES / 1e6,
            busy_share: (busiest_ms as f64 / 1e3 / seconds).min(1.0),
            // Little's law: the time of all requests divided by the elapsed time.
            queue_depth: Some(sum(|member| member.request_ms) / 1e3),
        }
    }
}

impl DeviceCounters {
    /// Returns the difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.0.iter().zip(&earlier.0);
        Self(pairs.map(|(now, earlier)| now.since(*earlier)).collect())
    }
}

impl BlockCounters {
    fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            sectors_read: self.sectors_read.saturating_sub(earlier.sectors_read),
            writes: self.writes.saturating_sub(earlier.writes),
            sectors_written: self.sectors_written.saturating_sub(earlier.sectors_written),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            request_ms: self.request_ms.saturating_sub(earlier.request_ms),
        }
    }
}

/// Finds the line of a device: major, minor, name, reads, merged, sectors, ms, writes, merged, sectors,
/// ms, in flight, busy ms, weighted ms, …
fn find(stats: &str, major: u32, minor: u32) -> Option<BlockCounters> {
    stats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [found_major, found_minor, _, counters @ ..] = fields.as_slice() else {
            return None;
        };
        if found_major.parse() != Ok(major) || found_minor.parse() != Ok(minor) {
            return None;
        }
        let counters: Vec<u64> =
            counters.iter().take(11).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [reads, _, sectors_read, _, writes, _, sectors_written, _, _, busy_ms, request_ms] =
            *counters.as_slice()
        else {
            return None;
        };
        Some(BlockCounters { reads, sectors_read, writes, sectors_written, busy_ms, request_ms })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = " 7 0 loop0 100 0 2 3 0 0 0 0 0 6000 8000\n 254 0 vda 1000 5 80000 70 500 6 16000 90 0 4000 20000 0 0 0 0 0 0\n";

    fn device(members: &[(u32, u32, &str)]) -> Device {
        let block = |&(major, minor, name): &(u32, u32, &str)| Block {
            major,
            minor,
            name: name.to_owned(),
        };
        Device::of_blocks(members.iter().map(block).collect()).unwrap()
    }

    #[test]
    fn computes_rates_and_queue_depth_from_the_counters_of_a_device() {
        let device = device(&[(254, 0, "vda")]);
        let usage = device.usage(&device.counters(STATS).unwrap(), 8.0);
        assert_eq!(usage.name, "vda");
        assert_eq!((usage.reads_per_s, usage.writes_per_s), (125.0, 62.5));
        assert_eq!((usage.read_mb_s, usage.write_mb_s), (5.12, 1.024));
        assert_eq!((usage.busy_share, usage.queue_depth), (0.5, Some(2.5)));
    }

    #[test]
    fn adds_up_the_rates_of_all_members_and_shows_the_busiest() {
        let device = device(&[(254, 0, "vda"), (7, 0, "loop0")]);
        let usage = device.usage(&device.counters(STATS).unwrap(), 8.0);
        assert_eq!((usage.name.as_str(), usage.reads_per_s), ("vda+loop0", 137.5));
        assert_eq!((usage.busy_share, usage.queue_depth), (0.75, Some(3.5)));
    }

    #[test]
    fn returns_none_for_an_unknown_device() {
        assert_eq!(device(&[(8, 0, "sda")]).counters(STATS), None);
        assert_eq!(device(&[(254, 0, "vda"), (8, 0, "sda")]).counters(STATS), None);
        assert_eq!(find("254 0 vda x", 254, 0), None);
        assert_eq!(Device::of_blocks(Vec::new()), None);
    }
}
