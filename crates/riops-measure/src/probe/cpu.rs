//! CPU time of processes, of one thread, and of the whole machine, and the speed of the processor.

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use riops_model::record::MachineFacts;
use riops_model::record::diagnosis::{Finding, Level};
use rustix::time::{ClockId, clock_gettime};

use crate::host::Interrupt;
use crate::host::machine::machine_cpus;
use crate::host::process::{self, ScheduleTimes, Stat, TICKS_PER_S};

/// Returns the CPU time of this process so far, user and system, all threads, in seconds.
pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread so far, in seconds.
pub fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the CPU time of the children of this process that have ended, in seconds.
pub fn reaped_cpu_s() -> Option<f64> {
    Some(Stat::read("self")?.reaped() as f64 / TICKS_PER_S)
}

/// Returns the CPU time of another process so far, user and system, in seconds; `None` if the process
/// does not exist on this machine. The resolution is 1 ns with scheduler statistics in the kernel,
/// otherwise 10 ms.
pub fn process_cpu_s(process: i32) -> Option<f64> {
    let scheduled = process::read(process, "schedstat");
    if let Some(times) = scheduled.and_then(|text| ScheduleTimes::parse(&text)) {
        return Some(times.cpu_ns as f64 / 1e9);
    }
    let stat = Stat::read(process)?;
    Some((stat.user + stat.system) as f64 / TICKS_PER_S)
}

/// Fewest ticks from which a share is computed: one tick is then at most 1%.
const TICKS_MIN: u64 = 100;

/// Ticks of all processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineCpu {
    busy: u64,
    /// Part of `busy` in which the hypervisor ran something else.
    steal: u64,
    total: u64,
    /// In user mode, including nice.
    user: u64,
    /// Idle, waiting for I/O, or withheld. The kernel measures it, while it samples the busy ticks: work at the frequency of
    /// the clock is counted too often.
    free: u64,
    /// Number of processors.
    cpus: usize,
    /// Context switches.
    switches: Option<u64>,
}

/// CPU time of a machine, in seconds over all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CpuTime {
    /// Time in user mode, as sampled.
    pub(super) user_s: f64,
    /// Time of processes and the kernel, as measured.
    pub(super) busy_s: f64,
}

impl MachineCpu {
    /// Reads /proc/stat; `None` if it is not available.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal. Guest time is
    /// already included in user time.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        Some(Self {
            busy,
            steal,
            total: busy + idle + iowait,
            user: user + nice,
            free: idle + iowait + steal,
            cpus: machine_cpus(text).unwrap_or(0),
            switches: text
                .lines()
                .find_map(|line| line.strip_prefix("ctxt "))
                .and_then(|count| count.trim().parse().ok()),
        })
    }

    /// Returns the context switches since `earlier`.
    pub(super) fn switches_since(self, earlier: Self) -> Option<u64> {
        self.switches?.checked_sub(earlier.switches?)
    }

    /// Returns what the processors did in the `seconds` since `earlier`.
    pub(super) fn time_since(self, earlier: Self, seconds: f64) -> CpuTime {
        let in_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / TICKS_PER_S;
        CpuTime {
            user_s: in_s(self.user, earlier.user),
            busy_s: seconds * self.cpus as f64 - in_s(self.free, earlier.free),
        }
    }

    /// Returns the share of all processors that was busy since `earlier`, 0 to 1; `None` if too few ticks
    /// have passed for a share in percent.
    pub fn busy_share_since(self, earlier: Self) -> Option<f64> {
        self.share_since(earlier, |ticks| ticks.busy)
    }

    /// Returns the share of all processors that the hypervisor withheld since `earlier`, like
    /// [`Self::busy_share_since`].
    pub fn steal_share_since(self, earlier: Self) -> Option<f64> {
        self.share_since(earlier, |ticks| ticks.steal)
    }

    fn share_since(self, earlier: Self, pick: fn(&Self) -> u64) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|&ticks| ticks >= TICKS_MIN)?;
        Some(pick(&self).saturating_sub(pick(&earlier)) as f64 / total as f64)
    }
}

