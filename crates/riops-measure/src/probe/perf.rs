//! perf beside a measurement, and the CPU profile of the server that it records.
//!
//! With the right to see all processes, perf samples the whole machine, and the samples of others are left out afterwards:
//! attaching it to processes costs at every context switch. Stacks come from frame pointers if the server was compiled with
//! them, otherwise from DWARF.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use tempfile::TempDir;

use super::cpu::process_cpu_s;
use super::processes::{Place, descendants};
use riops_model::record::ProfileRecord;
use riops_model::record::diagnosis::{Finding, Level};

/// Maximum number of attempts to start perf.
const STARTS_MAX: usize = 5;
/// Time after which a perf that has not ended counts as started.
const START_TIMEOUT_S: i64 = 1;
/// Time for perf to write its file.
const END_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of distinct stacks.
const STACKS_MAX: usize = 200_000;
/// Flag of a compiler that keeps frame pointers.
const FRAME_POINTERS: &str = "-fno-omit-frame-pointer";
/// Length of the trial.
const TRIAL: &str = "0.05";

/// Why perf cannot examine the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PerfError {
    /// The server is not on this machine.
    #[error("{0} requires a server on this machine, whose processes are visible")]
    NotLocal(&'static str),
    /// perf is not installed.
    #[error(
        "{0} requires perf, which is not installed; install it (Debian: apt-get install linux-perf; Ubuntu: linux-tools-generic; Fedora: perf)"
    )]
    NotInstalled(&'static str),
    /// perf may not examine the server.
    #[error(
        "{option}: perf may not examine the server: {reason}; run riops as the user of the server or as root, or set the kernel parameter kernel.perf_event_paranoid to 1 (sysctl -w kernel.perf_event_paranoid=1)"
    )]
    Refused {
        /// The option that needs it.
        option: &'static str,
        /// The first line of perf.
        reason: String,
    },
    /// The processor counts no instructions.
    #[error(
        "--instructions is not possible: the processor of this machine counts no instructions, or a virtual machine hides the counter"
    )]
    NotSupported,
}

/// Executes a short command of perf, and returns its output on standard error.
///
/// # Errors
/// If it fails.
pub(super) fn try_perf(option: &'static str, mut command: Command) -> Result<String, PerfError> {
    let refused = |reason: &str| PerfError::Refused { option, reason: reason.to_owned() };
    let output = command.args(["sleep", TRIAL]).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => PerfError::NotInstalled(option),
        _ => refused(&error.to_string()),
    })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(text.into_owned());
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_reason = |line: &&str| line.contains("ermission") || line.contains("denied");
    let first = lines.clone().find(is_reason).or_else(|| lines.next());
    Err(refused(first.unwrap_or("unknown error")))
}

