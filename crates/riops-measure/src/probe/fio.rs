//! Runs fio, and reads its results.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::Interrupt;
use crate::host::files::text_limited;
use riops_model::record::DiskRate;
use riops_model::units::{BLOCK_BYTES, Span};

/// Queue depths, deeper than any single database session uses: the result is a maximum.
const SEQUENTIAL_DEPTH: u32 = 16;
const RANDOM_DEPTH: u32 = 64;
/// Request size of a sequential job, in bytes.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// Interval for checking the job and interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a job, in addition to its runtime.
const JOB_TIMEOUT: Duration = Duration::from_mins(2);
/// Timeout for filling the file.
const FILL_TIMEOUT: Duration = Duration::from_mins(30);
/// Number of bytes of the error output that are stored.
const STDERR_BYTES_MAX: u64 = 64 << 10;
/// Maximum size of the results, which are a few kilobytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Failure to measure a device.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// fio is not installed.
    #[error(
        "fio is not installed, but it is required to measure the device; install it (Debian and Ubuntu: apt-get install fio; Fedora: dnf install fio; macOS: brew install fio)"
    )]
    NotInstalled,
    /// The directory is not usable.
    #[error(
        "cannot create a file for fio in {folder}: {source}; choose another directory on the same device with --disk-dir"
    )]
    Folder {
        /// Path of the directory.
        folder: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The directory is not on a block device.
    #[error(
        "cannot measure the device of {0}: the directory is not on a block device (tmpfs, network file system), or the device is not visible (container)"
    )]
    NoDevice(PathBuf),
    /// Not enough free space for the file.
    #[error(
        "cannot create a file of {file_bytes} bytes in {folder}: {free_bytes} bytes are free, and at most half of them may be used"
    )]
    Space {
        /// Path of the directory.
        folder: PathBuf,
        /// Free space, in bytes.
        free_bytes: u64,
        /// Size of the file, in bytes.
        file_bytes: u64,
    },
    /// fio failed.
    #[error("fio failed in job \"{job}\": {reason}")]
    Failed {
        /// Name of the job.
        job: &'static str,
        /// First line of fio's error output, or another reason.
        reason: String,
    },
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

/// A file that fio reads and writes.
pub(super) struct Fio<'a> {
    /// Name or path of the program.
    pub(super) program: PathBuf,
    pub(super) file: PathBuf,
    pub(super) file_bytes: u64,
    pub(super) interrupt: &'a Interrupt,
}

/// A job of fio.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Name for messages.
    pub(super) name: &'static str,
    /// Name in fio: `randread`.
    pub(super) kind: &'static str,
    /// Number of threads that do the same.
    pub(super) threads: u32,
    /// Length in seconds; once over the file if absent.
    pub(super) seconds: Option<f64>,
    /// Whether each write is one database block that is synchronized before the next one, as a server writes its WAL.
    pub(super) synchronizes: bool,
}