/// Rounds of the work: each takes about 10 µs, and the fastest counts, because interrupts make one longer.
const ROUNDS: usize = 5;
/// Steps of a round, each of which depends on the previous one.
const STEPS: u32 = 4_000;

/// Returns the CPU time of a fixed piece of work in microseconds. It takes about 50 µs.
///
/// A lower frequency, heat, a neighbor on the same core and steal time that is not exported make it longer; other threads on
/// the same processor do not, because it is the time of this thread.
pub(super) fn work_us() -> f64 {
    let round = |_| {
        let before_s = thread_seconds();
        black_box(work(black_box(1)));
        (thread_seconds() - before_s) * 1e6
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// A sequence of xorshift (Marsaglia, "Xorshift RNGs", 2003).
fn work(mut state: u64) -> u64 {
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// How long the machine is observed before anything is measured.
const OBSERVED: Duration = Duration::from_secs(1);
/// A machine that is busier than this while riops waits disturbs what is measured on it.
const OTHERS_SHARE: f64 = 0.1;

/// Observes the machine for a second; a finding if other processes keep it busy.
pub fn finding(machine: &MachineFacts, interrupt: &Interrupt) -> Option<Finding> {
    let before = MachineCpu::read()?;
    interrupt.pause(OBSERVED);
    let share = MachineCpu::read()?.busy_share_since(before)?;
    (share >= OTHERS_SHARE).then(|| {
        let used = machine.cpu_of_all_text(share);
        let text = format!("other processes use {used} CPU now: results are disturbed");
        Finding { level: Level::Warning, about: "load".to_owned(), text }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_cpu_time_of_a_process() {
        assert!(process_cpu_s(i32::try_from(std::process::id()).unwrap()).is_some());
    }

    #[test]
    fn io_wait_does_not_count_as_busy() {
        let earlier = MachineCpu::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1\n").unwrap();
        let later = MachineCpu::parse("cpu  160 0 80 900 60 0 0 0 0 0\n").unwrap();
        assert_eq!(later.busy_share_since(earlier), Some(0.45));
        assert_eq!(later.busy_share_since(later), None);
        // One tick of 40 would be 2.5%.
        let soon = MachineCpu::parse("cpu  120 0 60 805 55 0 0 0 0 0\n").unwrap();
        assert_eq!(soon.busy_share_since(earlier), None);
    }

    #[test]
    fn counts_steal_as_busy_time_and_reports_its_share() {
        let earlier = MachineCpu::parse("cpu  0 0 0 0 0 0 0 0 0 0\n").unwrap();
        let later = MachineCpu::parse("cpu  100 0 0 60 0 0 0 40 0 0\n").unwrap();
        assert_eq!(later.busy_share_since(earlier), Some(0.7));
        assert_eq!(later.steal_share_since(earlier), Some(0.2));
    }

    #[test]
    fn computes_the_busy_time_from_the_free_time() {
        let earlier = MachineCpu::parse("cpu  0 0 0 0 0 0 0 0\ncpu0 1\ncpu1 1\n").unwrap();
        // In 2 s, two processors were idle for 2.5 s in total; the counts per tick suggest more work.
        let later = MachineCpu::parse("cpu  150 50 90 200 30 0 0 20\ncpu0 1\ncpu1 1\n").unwrap();
        let time = later.time_since(earlier, 2.0);
        assert_eq!((time.user_s, time.busy_s), (2.0, 1.5));
    }

    #[test]
    fn rejects_unknown_lines() {
        assert_eq!(MachineCpu::parse("cpu0 1 2 3"), None);
        assert_eq!(MachineCpu::parse("cpu  1 2 x 4 5 6 7 8"), None);
    }

    #[test]
    fn thread_cpu_time_does_not_exceed_process_cpu_time() {
        assert!(thread_seconds() <= process_seconds() + 0.01);
    }

    #[test]
    fn the_work_depends_on_its_input() {
        assert_ne!(work(1), work(2));
        assert!(work_us().is_finite());
    }
}
