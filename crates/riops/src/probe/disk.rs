//! What a device can do at most: measured with fio, in a folder on it.
//!
//! Reads and writes a file of its own past the page cache, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::device::Device;
use crate::host::Interrupt;
use crate::host::machine::free_bytes;
use crate::units::BLOCK_BYTES;

/// Requests under way at once: more than any single session of a database has, as a maximum should.
const SEQUENTIAL_DEPTH: u32 = 16;
const RANDOM_DEPTH: u32 = 64;
/// One request of a sequential job.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// How often a job is looked at, and the user's wish to end.
const LOOK: Duration = Duration::from_millis(50);
/// Beyond its own time, a job may take so long.
const PATIENCE: Duration = Duration::from_mins(2);
/// Writing the file for the first time goes on for at most so long.
const FILL_MAX: Duration = Duration::from_mins(30);

/// Why a device could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// No fio.
    #[error(
        "fio, which measures the device, is not installed: install it (Debian and Ubuntu: apt-get install fio; Fedora: dnf install fio; macOS: brew install fio)"
    )]
    NotInstalled,
    /// The folder cannot be used.
    #[error(
        "cannot make a file for fio in {folder}: {source}; name another folder of the same device (--disk-dir)"
    )]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The folder is on no block device.
    #[error(
        "{0} is on no block device (tmpfs, a network or an overlay): there is nothing to measure"
    )]
    NoDevice(PathBuf),
    /// Not enough space for the file.
    #[error(
        "{folder} has {free_bytes} bytes free: too few for a file of {wanted_bytes} that leaves half of them"
    )]
    Space {
        /// Where.
        folder: PathBuf,
        /// What there is.
        free_bytes: u64,
        /// What the file takes.
        wanted_bytes: u64,
    },
    /// fio failed.
    #[error("fio failed ({job}): {reason}")]
    Failed {
        /// Which job.
        job: &'static str,
        /// What it said.
        reason: String,
    },
    /// The user asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// One figure of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskRate {
    /// In MB (10^6 bytes) per second.
    pub mb_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// The slowest of a hundred requests, in microseconds.
    pub p99_us: Option<f64>,
}

/// What a device can do.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskLimit {
    /// Its name: `nvme0n1`.
    pub device: String,
    /// When it was measured.
    pub measured_at: Timestamp,
    /// With what.
    pub tool: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Length of each of the four measurements.
    pub seconds: f64,
    /// Requests of 1 MiB, 16 at once.
    pub sequential_read: DiskRate,
    /// The same, written.
    pub sequential_write: DiskRate,
    /// Requests of a block of the database, 64 at once.
    pub random_read: DiskRate,
    /// The same, written.
    pub random_write: DiskRate,
}

/// The four measurements, in their order: the file is written before it is read.
const JOBS: [(&str, &str); 4] = [
    ("sequential write", "write"),
    ("sequential read", "read"),
    ("random read", "randread"),
    ("random write", "randwrite"),
];

