//! Measures the maximum throughput of a block device with fio, in a directory on it.
//!
//! Reads and writes a temporary file, bypassing the page cache, and leaves no files behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::device::Device;
use crate::host::Interrupt;
use crate::host::machine::free_bytes;
use crate::units::BLOCK_BYTES;

/// Queue depths, deeper than those of any single database session: the result is a maximum.
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
        "cannot measure the device of {0}: the directory is not on a block device (tmpfs, network or overlay file system)"
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

/// One measured rate of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskRate {
    /// Throughput, in MB (10^6 bytes) per second.
    pub mb_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// 99th percentile of the request latency, in microseconds.
    pub p99_us: Option<f64>,
}

/// Measured limits of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskLimit {
    /// Name of the device: `nvme0n1`.
    pub device: String,
    /// Time of the measurement.
    pub measured_at: Timestamp,
    /// Name and version of the tool.
    pub tool: String,
    /// Size of the test file, in bytes.
    pub file_bytes: u64,
    /// Length of each of the four measurements, in seconds.
    pub seconds: f64,
    /// Sequential reads of 1 MiB at queue depth 16.
    pub sequential_read: DiskRate,
    /// Sequential writes of 1 MiB at queue depth 16.
    pub sequential_write: DiskRate,
    /// Random reads of one database block at queue depth 64.
    pub random_read: DiskRate,
    /// Random writes of one database block at queue depth 64.
    pub random_write: DiskRate,
}

/// The four jobs, in order: the file is written before it is read.
const JOBS: [(&str, &str); 4] = [
    ("sequential write", "write"),
    ("sequential read", "read"),
    ("random read", "randread"),
    ("random write", "randwrite"),
];

/// Measures the device of a directory with a file of `file_bytes` bytes, for `seconds` per job.
/// `report` receives a progress message for each step.
///
/// # Errors
/// Returns [`DiskError`] if the device cannot be measured.
pub fn measure(
    folder: &Path,
    file_bytes: u64,
    seconds: f64,
    interrupt: &Interrupt,
    report: &dyn Fn(&str),
) -> Result<DiskLimit, DiskError> {
    if let Err(source) = std::fs::read_dir(folder) {
        return Err(DiskError::Folder { folder: folder.to_owned(), source });
    }
    let device = Device::of_path(folder).ok_or_else(|| DiskError::NoDevice(folder.to_owned()))?;
    let tool = version()?;
    let free_bytes = free_bytes(folder).unwrap_or(u64::MAX);
    if file_bytes > free_bytes / 2 {
        let folder = folder.to_owned();
        return Err(DiskError::Space { folder, free_bytes, file_bytes });
    }
    let scratch = ScratchDirectory::create(folder)?;
    let fio = Fio { file: scratch.0.join("fio"), file_bytes, interrupt };
    report(&format!("writing a file of {:.1} GB on {}", file_bytes as f64 / 1e9, device.name()));
    // Blocks that were never written are not read from the device.
    fio.run("filling the file", "write", None)?;
    let mut rates = Vec::new();
    for (job, kind) in JOBS {
        report(&format!("{job} for {seconds} s"));
        rates.push(fio.run(job, kind, Some(seconds))?);
    }
    let [sequential_write, sequential_read, random_read, random_write] = *rates.as_slice() else {
        return Err(DiskError::Failed { job: "all", reason: "a result is missing".to_owned() });
    };
    Ok(DiskLimit {
        device: device.name().to_owned(),
        measured_at: Timestamp::now(),
        tool,
        file_bytes,
        seconds,
        sequential_read,
        sequential_write,
        random_read,
        random_write,
    })
}

