//! Bytes read by server processes, from the kernel's per-process counters: independent of the counters
//! of the device and of the database, so that the three can be compared.

use crate::host::process::Io;
use riops_model::record::ReadBytes;

/// Maximum number of processes to read.
const PROCESSES_MAX: usize = 1_000;

/// I/O counters of several processes at one point in time, in the order of the processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessesIo(Vec<Io>);

impl ProcessesIo {
    /// Reads /proc/PID/io; `None` if any of them does not exist or is not readable.
    pub(super) fn read(processes: &[i32]) -> Option<Self> {
        if processes.is_empty() || processes.len() > PROCESSES_MAX {
            return None;
        }
        processes.iter().map(|&process| Io::read(process)).collect::<Option<_>>().map(Self)
    }

    /// Returns the bytes that the same processes have read and written since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Option<ReadBytes> {
        let mut sum = ReadBytes::default();
        for (now, then) in self.0.iter().zip(&earlier.0) {
            sum.all += now.rchar.checked_sub(then.rchar)?;
            sum.device += now.read_bytes.checked_sub(then.read_bytes)?;
            sum.written += now.wchar.checked_sub(then.wchar)?;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(counts: &[(u64, u64)]) -> ProcessesIo {
        let io = |&(rchar, read_bytes)| Io { rchar, wchar: rchar / 10, read_bytes, write_bytes: 0 };
        ProcessesIo(counts.iter().map(io).collect())
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
    fn reads_the_counters_of_processes() {
        assert!(ProcessesIo::read(&[i32::try_from(std::process::id()).unwrap()]).is_some());
        assert_eq!(ProcessesIo::read(&[]), None);
    }
}
