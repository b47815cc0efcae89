//! Memory of this machine, and the share of the time in which tasks waited for CPU, memory or I/O.

use crate::record::{Memory, Pressure};
use std::fs;

impl Memory {
    /// Reads the current values.
    #[must_use]
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |label: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(Self {
            total_bytes: bytes("MemTotal")?,
            available_bytes: bytes("MemAvailable")?,
            cached_bytes: bytes("Cached")?,
            dirty_bytes: bytes("Dirty")?,
        })
    }
}

/// Total time in which at least one task waited, in microseconds, from /proc/pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PressureTotals {
    cpu: u64,
    memory: u64,
    io: u64,
}

impl PressureTotals {
    pub(super) fn read() -> Option<Self> {
        let read =
            |what: &str| total_us(&fs::read_to_string(format!("/proc/pressure/{what}")).ok()?);
        Some(Self { cpu: read("cpu")?, memory: read("memory")?, io: read("io")? })
    }

    pub(super) fn share_since(self, earlier: Self, seconds: f64) -> Pressure {
        let share =
            |now: u64, then: u64| (now.saturating_sub(then) as f64 / 1e6 / seconds).min(1.0);
        Pressure {
            cpu_share: share(self.cpu, earlier.cpu),
            memory_share: share(self.memory, earlier.memory),
            io_share: share(self.io, earlier.io),
        }
    }
}

/// Parses the total of the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`.
fn total_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_memory_in_bytes() {
        let text = "MemTotal:       100 kB\nMemFree: 5 kB\nMemAvailable:   50 kB\nCached:  20 kB\nSwapCached: 1 kB\nDirty: 3 kB\n";
        let read = Memory::parse(text).unwrap();
        assert_eq!(
            (read.total_bytes, read.cached_bytes, read.dirty_bytes),
            (102_400, 20_480, 3_072)
        );
        assert_eq!(Memory::parse("MemTotal: 1 kB"), None);
    }

    #[test]
    fn pressure_is_the_share_of_time_in_which_a_task_waited() {
        let text = "some avg10=1.0 avg60=0.0 avg300=0.0 total=2500000\nfull avg10=0 total=7\n";
        assert_eq!(total_us(text), Some(2_500_000));
        let waits = |us| PressureTotals { cpu: us, memory: 0, io: us / 2 };
        let found = waits(2_500_000).share_since(waits(500_000), 4.0);
        assert_eq!((found.cpu_share, found.memory_share, found.io_share), (0.5, 0.0, 0.25));
    }
}
