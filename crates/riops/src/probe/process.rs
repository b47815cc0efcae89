//! What the server's processes have read, by the kernel's own accounts of them: apart from the
//! device's counters and from the database's, so that the three can be held against each other.

use std::fs;

/// More processes than this are not asked one by one.
const PROCESSES_MAX: usize = 1_000;

/// Bytes that processes have read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadBytes {
    /// By system calls, wherever they came from.
    pub all: u64,
    /// Fetched from a device for them, read-ahead included.
    pub device: u64,
    /// Written by system calls, wherever that went.
    pub written: u64,
}

/// The accounts of some processes at one moment, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Accounts(Vec<ReadBytes>);

impl Accounts {
    /// Reads /proc/PID/io; `None` where one may not be read, or is gone.
    pub(super) fn read(processes: &[i32]) -> Option<Self> {
        if processes.is_empty() || processes.len() > PROCESSES_MAX {
            return None;
        }
        let of = |pid: &i32| parse(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?);
        processes.iter().map(of).collect::<Option<_>>().map(Self)
    }

    /// What the same processes have read since `earlier`.
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

/// The lines `rchar: 123`, `wchar: 6` and `read_bytes: 45`.
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

    fn accounts(of: &[(u64, u64)]) -> Accounts {
        Accounts(
            of.iter().map(|&(all, device)| ReadBytes { all, device, written: all / 10 }).collect(),
        )
    }

    #[test]
    fn the_difference_of_the_same_processes_is_summed() {
        let earlier = accounts(&[(100, 10), (50, 0)]);
        let later = accounts(&[(400, 60), (150, 5)]);
        assert_eq!(later.since(&earlier), Some(ReadBytes { all: 400, device: 55, written: 40 }));
        // Another process has the number now.
        assert_eq!(accounts(&[(40, 0), (50, 0)]).since(&earlier), None);
    }

    #[test]
    fn the_kernel_s_lines_are_read() {
        let text = "rchar: 3000\nwchar: 1\nsyscr: 2\nread_bytes: 8192\nwrite_bytes: 0\n";
        assert_eq!(parse(text), Some(ReadBytes { all: 3000, device: 8192, written: 1 }));
        assert_eq!(parse("rchar: x"), None);
        assert!(Accounts::read(&[i32::try_from(std::process::id()).unwrap()]).is_some());
        assert_eq!(Accounts::read(&[]), None);
    }
}