/// A child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fio<'_> {
    /// Returns the name and version of the program.
    pub(super) fn version(&self) -> Result<String, DiskError> {
        let out = Command::new(&self.program).arg("--version").output();
        let out = out.map_err(|_| DiskError::NotInstalled)?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Runs a job.
    pub(super) fn run(&self, job: Job) -> Result<DiskRate, DiskError> {
        let failed = |reason: String| DiskError::Failed { job: job.name, reason };
        // The output is larger than a pipe buffer.
        let output = self.file.with_extension("json");
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments(job))
            .arg(format!("--output={}", output.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = KillOnDrop(command.spawn().map_err(|_| DiskError::NotInstalled)?);
        let stderr = first_line(child.0.stderr.take());
        let limit =
            job.seconds.map_or(FILL_TIMEOUT, |s| JOB_TIMEOUT.saturating_add(Span::of_seconds(s).0));
        let deadline = Instant::now() + limit;
        let status = loop {
            if self.interrupt.is_requested() {
                return Err(DiskError::Interrupted);
            }
            match child.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() >= deadline => {
                    return Err(failed("it did not finish before the timeout".to_owned()));
                }
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        if !status.success() {
            let reason = stderr.join().ok().filter(|reason| !reason.is_empty());
            return Err(failed(reason.unwrap_or_else(|| "no reason given".to_owned())));
        }
        let text =
            text_limited(&output, OUTPUT_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
        let side = if job.kind.ends_with("write") { "write" } else { "read" };
        let side = if job.synchronizes { "sync" } else { side };
        let rate = parse(&text, side).map(|rate| DiskRate { jobs: Some(job.threads), ..rate });
        rate.ok_or_else(|| failed("its output contains no results".to_owned()))
    }

    fn arguments(&self, job: Job) -> Vec<String> {
        let random = job.kind.starts_with("rand");
        let (bytes, depth) = match (job.synchronizes, random) {
            (true, _) => (BLOCK_BYTES, 1),
            (false, true) => (BLOCK_BYTES, RANDOM_DEPTH),
            (false, false) => (SEQUENTIAL_BYTES, SEQUENTIAL_DEPTH),
        };
        let engine = match (job.synchronizes, cfg!(target_os = "linux")) {
            (true, _) => "psync",
            (false, true) => "libaio",
            (false, false) => "posixaio",
        };
        // Threads that read the same blocks one after the other would measure the cache of the device.
        let whole_bytes = self.file_bytes / SEQUENTIAL_BYTES * SEQUENTIAL_BYTES;
        let part_bytes = whole_bytes / u64::from(job.threads.max(1)) / bytes * bytes;
        let size = if random { whole_bytes } else { part_bytes };
        let mut arguments = vec![
            "--name=riops".to_owned(),
            "--output-format=json".to_owned(),
            "--thread=1".to_owned(),
            // One result for all threads.
            "--group_reporting=1".to_owned(),
            format!("--ioengine={engine}"),
            format!("--filename={}", self.file.display()),
            format!("--numjobs={}", job.threads),
            format!("--size={size}"),
            format!("--rw={}", job.kind),
            format!("--bs={bytes}"),
            format!("--iodepth={depth}"),
            if job.synchronizes { "--fdatasync=1" } else { "--direct=1" }.to_owned(),
        ];
        if !random {
            arguments.push(format!("--offset_increment={part_bytes}"));
        }
        if let Some(seconds) = job.seconds {
            arguments.push("--time_based=1".to_owned());
            arguments.push(format!("--runtime={}ms", (seconds * 1e3).round()));
        }
        arguments
    }
}

/// Reads the error output until its end, so that a full pipe does not block the program. Returns its first
/// line.
fn first_line(stderr: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let Some(mut stderr) = stderr else {
            return String::new();
        };
        let mut text = Vec::new();
        let _ = stderr.by_ref().take(STDERR_BYTES_MAX).read_to_end(&mut text);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
    })
}

/// Parses the results for reads or writes of the first group of jobs. For synchronized writes, the latency covers only
/// the synchronization.
fn parse(text: &str, side: &str) -> Option<DiskRate> {
    // Warnings may precede the document.
    let document: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let job = document.get("jobs")?.get(0)?;
    let is_sync = side == "sync";
    let figures = job.get(if is_sync { "write" } else { side })?;
    let figure = |name: &str| figures.get(name)?.as_f64();
    let latency = || job.get(side)?.get(if is_sync { "lat_ns" } else { "clat_ns" });
    let p99_ns = || latency()?.get("percentile")?.get("99.000000")?.as_f64();
    Some(DiskRate {
        mb_s: figure("bw_bytes")? / 1e6,
        requests_per_s: figure("iops")?,
        p99_us: p99_ns().map(|ns| ns / 1e3),
        jobs: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Job = Job {
        name: "random read",
        kind: "randread",
        threads: 3,
        seconds: Some(1.0),
        synchronizes: false,
    };

    /// Creates a program in the folder and runs the job with it.
    fn run_script(folder: &std::path::Path, script: &str) -> Result<DiskRate, DiskError> {
        let program = folder.join("fio");
        riops_testkit::write_program(&program, &format!("#!/bin/sh\n{script}\n")).unwrap();
        let interrupt = Interrupt::new();
        let file = folder.join("data");
        Fio { program, file, file_bytes: 64 << 20, interrupt: &interrupt }.run(JOB)
    }

    #[test]
    fn parses_fio_results_in_megabytes() {
        let text = r#"fio: a warning
            {"jobs": [{"read": {"bw_bytes": 250000000, "iops": 238.4,
             "clat_ns": {"percentile": {"99.000000": 9502720}}}, "write": {"bw_bytes": 0, "iops": 0}}]}"#;
        let rate = parse(text, "read").unwrap();
        assert_eq!((rate.mb_s, rate.requests_per_s, rate.p99_us), (250.0, 238.4, Some(9502.72)));
        assert_eq!(parse(text, "write").unwrap().p99_us, None);
        assert_eq!(parse("fio: file not found", "read"), None);
        let text = r#"{"jobs": [{"write": {"bw_bytes": 8192000, "iops": 1000, "clat_ns": {}},
             "sync": {"lat_ns": {"percentile": {"99.000000": 2500000}}}}]}"#;
        let rate = parse(text, "sync").unwrap();
        assert_eq!((rate.requests_per_s, rate.p99_us), (1000.0, Some(2500.0)));
    }

    #[test]
    fn reads_the_error_output_while_the_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        // Ten times the size of a pipe.
        let script = r#"head -c 655360 /dev/zero | tr '\0' x >&2
            for argument; do case $argument in --output=*) output=${argument#--output=};; esac; done
            echo '{"jobs": [{"read": {"bw_bytes": 8000000, "iops": 1000}}]}' > "$output""#;
        let rate = run_script(folder.path(), script).unwrap();
        assert_eq!((rate.mb_s, rate.requests_per_s, rate.jobs), (8.0, 1000.0, Some(3)));
    }

    #[test]
    fn reports_the_first_line_of_the_error_output() {
        let folder = tempfile::tempdir().unwrap();
        let error = run_script(folder.path(), "echo 'no space' >&2; echo more >&2; exit 1");
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "fio failed in job \"random read\": no space");
    }

    #[test]
    fn each_thread_of_a_sequential_job_has_its_own_part_of_the_file() {
        let interrupt = Interrupt::new();
        let fio = Fio {
            program: "fio".into(),
            file: "/data/fio".into(),
            file_bytes: 64 << 20,
            interrupt: &interrupt,
        };
        let sequential = fio.arguments(Job { kind: "read", ..JOB }).join(" ");
        let part = 21 << 20;
        assert!(sequential.contains("--numjobs=3 "), "{sequential}");
        assert!(sequential.contains(&format!("--size={part} ")), "{sequential}");
        assert!(sequential.contains(&format!("--offset_increment={part} ")), "{sequential}");
        let sync = Job { kind: "write", threads: 1, synchronizes: true, ..JOB };
        let sync = fio.arguments(sync).join(" ");
        assert!(sync.contains("--bs=8192 --iodepth=1 --fdatasync=1"), "{sync}");
        assert!(sequential.contains("--direct=1") && !sync.contains("--direct"), "{sync}");
        let random = fio.arguments(JOB).join(" ");
        assert!(random.contains(&format!("--size={} ", 64 << 20)), "{random}");
        assert!(!random.contains("offset_increment"), "{random}");
    }
}
