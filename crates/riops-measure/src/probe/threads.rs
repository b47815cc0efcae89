//! CPU time of riops's own threads, and the time in which they were runnable but had no CPU.

use std::collections::BTreeMap;
use std::fs;

use crate::host::process::ScheduleTimes;

/// Names of the threads, as the kernel shortens them to 15 characters.
const WORKER: &str = "riops-worker";
const CONNECTOR: &str = "riops-connector";

/// The threads of riops at one point in time, by id, each with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Threads(BTreeMap<u32, (String, ScheduleTimes)>);

/// Use of CPU by the threads of riops. Absent without such threads, or without statistics of the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadsUse {
    /// Largest share of the time in which a worker was runnable but waited for a CPU, 0 to 1.
    pub run_queue_share: Option<f64>,
    /// CPU of the busiest connector thread, as a share of one CPU.
    pub connector_share: Option<f64>,
}

impl Threads {
    /// Reads /proc/self/task; `None` if it is not available.
    pub(super) fn read() -> Option<Self> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir("/proc/self/task").ok()?.flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
            // A thread may exit at any time.
            let times = || ScheduleTimes::parse(&read("schedstat")?);
            if let (Some(id), Some(name), Some(times)) = (id, read("comm"), times()) {
                threads.insert(id, (name.trim_end().to_owned(), times));
            }
        }
        Some(Self(threads))
    }

    /// Returns the use since `earlier` of the threads that existed at both times.
    pub(super) fn since(&self, earlier: &Self, seconds: f64) -> ThreadsUse {
        let most = |prefix: &str, pick: fn(&ScheduleTimes) -> u64| {
            let threads = self.0.iter().filter(|(_, (name, _))| name.starts_with(prefix));
            let changes = threads.filter_map(|(id, (_, times))| {
                Some(pick(times).saturating_sub(pick(&earlier.0.get(id)?.1)))
            });
            changes.max().map(|ns| (ns as f64 / 1e9 / seconds).min(1.0))
        };
        ThreadsUse {
            run_queue_share: most(WORKER, |times| times.waited_ns),
            connector_share: most(CONNECTOR, |times| times.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(rows: &[(u32, &str, u64, u64)]) -> Threads {
        let thread = |&(id, name, cpu_ms, waited_ms): &(u32, &str, u64, u64)| {
            let times =
                ScheduleTimes { cpu_ns: cpu_ms * 1_000_000, waited_ns: waited_ms * 1_000_000 };
            (id, (name.to_owned(), times))
        };
        Threads(rows.iter().map(thread).collect())
    }

    #[test]
    fn reports_the_longest_waiting_worker_and_the_busiest_connector() {
        let before = threads(&[
            (1, "riops", 0, 0),
            (2, "riops-worker-0", 100, 50),
            (3, "riops-worker-1", 0, 0),
            (4, "riops-connector", 0, 0),
        ]);
        let after = threads(&[
            (1, "riops", 9_000, 9_000),
            (2, "riops-worker-0", 1_000, 1_550),
            (3, "riops-worker-1", 7_000, 200),
            (4, "riops-connector", 9_500, 10),
            (5, "riops-worker-9", 9_000, 9_000),
        ]);
        let usage = after.since(&before, 10.0);
        assert_eq!(usage.run_queue_share, Some(0.15));
        assert_eq!(usage.connector_share, Some(0.95));
        assert_eq!(threads(&[]).since(&threads(&[]), 1.0), ThreadsUse::default());
    }

    #[test]
    fn reads_the_own_threads() {
        let threads = Threads::read().unwrap();
        assert!(!threads.0.is_empty());
    }
}