/// Returns a command of perf about these processes; `None`: the whole machine.
pub(super) fn perf(subcommand: &[&str], processes: Option<&BTreeSet<i32>>) -> Command {
    let mut command = Command::new("perf");
    command.args(subcommand);
    match processes {
        None => command.arg("-a"),
        Some(processes) => {
            let list: Vec<String> = processes.iter().map(i32::to_string).collect();
            command.args(["-p", &list.join(",")])
        }
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// perf beside a measurement. It ends with the `cat` that it executes, and that with riops, however riops ends.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// The directory of its file.
    folder: TempDir,
    start: Instant,
    /// The processes of the server.
    processes: BTreeSet<i32>,
}

impl Running {
    /// Starts a command about the processes of the server, whose file is in a directory. Starts it again if it has ended, as it
    /// does if one of the processes has ended since they were listed.
    pub(super) fn start(
        server: i32,
        command: impl Fn(&TempDir, &BTreeSet<i32>) -> Command,
    ) -> Option<Self> {
        let mut last = None;
        for _ in 0..STARTS_MAX {
            let (folder, processes) = (tempfile::tempdir().ok()?, descendants(server));
            let mut command = command(&folder, &processes);
            command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped());
            let child = command.spawn().ok()?;
            let running = last.insert(Self { child, folder, start: Instant::now(), processes });
            if running.has_started() {
                break;
            }
        }
        last
    }

    /// Waits until perf has executed `cat`, which repeats what it reads. Returns false if perf has ended.
    fn has_started(&mut self) -> bool {
        let (Some(input), Some(output)) = (&mut self.child.stdin, &mut self.child.stdout) else {
            return false;
        };
        let timeout = Timespec { tv_sec: START_TIMEOUT_S, tv_nsec: 0 };
        let is_written = input.write_all(b"\n").is_ok();
        let mut ends = [PollFd::new(&*output, PollFlags::IN)];
        let has_ended_or_answered = matches!(poll(&mut ends, Some(&timeout)), Ok(1..));
        let has_started = is_written
            && (!has_ended_or_answered || output.read(&mut [0]).is_ok_and(|bytes| bytes == 1));
        self.start = Instant::now();
        if !has_started {
            let _ = self.child.wait();
        }
        has_started
    }

    /// Ends the examination; perf then writes its file. Returns its length in seconds.
    pub(super) fn end(&mut self) -> f64 {
        drop(self.child.stdin.take());
        self.start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Waits for the file.
    pub(super) fn close(mut self) -> TempDir {
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.folder
    }
}

/// Option that requests a profile.
const PROFILE: &str = "--profile";

/// Profiles the server during a measurement.
#[derive(Debug)]
pub struct Perf {
    hz: u32,
    server: i32,
    /// Whether all processes of the machine are sampled, with the kernel; otherwise only the processes of the server,
    /// in user mode.
    of_machine: bool,
    has_frame_pointers: bool,
    running: Option<Running>,
    /// CPU use of perf, in processors.
    cpus: f64,
    /// The profile of the last stage.
    pub(super) profile: Option<ProfileRecord>,
}

impl Perf {
    /// Determines how this server can be profiled, by a short trial. `compiler_flags` are the flags that the server was
    /// built with.
    ///
    /// # Errors
    /// [`PerfError`] if it cannot be profiled.
    pub fn new(place: Place, compiler_flags: Option<&str>, hz: u32) -> Result<Self, PerfError> {
        let Place::Here(server) = place else {
            return Err(PerfError::NotLocal(PROFILE));
        };
        let has_frame_pointers = compiler_flags.is_some_and(|flags| flags.contains(FRAME_POINTERS));
        let mut perf = Self {
            hz,
            server,
            of_machine: true,
            has_frame_pointers,
            running: None,
            cpus: 0.0,
            profile: None,
        };
        if let Err(error) = perf.trial() {
            perf.of_machine = false;
            match error {
                PerfError::Refused { .. } => perf.trial()?,
                error => return Err(error),
            }
        }
        Ok(perf)
    }

    /// Profiles for a moment.
    fn trial(&self) -> Result<(), PerfError> {
        let folder = tempfile::tempdir()
            .map_err(|error| PerfError::Refused { option: PROFILE, reason: error.to_string() })?;
        try_perf(PROFILE, self.record(&folder, &BTreeSet::from([self.server]))).map(|_| ())
    }

    /// The command that samples into the file of a folder.
    fn record(&self, folder: &TempDir, processes: &BTreeSet<i32>) -> Command {
        let mut command = perf(&["record"], Some(processes).filter(|_| !self.of_machine));
        command.arg("-o").arg(folder.path().join("perf.data"));
        // Otherwise, perf copies each program that ran into the home folder.
        command.arg("--no-buildid-cache");
        // A virtual machine has no counters of the processor.
        let event = if self.of_machine { "cpu-clock" } else { "cpu-clock:u" };
        command.args(["-e", event, "-F", &self.hz.to_string()]);
        command.args(["--call-graph", if self.has_frame_pointers { "fp" } else { "dwarf" }, "--"]);
        command
    }

    pub(super) fn start(&mut self) {
        self.profile = None;
        self.running =
            Running::start(self.server, |folder, processes| self.record(folder, processes));
    }

    /// Ends the sampling; perf then writes its file.
    pub(super) fn end(&mut self) {
        if let Some(running) = &mut self.running {
            let process = Pid::from_child(&running.child).as_raw_nonzero().get();
            let cpu_s = process_cpu_s(process).unwrap_or(0.0);
            running.processes.extend(descendants(self.server));
            self.cpus = cpu_s / running.end();
        }
    }

    /// Waits for the file and reads it.
    pub(super) fn close(&mut self) {
        if let Some(mut running) = self.running.take() {
            let processes = std::mem::take(&mut running.processes);
            self.profile = self.read(&running.close(), &processes);
        }
    }

    fn read(&self, folder: &TempDir, processes: &BTreeSet<i32>) -> Option<ProfileRecord> {
        let mut script = Command::new("perf")
            .arg("script")
            .arg("-i")
            .arg(folder.path().join("perf.data"))
            // Inlined functions take minutes to find.
            .args(["--no-inline", "-F", "pid,ip,sym,dso"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let lines = BufReader::new(script.stdout.take()?).lines().map_while(Result::ok);
        let stacks = folded(lines, processes);
        let _ = script.wait();
        let samples = stacks.values().sum();
        let record = ProfileRecord {
            hz: self.hz,
            samples,
            stack_method: if self.has_frame_pointers { "fp" } else { "dwarf" }.to_owned(),
            has_kernel: self.of_machine,
            perf_cpus: self.cpus,
            ..ProfileRecord::default()
        };
        Some(record.with_stacks(stacks.into_iter().collect()))
    }
}

/// Counts the stacks of these processes in the output of `perf script`: a line with the process of each sample, then a line
/// for each function, the innermost first, then an empty line.
fn folded(lines: impl Iterator<Item = String>, processes: &BTreeSet<i32>) -> BTreeMap<String, u64> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let (mut functions, mut is_server) = (Vec::<String>::new(), false);
    for line in lines.chain([String::new()]) {
        let text = line.trim();
        if text.is_empty() {
            if is_server && !functions.is_empty() {
                functions.reverse();
                let stack = functions.join(";");
                if stacks.len() < STACKS_MAX || stacks.contains_key(&stack) {
                    *stacks.entry(stack).or_default() += 1;
                }
            }
            functions.clear();
            is_server = false;
        } else if let Ok(process) = text.parse::<i32>() {
            is_server = processes.contains(&process);
        } else if is_server {
            functions.push(function(text));
        }
    }
    stacks
}

/// Returns the function of `55d1 index_getnext_slot (/usr/lib/postgres)`; of an unknown one, the file.
fn function(line: &str) -> String {
    let (_, rest) = line.split_once(' ').unwrap_or(("", line));
    let (symbol, file) = match rest.rsplit_once(" (") {
        Some((symbol, file)) => (symbol, file.trim_end_matches(')')),
        None => (rest, ""),
    };
    let symbol = symbol.split("+0x").next().unwrap_or(symbol).trim();
    if symbol.is_empty() || symbol == "[unknown]" {
        let name = file.rsplit('/').next().unwrap_or(file).trim_matches(['[', ']']);
        return format!("[{}]", if name.is_empty() { "unknown" } else { name });
    }
    symbol.replace(';', ":")
}

/// Returns whether `--profile` works with this server, and otherwise what is missing.
pub fn finding(place: Place, compiler_flags: Option<&str>) -> Finding {
    let text = match Perf::new(place, compiler_flags, 99) {
        Ok(perf) => {
            let stacks = if perf.has_frame_pointers { "frame pointers" } else { "DWARF" };
            let scope = if perf.of_machine {
                "with the kernel"
            } else {
                "without the kernel, attached to the processes of the server"
            };
            format!("--profile works, with {stacks}, {scope}")
        }
        Err(error) => error.to_string(),
    };
    Finding { level: Level::Note, about: "profile".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stacks_of_the_server_are_counted_from_the_outermost_function() {
        let text = "\
            100 \n\
            \t    7f1 index_getnext+0x12 (/usr/lib/postgres)\n\
            \t    7f2 ExecScan (/usr/lib/postgres)\n\
            \t    7f3 [unknown] (/usr/lib/libLLVM-14.so.1)\n\
            \n\
            200 \n\t 7f1 main (/usr/bin/other)\n\n\
            100\n\
            \t    7f1 index_getnext+0x99 (/usr/lib/postgres)\n\
            \t    7f2 ExecScan (/usr/lib/postgres)\n\
            \t    7f3 [unknown] (/usr/lib/libLLVM-14.so.1)\n";
        let stacks = folded(text.lines().map(str::to_owned), &BTreeSet::from([100]));
        let expected = [("[libLLVM-14.so.1];ExecScan;index_getnext".to_owned(), 2)];
        assert_eq!(stacks.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(function("7f operator;x (/lib/a)"), "operator:x");
        assert_eq!(function("7f [unknown] ([unknown])"), "[unknown]");
    }

    #[test]
    fn a_server_elsewhere_cannot_be_profiled() {
        assert_eq!(
            Perf::new(Place::Elsewhere, None, 99).unwrap_err(),
            PerfError::NotLocal(PROFILE)
        );
        let finding = finding(Place::Unknown, None);
        assert!(finding.text.contains("server on this machine"), "{finding:?}");
    }
}