fn version() -> Result<String, DiskError> {
    let out = Command::new("fio").arg("--version").output().map_err(|_| DiskError::NotInstalled)?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Prefix of the name of the scratch directory; the process id follows.
const SCRATCH_PREFIX: &str = "riops-doctor-";

/// Removes the scratch directories of killed riops processes.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_PREFIX));
        let is_gone = |process: &str| {
            process.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
        };
        if process.is_some_and(is_gone) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory that is removed with its contents on every exit path.
struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    fn create(folder: &Path) -> Result<Self, DiskError> {
        remove_leftovers(folder);
        let scratch = folder.join(format!("{SCRATCH_PREFIX}{}", std::process::id()));
        std::fs::create_dir(&scratch)
            .map_err(|source| DiskError::Folder { folder: folder.to_owned(), source })?;
        Ok(Self(scratch))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Fio<'a> {
    file: PathBuf,
    file_bytes: u64,
    interrupt: &'a Interrupt,
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
    /// Runs one job: for this many seconds, or once over the file.
    fn run(
        &self,
        job: &'static str,
        kind: &str,
        seconds: Option<f64>,
    ) -> Result<DiskRate, DiskError> {
        let random = kind.starts_with("rand");
        let (bytes, depth) =
            if random { (BLOCK_BYTES, RANDOM_DEPTH) } else { (SEQUENTIAL_BYTES, SEQUENTIAL_DEPTH) };
        let failed = |reason: String| DiskError::Failed { job, reason };
        // The output is larger than a pipe buffer.
        let output = self.file.with_extension("json");
        let mut command = Command::new("fio");
        command
            .args(["--name=riops", "--direct=1", "--output-format=json", "--thread=1"])
            .arg(format!(
                "--ioengine={}",
                if cfg!(target_os = "linux") { "libaio" } else { "posixaio" }
            ))
            .arg(format!("--filename={}", self.file.display()))
            .arg(format!("--output={}", output.display()))
            .arg(format!("--size={}", self.file_bytes))
            .arg(format!("--rw={kind}"))
            .arg(format!("--bs={bytes}"))
            .arg(format!("--iodepth={depth}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(seconds) = seconds {
            command.arg("--time_based=1").arg(format!("--runtime={}ms", (seconds * 1e3).round()));
        }
        let mut child = KillOnDrop(command.spawn().map_err(|_| DiskError::NotInstalled)?);
        let deadline = Instant::now()
            + seconds
                .map_or(FILL_TIMEOUT, |seconds| JOB_TIMEOUT + Duration::from_secs_f64(seconds));
        let status = loop {
            if self.interrupt.requested() {
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
            let mut stderr = String::new();
            if let Some(mut errors) = child.0.stderr.take() {
                let _ = std::io::Read::read_to_string(&mut errors, &mut stderr);
            }
            return Err(failed(stderr.lines().next().unwrap_or("no reason given").to_owned()));
        }
        let text = std::fs::read_to_string(&output).map_err(|error| failed(error.to_string()))?;
        let side = if kind.ends_with("write") { "write" } else { "read" };
        parse(&text, side).ok_or_else(|| failed("its output contains no results".to_owned()))
    }
}

/// Parses the results for reads or writes of the first job.
fn parse(text: &str, side: &str) -> Option<DiskRate> {
    // Warnings may precede the document.
    let document: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let figures = document.get("jobs")?.get(0)?.get(side)?;
    let number = |name: &str| figures.get(name)?.as_f64();
    let p99_ns = || figures.get("clat_ns")?.get("percentile")?.get("99.000000")?.as_f64();
    Some(DiskRate {
        mb_s: number("bw_bytes")? / 1e6,
        requests_per_s: number("iops")?,
        p99_us: p99_ns().map(|ns| ns / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_fio_results_in_megabytes() {
        let text = r#"fio: a warning
            {"jobs": [{"read": {"bw_bytes": 250000000, "iops": 238.4,
             "clat_ns": {"percentile": {"99.000000": 9502720}}}, "write": {"bw_bytes": 0, "iops": 0}}]}"#;
        let rate = parse(text, "read").unwrap();
        assert_eq!((rate.mb_s, rate.requests_per_s, rate.p99_us), (250.0, 238.4, Some(9502.72)));
        assert_eq!(parse(text, "write").unwrap().p99_us, None);
        assert_eq!(parse("fio: file not found", "read"), None);
    }

    #[test]
    fn removes_the_scratch_directory_with_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectory::create(folder.path()).unwrap();
        std::fs::write(scratch.0.join("fio"), b"x").unwrap();
        drop(scratch);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // No process has the highest id.
        let left = folder.path().join(format!("{SCRATCH_PREFIX}{}", u32::MAX));
        std::fs::create_dir(&left).unwrap();
        drop(ScratchDirectory::create(folder.path()).unwrap());
        assert!(!left.exists());
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(ScratchDirectory::create(&nowhere), Err(DiskError::Folder { .. })));
    }
}
