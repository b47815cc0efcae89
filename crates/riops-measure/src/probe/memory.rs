//! Memory of this machine and of the server's processes, and the share of the time in which tasks waited for CPU, memory or I/O.

use std::fs;

use super::reading::since;
use crate::host::machine::meminfo_bytes;
use crate::host::process;
use riops_model::record::{Memory, Pressure};

/// Reads the current values.
pub fn memory() -> Option<Memory> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(text: &str) -> Option<Memory> {
    Some(Memory {
        total_bytes: meminfo_bytes(text, "MemTotal:")?,
        available_bytes: meminfo_bytes(text, "MemAvailable:")?,
        cached_bytes: meminfo_bytes(text, "Cached:")?,
        dirty_bytes: meminfo_bytes(text, "Dirty:")?,
    })
}

/// Returns the memory of all processes of a server that they do not share, in bytes; `session` is one of them. `None` if the
/// kernel does not list the children of a process.
pub(super) fn memory_of_server(session: i32) -> Option<u64> {
    let first = process::Stat::read(session)?.parent;
    let children = process::read(first, &format!("task/{first}/children"))?;
    let page = rustix::param::page_size() as u64;
    // A process may exit at any time.
    let private = |id: &str| private_pages(&process::read(id, "statm")?);
    Some(children.split_ascii_whitespace().filter_map(private).sum::<u64>() * page)
}

/// Parses /proc/PID/statm: all pages, the pages in memory, and how many of these are shared with files and other processes.
fn private_pages(text: &str) -> Option<u64> {
    let mut pages = text.split_ascii_whitespace().skip(1).map(|pages| pages.parse::<u64>().ok());
    Some(pages.next()??.saturating_sub(pages.next()??))
}

/// Total time in which at least one task waited for CPU, memory and I/O, in microseconds, from /proc/pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PressureTotals([u64; 3]);

impl PressureTotals {
    pub(super) fn read() -> Option<Self> {
        let read =
            |what: &str| total_us(&fs::read_to_string(format!("/proc/pressure/{what}")).ok()?);
        Some(Self([read("cpu")?, read("memory")?, read("io")?]))
    }

    pub(super) fn share_since(self, earlier: Self, seconds: f64) -> Pressure {
        let share = |us: u64| (us as f64 / 1e6 / seconds).min(1.0);
        let [cpu_share, memory_share, io_share] = since(self.0, earlier.0).map(share);
        Pressure { cpu_share, memory_share, io_share }
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
        let read = parse(text).unwrap();
        assert_eq!(
            (read.total_bytes, read.cached_bytes, read.dirty_bytes),
            (102_400, 20_480, 3_072)
        );
        assert_eq!(parse("MemTotal: 1 kB"), None);
    }

    #[test]
    fn shared_pages_are_no_private_memory() {
        assert_eq!(private_pages("9000 700 650 12 0 80 0"), Some(50));
        assert_eq!(private_pages("9000 700"), None);
        let own = std::process::id().cast_signed();
        assert!(memory_of_server(own).is_none_or(|bytes| bytes > 0));
    }

    #[test]
    fn pressure_is_the_share_of_time_in_which_a_task_waited() {
        let text = "some avg10=1.0 avg60=0.0 avg300=0.0 total=2500000\nfull avg10=0 total=7\n";
        assert_eq!(total_us(text), Some(2_500_000));
        let waits = |us| PressureTotals([us, 0, us / 2]);
        let shares = waits(2_500_000).share_since(waits(500_000), 4.0);
        assert_eq!((shares.cpu_share, shares.memory_share, shares.io_share), (0.5, 0.0, 0.25));
    }
}
