//! Bytes read by server processes, from the kernel's per-process counters: independent of the counters
//! of the device and of the database, so that the three can be compared.

use crate::record::ReadBytes;
use std::fs;

/// Maximum number of processes to read.
const PROCESSES_MAX: usize = 1_000;

/// I/O counters of several processes at one point in time, in the order of the processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessesIo(Vec<ReadBytes>);

impl ProcessesIo {
    /// Reads /proc/PID/io; `None` if any of them does not exist or is not readable.
    pub(super) fn read(processes: &[i32]) -> Option<Self> {
        if processes.is_empty() || processes.len() > PROCESSES_MAX {
            return None;
        }
        let of = |pid: &i32| parse(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?);
        processes.iter().map(of).collect::<Option<_>>().map(Self)
    }

    /// Returns the bytes that the same processes have read and written since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Option<ReadBytes> {
        let mut sum = ReadBytes::default();
        for (now, then) in self.0.iter().zip(&earlier.0) {
            sum.all += now.all.checked_sub(then.all)?;
            sum.device += now.device.checked_sub(then.device)?;
            sum.written += now.written.checked_sub(then.written)?;
        }
        Some(sum)
    }
}

/// Parses the lines `rchar: 123`, `wchar: 6` and `read_bytes: 45`.
fn parse(text: &str) -> Option<ReadBytes> {
    let number =
        |label: &str| text.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok());
    Some(ReadBytes {
        all: number("rchar:")?,
        device: number("read_bytes:")?,
        written: number("wchar:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(of: &[(u64, u64)]) -> ProcessesIo {
        ProcessesIo(
            of.iter().map(|&(all, device)| ReadBytes { all, device, written: all / 10 }).collect(),
        )
    }

    #[test]
    fn sums_the_differences_of_the_same_processes() {
        let earlier = processes(&[(100, 10), (50, 0)]);
        let later = processes(&[(400, 60), (150, 5)]);
        assert_eq!(later.since(&earlier), Some(ReadBytes { all: 400, device: 55, written: 40 }));
        // The process id was reused.
        assert_eq!(processes(&[(40, 0), (50, 0)]).since(&earlier), None);
    }

    #[test]
    fn parses_the_lines_of_the_kernel() {
        let text = "rchar: 3000\nwchar: 1\nsyscr: 2\nread_bytes: 8192\nwrite_bytes: 0\n";
        assert_eq!(parse(text), Some(ReadBytes { all: 3000, device: 8192, written: 1 }));
        assert_eq!(parse("rchar: x"), None);
        assert!(ProcessesIo::read(&[i32::try_from(std::process::id()).unwrap()]).is_some());
        assert_eq!(ProcessesIo::read(&[]), None);
    }
}
