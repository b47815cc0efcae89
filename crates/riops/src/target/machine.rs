//! The machine that riops itself runs on, and with it often the server.

use std::fs;

use serde::{Deserialize, Serialize};

/// What the record keeps of the client's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Its name.
    pub host: String,
    /// Operating system, release and architecture.
    pub kernel: String,
    /// Processors that riops may use.
    pub cpus: usize,
    /// Memory that riops may use, in bytes.
    pub memory_bytes: u64,
}

impl MachineFacts {
    /// Asks the operating system.
    #[must_use]
    pub fn read() -> Self {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Self {
            host: text(system.nodename()),
            kernel: format!(
                "{} {} {}",
                text(system.sysname()),
                text(system.release()),
                text(system.machine())
            ),
            cpus: cpus(),
            memory_bytes: memory_bytes(),
        }
    }
}

/// Processors that this process may use; 1 where that cannot be told.
#[must_use]
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The machine's memory, or the limit of the control group where that is lower; 0 where neither
/// can be told.
#[must_use]
pub fn memory_bytes() -> u64 {
    let limit = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = meminfo_bytes(&meminfo).unwrap_or(0);
    limit.map_or(machine, |limit| limit.min(machine))
}

/// `MemTotal` of the text of /proc/meminfo, in bytes.
fn meminfo_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_memory_is_read_in_bytes() {
        let text = "MemFree: 5 kB\nMemTotal:       24576 kB\n";
        assert_eq!(meminfo_bytes(text), Some(24576 * 1024));
        assert_eq!(meminfo_bytes("MemTotal: much"), None);
    }
}
