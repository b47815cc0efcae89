//! The control groups of a process: limits of CPU and memory, and throttling.
//!
//! A limit of any group above applies as well, so all of them are read. Source: Linux kernel,
//! Documentation/admin-guide/cgroup-v2.rst; for version 1, Documentation/scheduler/sched-bwc.rst.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::files::trimmed;
use super::process;

/// Directories of the control groups of a process, from the innermost to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Directories of version 2.
    unified: Vec<PathBuf>,
    /// Directories of the CPU controller of version 1.
    cpu: Vec<PathBuf>,
    /// Directories of the memory controller of version 1.
    memory: Vec<PathBuf>,
}

/// Periods of a CPU quota since the group was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the group was active.
    pub periods: u64,
    /// Periods in which it exhausted its quota and had to wait.
    pub throttled: u64,
}

impl Cgroup {
    /// Finds the groups of a process, or of `self`.
    pub fn for_process(process: impl Display) -> Self {
        let groups = process::read(process, "cgroup").unwrap_or_default();
        Self::parse(&groups, Path::new("/sys/fs/cgroup"))
    }

    /// `groups` has the format of /proc/PID/cgroup; `mount` is the mount point of the hierarchies.
    fn parse(groups: &str, mount: &Path) -> Self {
        let mut cgroup = Self::default();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let has = |name: &str| controllers.split(',').any(|controller| controller == name);
            if controllers.is_empty() {
                // In hybrid mode, version 2 is mounted below.
                let roots = [mount.to_owned(), mount.join("unified")];
                let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists());
                cgroup.unified = root.map(|root| up_to(&root, path)).unwrap_or_default();
            }
            if has("cpu") {
                cgroup.cpu = up_to(&mount.join("cpu"), path);
            }
            if has("memory") {
                cgroup.memory = up_to(&mount.join("memory"), path);
            }
        }
        cgroup
    }

    /// Returns the lowest CPU quota, in processors; `None` without a quota.
    pub fn cpus(&self) -> Option<f64> {
        let unified =
            self.unified.iter().filter_map(|group| cpu_max(&trimmed(group.join("cpu.max"))?));
        let first = self.cpu.iter().filter_map(|group| {
            let quota = trimmed(group.join("cpu.cfs_quota_us"))?;
            let period = trimmed(group.join("cpu.cfs_period_us"))?;
            cpu_max(&format!("{quota} {period}"))
        });
        unified.chain(first).min_by(f64::total_cmp)
    }

    /// Returns the lowest memory limit, in bytes; `None` without a limit. `max` is not a number and means no
    /// limit; so do values from 2^62 on in version 1.
    pub fn memory_bytes(&self) -> Option<u64> {
        let unified = self.unified.iter().map(|group| group.join("memory.max"));
        let first = self.memory.iter().map(|group| group.join("memory.limit_in_bytes"));
        let limits = unified.chain(first).filter_map(|file| trimmed(file)?.parse::<u64>().ok());
        limits.filter(|&bytes| bytes < 1 << 62).min()
    }

    /// Returns the throttling of the group that was throttled most; `None` without a quota.
    pub fn throttling(&self) -> Option<Throttling> {
        self.cpus()?;
        let groups = self.unified.iter().chain(&self.cpu);
        let throttlings = groups.filter_map(|group| throttling(&trimmed(group.join("cpu.stat"))?));
        throttlings.max_by_key(|throttling| throttling.throttled)
    }
}

impl Throttling {
    /// Returns the share of the periods since `earlier` in which the group had to wait, 0 to 1; `None` without
    /// a period.
    pub fn share_since(self, earlier: Self) -> Option<f64> {
        let periods = self.periods.checked_sub(earlier.periods).filter(|&periods| periods > 0)?;
        let throttled = self.throttled.checked_sub(earlier.throttled)?;
        Some((throttled as f64 / periods as f64).min(1.0))
    }
}

/// Returns the directories from `root`/`path` up to `root`. In a container, `path` may be relative to a root
/// that is not mounted there; its own group is then at the mount point.
fn up_to(root: &Path, path: &str) -> Vec<PathBuf> {
    let inner = root.join(path.trim_start_matches('/'));
    let inner = if inner.is_dir() { inner } else { root.to_owned() };
    let groups = inner.ancestors().take_while(|group| group.starts_with(root));
    groups.map(Path::to_owned).collect()
}

/// Parses a quota and a period in microseconds; `max` and -1 mean no limit.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Parses the lines `nr_periods 12` and `nr_throttled 3`.
fn throttling(stat: &str) -> Option<Throttling> {
    let count = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(label, _)| *label == name)?.1.parse().ok()
    };
    Some(Throttling { periods: count("nr_periods")?, throttled: count("nr_throttled")? })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn parses_cpu_quotas() {
        assert_eq!(cpu_max("150000 100000"), Some(1.5));
        assert_eq!(cpu_max("max 100000"), None);
        assert_eq!(cpu_max("-1 100000"), None);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_above_applies() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("pod/container");
        fs::create_dir_all(&inner).unwrap();
        let write = |file: &str, text: &str| fs::write(mount.path().join(file), text).unwrap();
        write("cgroup.controllers", "cpu memory");
        write("pod/cpu.max", "200000 100000\n");
        write("pod/cpu.stat", "usage_usec 5\nnr_periods 100\nnr_throttled 40\n");
        write("pod/container/cpu.max", "max 100000\n");
        write("pod/container/memory.max", "max\n");
        write("pod/memory.max", "1048576\n");
        let group = Cgroup::parse("0::/pod/container\n", mount.path());
        assert_eq!((group.cpus(), group.memory_bytes()), (Some(2.0), Some(1 << 20)));
        let before = group.throttling().unwrap();
        write("pod/cpu.stat", "nr_periods 150\nnr_throttled 60\n");
        assert_eq!(group.throttling().unwrap().share_since(before), Some(0.4));
        assert_eq!(before.share_since(before), None);
        // The limits of another group do not apply.
        assert_eq!(Cgroup::parse("0::/other\n", mount.path()).cpus(), None);
    }

    #[test]
    fn finds_the_controllers_of_version_1() {
        let mount = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = mount.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cpu/docker/cpu.cfs_quota_us", "50000\n");
        write("cpu/docker/cpu.cfs_period_us", "100000\n");
        write("cpu/docker/cpu.stat", "nr_periods 10\nnr_throttled 5\nthrottled_time 7\n");
        write("memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
        let group = Cgroup::parse("4:cpu,cpuacct:/docker\n3:memory:/docker\n", mount.path());
        assert_eq!((group.cpus(), group.memory_bytes()), (Some(0.5), None));
        assert_eq!(group.throttling(), Some(Throttling { periods: 10, throttled: 5 }));
    }
}
