//! Counters of block devices, from /proc/diskstats.
//!
//! Field definitions: Linux kernel, Documentation/admin-guide/iostats.rst.

use std::fs;

use super::reading::since;
use super::topology::{Block, name};
use riops_model::record::DeviceUse;

/// Unit of the sector counters, independent of the device's own sector size.
const SECTOR_BYTES: f64 = 512.0;

/// A block device, or several that store the same data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device(Vec<Block>);

/// Counters of all members of a device since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCounters(Vec<BlockCounters>);

/// Counters of a block device since boot: reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, busy ms, and the
/// time of all requests from start to completion, added up, in ms.
type BlockCounters = [u64; 11];

impl Device {
    /// Returns the device with these members; `None` without any.
    pub fn of_blocks(members: Vec<Block>) -> Option<Self> {
        (!members.is_empty()).then_some(Self(members))
    }

    /// Reads the current counters.
    pub fn read(&self) -> Option<DeviceCounters> {
        self.counters(&fs::read_to_string("/proc/diskstats").ok()?)
    }

    /// Finds the counters in the text of /proc/diskstats.
    pub(super) fn counters(&self, stats: &str) -> Option<DeviceCounters> {
        let members = self.0.iter().map(|block| find(stats, block.major, block.minor));
        members.collect::<Option<_>>().map(DeviceCounters)
    }

    /// Returns the activity that these differences of the counters mean, in an interval of this length.
    pub fn usage(&self, change: &DeviceCounters, seconds: f64) -> DeviceUse {
        let mut sums = BlockCounters::default();
        for member in &change.0 {
            sums.iter_mut().zip(member).for_each(|(sum, count)| *sum += count);
        }
        let [reads, _, sectors_read, _, writes, _, sectors_written, _, _, _, request_ms] =
            sums.map(|sum| sum as f64 / seconds);
        let busiest_ms = change.0.iter().map(|[.., busy_ms, _]| *busy_ms).max().unwrap_or(0);
        DeviceUse {
            name: name(&self.0),
            reads_per_s: reads,
            writes_per_s: writes,
            read_mb_s: sectors_read * SECTOR_BYTES / 1e6,
            write_mb_s: sectors_written * SECTOR_BYTES / 1e6,
            busy_share: (busiest_ms as f64 / 1e3 / seconds).min(1.0),
            // Little's law: the time of all requests divided by the elapsed time.
            queue_depth: Some(request_ms / 1e3),
        }
    }
}

impl DeviceCounters {
    /// Returns the difference to `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.0.iter().zip(&earlier.0);
        Self(pairs.map(|(now, earlier)| since(*now, *earlier)).collect())
    }
}

/// Finds the line of a device: major, minor, name, and its counters.
fn find(stats: &str, major: u32, minor: u32) -> Option<BlockCounters> {
    stats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [found_major, found_minor, _, counters @ ..] = fields.as_slice() else {
            return None;
        };
        if found_major.parse() != Ok(major) || found_minor.parse() != Ok(minor) {
            return None;
        }
        let counters: Option<Vec<u64>> =
            counters.iter().take(11).map(|field| field.parse().ok()).collect();
        counters?.try_into().ok()
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
