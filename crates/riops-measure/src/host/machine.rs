//! The client machine, which is often the server's machine as well.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::cgroup::Cgroup;
use super::files::trimmed;
use super::process;
use riops_model::record::{MachineFacts, ServerLimits};

/// Reads the facts from the operating system.
pub fn facts() -> MachineFacts {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let kernel = [system.sysname(), system.release(), system.machine()].map(text);
    let cpuinfo = trimmed("/proc/cpuinfo").unwrap_or_default();
    let cgroup = Cgroup::for_process("self");
    MachineFacts {
        host: text(system.nodename()),
        kernel: kernel.join(" "),
        cpus: cpus(),
        machine_cpus: trimmed("/proc/stat").and_then(|stat| machine_cpus(&stat)),
        memory_bytes: memory_bytes(),
        cpu_model: cpu_model(&cpuinfo),
        cpu_governor: trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        transparent_huge_pages: trimmed("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| selected(&text)),
        cgroup_cpus: cgroup.cpus(),
        cgroup_memory_bytes: cgroup.memory_bytes(),
        virtualization: virtualization(&cpuinfo),
    }
}

/// Reads the limits of the processes of a server, from its first process; `None` if it is not visible.
pub fn server_limits(process: i32) -> Option<ServerLimits> {
    let status = process::read(process, "status")?;
    let cgroup = Cgroup::for_process(process);
    Some(ServerLimits {
        cpus: allowed_cpus(&status)?,
        cgroup_cpus: cgroup.cpus(),
        cgroup_memory_bytes: cgroup.memory_bytes(),
    })
}

/// Returns the number of processors in the line `Cpus_allowed_list: 0-3,8` of /proc/PID/status.
fn allowed_cpus(status: &str) -> Option<usize> {
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    allowed.trim().split(',').map(count).sum()
}

/// Returns the choice in brackets: `madvise` of `always [madvise] never`.
pub(crate) fn selected(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Returns the number of processors available to this process; 1 if unknown.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Raises this process's limit on open files to at least `count`, if permitted.
///
/// # Errors
/// Returns the highest permitted limit if it is lower than `count`.
pub fn raise_open_file_limit(count: u64) -> Result<(), u64> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    if let Some(maximum) = limits.maximum.filter(|&maximum| maximum < count) {
        return Err(maximum);
    }
    let raised = Rlimit { current: Some(count), maximum: limits.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| limits.current.unwrap_or(0))
}

/// Returns the free space for unprivileged processes in the file system of `path`, in bytes.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}

/// Returns the machine's memory or the control group's limit, whichever is lower, in bytes; 0 if
/// unknown.
pub fn memory_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = meminfo_bytes(&meminfo, "MemTotal:").unwrap_or(0);
    Cgroup::for_process("self").memory_bytes().map_or(machine, |limit| limit.min(machine))
}

/// Counts the lines `cpu0`, `cpu1`, … of /proc/stat, one for each processor that is online.
pub(crate) fn machine_cpus(stat: &str) -> Option<usize> {
    let numbered = |line: &str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(stat.lines().filter(|line| numbered(line)).count()).filter(|&cpus| cpus > 0)
}

/// Returns the line `model name`, or `CPU part` on ARM, of /proc/cpuinfo.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    field("model name").or_else(|| field("CPU part").map(|part| format!("ARM part {part}")))
}

/// Detects a hypervisor or a container runtime from files.
fn virtualization(cpuinfo: &str) -> Option<String> {
    let container = trimmed("/run/systemd/container").or_else(|| {
        let markers = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
        let marker = markers.iter().find(|(path, _)| Path::new(path).exists())?;
        Some(marker.1.to_owned())
    });
    let is_virtual = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let product = trimmed("/sys/class/dmi/id/sys_vendor")
        .filter(|_| is_virtual)
        .or_else(|| is_virtual.then(|| "a hypervisor".to_owned()));
    match (container, product) {
        (Some(container), Some(product)) => Some(format!("{container} on {product}")),
        (container, product) => container.or(product),
    }
}

/// Returns a value of /proc/meminfo in bytes, by its label: `MemTotal:`.
pub(crate) fn meminfo_bytes(meminfo: &str, label: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(label))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_total_memory_in_bytes() {
        let text = "MemFree: 5 kB\nMemTotal:       24576 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal:"), Some(24576 * 1024));
        assert_eq!(meminfo_bytes("MemTotal: much", "MemTotal:"), None);
    }

    #[test]
    fn the_selected_word_is_in_brackets() {
        assert_eq!(selected("none [mq-deadline] kyber").as_deref(), Some("mq-deadline"));
        assert_eq!(selected("none"), None);
    }

    #[test]
    fn reads_the_processor_model_or_part_number() {
        let intel = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n";
        assert_eq!(cpu_model(intel).as_deref(), Some("Intel(R) Xeon(R) CPU @ 2.20GHz"));
        assert_eq!(cpu_model("CPU part\t: 0xd0c\n").as_deref(), Some("ARM part 0xd0c"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn counts_the_processors_of_the_whole_machine() {
        let stat = "cpu  3 0 1 9\ncpu0 1 0 0 3\ncpu1 1 0 1 3\ncpu11 1 0 0 3\nintr 7\n";
        assert_eq!(machine_cpus(stat), Some(3));
        assert_eq!(machine_cpus("cpu  3 0 1 9\n"), None);
    }

    #[test]
    fn counts_the_processors_that_a_process_may_use() {
        let allowed = |list: &str| allowed_cpus(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!([allowed("0-3,8"), allowed("5"), allowed("3-1")], [Some(5), Some(1), None]);
        let process = i32::try_from(std::process::id()).unwrap();
        assert_eq!(
            crate::host::machine::server_limits(process).unwrap().cgroup_cpus,
            Cgroup::for_process("self").cpus()
        );
    }

    #[test]
    fn raises_the_open_file_limit_up_to_the_hard_limit() {
        assert_eq!(raise_open_file_limit(1), Ok(()));
        if let Some(maximum) = getrlimit(Resource::Nofile).maximum {
            assert_eq!(raise_open_file_limit(maximum), Ok(()));
            assert_eq!(getrlimit(Resource::Nofile).current, Some(maximum));
            assert_eq!(raise_open_file_limit(maximum + 1), Err(maximum));
        }
    }

    #[test]
    fn reads_the_facts_of_the_test_machine() {
        let facts = crate::host::machine::facts();
        assert!(facts.machine_cpus.is_some_and(|all| all >= facts.cpus));
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && !facts.kernel.is_empty());
    }
}
