//! Reads what the kernel shows of a process. Source: proc(5).

use std::fmt::Display;
use std::fs;
use std::path::Path;

/// Clock ticks per second of /proc/PID/stat and /proc/stat, on all Linux platforms.
pub(crate) const TICKS_PER_S: f64 = 100.0;

/// Reads a file of a process, or of `self`.
pub(crate) fn read(process: impl Display, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{file}")).ok()
}

/// Returns the ids of all processes in `proc`, which is /proc.
pub(crate) fn ids(proc: &Path) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Fields of /proc/PID/stat, with times in ticks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// It may contain spaces and parentheses.
    pub(crate) name: String,
    pub(crate) parent: i32,
    pub(crate) user: u64,
    pub(crate) system: u64,
    /// User time of children that have exited.
    pub(crate) reaped_user: u64,
    pub(crate) reaped_system: u64,
    /// Since the start of the machine.
    pub(crate) started: u64,
}

impl Stat {
    /// Reads it for a process, or for `self`.
    pub(crate) fn read(process: impl Display) -> Option<Self> {
        Self::parse(&read(process, "stat")?)
    }

    /// Parses id, name in parentheses, state, parent (4), …, utime, stime, cutime, cstime (14 to 17), …, start time (22).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (start, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let value = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Self {
            name: start.split_once('(')?.1.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            user: value(14)?,
            system: value(15)?,
            reaped_user: value(16)?,
            reaped_system: value(17)?,
            started: value(22)?,
        })
    }

    /// Returns the CPU time of the children that have exited, in ticks.
    pub(crate) fn reaped(&self) -> u64 {
        self.reaped_user + self.reaped_system
    }
}

/// Bytes in /proc/PID/io.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Io {
    /// Read by system calls, also from the page cache.
    pub(crate) rchar: u64,
    /// Written by system calls.
    pub(crate) wchar: u64,
    /// Read from block devices.
    pub(crate) read_bytes: u64,
    /// Written to block devices.
    pub(crate) write_bytes: u64,
}

impl Io {
    pub(crate) fn read(process: i32) -> Option<Self> {
        Self::parse(&read(process, "io")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |label: &str| {
            text.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
        };
        Some(Self {
            rchar: value("rchar:")?,
            wchar: value("wchar:")?,
            read_bytes: value("read_bytes:")?,
            write_bytes: value("write_bytes:")?,
        })
    }
}

/// Times of a process or a thread, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScheduleTimes {
    /// On a processor.
    pub(crate) cpu_ns: u64,
    /// Runnable, but without a processor.
    pub(crate) waited_ns: u64,
}

impl ScheduleTimes {
    /// Parses the first two fields of /proc/PID/schedstat, or of a thread. A kernel without scheduler statistics writes
    /// zeros.
    ///
    /// Source: Linux kernel, Documentation/scheduler/sched-stats.rst.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
        let times = Self { cpu_ns: fields.next()??, waited_ns: fields.next()?? };
        (times != Self::default()).then_some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_files_of_the_kernel() {
        let stat =
            Stat::parse("7 (a) b) S 42 7 7 0 -1 4194560 900 0 0 0 250 50 100 0 20 0 1 0 99 1 2\n")
                .unwrap();
        assert_eq!((stat.name.as_str(), stat.parent), ("a) b", 42));
        assert_eq!((stat.user, stat.system, stat.reaped(), stat.started), (250, 50, 100, 99));
        assert_eq!(Stat::parse("7 (postgres"), None);
        let io = "rchar: 3000\nwchar: 1\nsyscr: 2\nread_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 3\n";
        let expected = Io { rchar: 3000, wchar: 1, read_bytes: 8192, write_bytes: 4096 };
        assert_eq!((Io::parse(io), Io::parse("rchar: x")), (Some(expected), None));
        let times = ScheduleTimes { cpu_ns: 2_500_000_000, waited_ns: 17 };
        assert_eq!(ScheduleTimes::parse("2500000000 17 42\n"), Some(times));
        assert_eq!((ScheduleTimes::parse("0 0 0\n"), ScheduleTimes::parse("1")), (None, None));
    }

    #[test]
    fn reads_the_own_process() {
        let id = i32::try_from(std::process::id()).unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).ok();
        assert_eq!(Stat::read(id).map(|stat| stat.parent), parent);
        assert!(Io::read(id).is_some() && ids(Path::new("/proc")).any(|process| process == id));
    }
}