/// Measures the device below a folder with a file of so many bytes, for so many seconds each.
///
/// # Errors
/// [`DiskError`]
pub fn measure(
    folder: &Path,
    file_bytes: u64,
    seconds: f64,
    interrupt: &Interrupt,
    told: &dyn Fn(&str),
) -> Result<DiskLimit, DiskError> {
    if let Err(source) = std::fs::read_dir(folder) {
        return Err(DiskError::Folder { folder: folder.to_owned(), source });
    }
    let device = Device::of_path(folder).ok_or_else(|| DiskError::NoDevice(folder.to_owned()))?;
    let tool = version()?;
    let free_bytes = free_bytes(folder).unwrap_or(u64::MAX);
    if file_bytes > free_bytes / 2 {
        let folder = folder.to_owned();
        return Err(DiskError::Space { folder, free_bytes, wanted_bytes: file_bytes });
    }
    let own = OwnFolder::make(folder)?;
    let fio = Fio { file: own.0.join("fio"), file_bytes, interrupt };
    told(&format!("writing a file of {:.1} GB on {}", file_bytes as f64 / 1e9, device.name()));
    // What was never written is not read from the device either.
    fio.run("filling the file", "write", None)?;
    let mut rates = Vec::new();
    for (job, kind) in JOBS {
        told(&format!("{job} for {seconds} s"));
        rates.push(fio.run(job, kind, Some(seconds))?);
    }
    let [sequential_write, sequential_read, random_read, random_write] = *rates.as_slice() else {
        return Err(DiskError::Failed { job: "all", reason: "a figure is missing".to_owned() });
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

/// How the name of the folder begins; the number of the process follows.
const OWN_FOLDER: &str = "riops-doctor-";

/// Removes the folders of riopses that were killed.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(OWN_FOLDER));
        let is_gone = |process: &str| {
            process.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
        };
        if process.is_some_and(is_gone) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder that goes with its contents, whatever ends the measurement.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make(folder: &Path) -> Result<Self, DiskError> {
        remove_leftovers(folder);
        let own = folder.join(format!("{OWN_FOLDER}{}", std::process::id()));
        std::fs::create_dir(&own)
            .map_err(|source| DiskError::Folder { folder: folder.to_owned(), source })?;
        Ok(Self(own))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Fio<'a> {
    file: PathBuf,
    file_bytes: u64,
    interrupt: &'a Interrupt,
}

/// A child that does not outlive its value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fio<'_> {
    /// One job: for so many seconds, or once over the file.
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
        // Its answer is larger than a pipe holds.
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
        let mut child = Killed(command.spawn().map_err(|_| DiskError::NotInstalled)?);
        let deadline = Instant::now()
            + seconds.map_or(FILL_MAX, |seconds| PATIENCE + Duration::from_secs_f64(seconds));
        let status = loop {
            if self.interrupt.requested() {
                return Err(DiskError::Interrupted);
            }
            match child.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() >= deadline => {
                    return Err(failed("it did not end in time".to_owned()));
                }
                Ok(None) => std::thread::sleep(LOOK),
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        if !status.success() {
            let mut said = String::new();
            if let Some(mut errors) = child.0.stderr.take() {
                let _ = std::io::Read::read_to_string(&mut errors, &mut said);
            }
            return Err(failed(said.lines().next().unwrap_or("no reason given").to_owned()));
        }
        let text = std::fs::read_to_string(&output).map_err(|error| failed(error.to_string()))?;
        let side = if kind.ends_with("write") { "write" } else { "read" };
        parse(&text, side).ok_or_else(|| failed("its answer has no figures".to_owned()))
    }
}

/// The figures of one side of the first job.
fn parse(text: &str, side: &str) -> Option<DiskRate> {
    // Warnings may stand before the document.
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
    fn the_figures_of_fio_are_read_in_megabytes() {
        let text = r#"fio: a warning
            {"jobs": [{"read": {"bw_bytes": 250000000, "iops": 238.4,
             "clat_ns": {"percentile": {"99.000000": 9502720}}}, "write": {"bw_bytes": 0, "iops": 0}}]}"#;
        let rate = parse(text, "read").unwrap();
        assert_eq!((rate.mb_s, rate.requests_per_s, rate.p99_us), (250.0, 238.4, Some(9502.72)));
        assert_eq!(parse(text, "write").unwrap().p99_us, None);
        assert_eq!(parse("fio: file not found", "read"), None);
    }

    #[test]
    fn a_folder_of_its_own_goes_with_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFolder::make(folder.path()).unwrap();
        std::fs::write(own.0.join("fio"), b"x").unwrap();
        drop(own);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // No process has the highest number of all.
        let left = folder.path().join(format!("{OWN_FOLDER}{}", u32::MAX));
        std::fs::create_dir(&left).unwrap();
        drop(OwnFolder::make(folder.path()).unwrap());
        assert!(!left.exists());
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(OwnFolder::make(&nowhere), Err(DiskError::Folder { .. })));
    }
}
