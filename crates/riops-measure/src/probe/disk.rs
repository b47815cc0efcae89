//! Measures the maximum throughput of a block device with fio, in a directory on it.
//! Also what is known about the storage of a path.
//!
//! Reads and writes a temporary file, bypassing the page cache, and leaves no files behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::device::Device;
pub use super::fio::DiskError;
use super::fio::{Fio, Job};
use super::topology::{Block, Topology, Volume};
use crate::host::Interrupt;
use crate::host::machine::{cpus, free_bytes, selected};
use riops_model::record::{DiskLimit, DiskRate, Storage};
use riops_model::units::format::number_of;

/// Number of fio jobs, each a thread with its own queue, grows until the throughput grows by less than this
/// share. Less than the variation between two measurements would add jobs that change nothing.
const GAIN_MIN: f64 = 0.05;
/// Maximum length of a measurement that searches for the number of jobs, in seconds.
const SEARCH_S_MAX: f64 = 5.0;
/// How long the device is observed before the tests.
const OBSERVED: Duration = Duration::from_secs(1);

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
    let topology = Topology::of_this_machine();
    let volume = topology.volume(folder).ok_or_else(|| DiskError::NoDevice(folder.to_owned()))?;
    let mut fio = Fio { program: "fio".into(), file: PathBuf::new(), file_bytes, interrupt };
    let tool = fio.version()?;
    let free_bytes = free_bytes(folder).unwrap_or(u64::MAX);
    if file_bytes > free_bytes / 2 {
        let folder = folder.to_owned();
        return Err(DiskError::Space { folder, free_bytes, file_bytes });
    }
    report(&format!("observing {} for 1 s, before the tests", volume.name()));
    let others_busy_share = others_busy_share(&volume, interrupt);
    let scratch = ScratchDirectory::create(folder)?;
    fio.file = scratch.file();
    report(&format!("writing a file of {:.1} GB on {}", file_bytes as f64 / 1e9, volume.name()));
    // Blocks that were never written are not read from the device.
    let job = Job {
        name: "filling the file",
        kind: "write",
        threads: 1,
        seconds: None,
        synchronizes: false,
    };
    fio.run(job)?;
    let most_jobs = u32::try_from(cpus()).unwrap_or(u32::MAX);
    let rate = |name, kind| {
        highest(most_jobs, seconds, |threads, seconds| {
            let jobs = number_of(threads.into(), "job");
            report(&format!("{name} for {seconds} s with {jobs}"));
            fio.run(Job { name, kind, threads, seconds: Some(seconds), ..job })
        })
    };
    let sequential_write = rate("sequential write", "write")?;
    let sequential_read = rate("sequential read", "read")?;
    let random_read = rate("random read", "randread")?;
    let random_write = rate("random write", "randwrite")?;
    let name = "synchronized write";
    report(&format!("{name} for {seconds} s with 1 job"));
    let synchronized_write =
        fio.run(Job { name, seconds: Some(seconds), synchronizes: true, ..job })?;
    Ok(DiskLimit {
        device: volume.name(),
        identity: topology.identity(&volume),
        measured_at: Timestamp::now(),
        tool,
        file_bytes,
        seconds,
        sequential_read,
        sequential_write,
        random_read,
        random_write,
        synchronized_write: Some(synchronized_write),
        others_busy_share,
    })
}

/// How busy the disks below a volume are while riops does nothing.
fn others_busy_share(volume: &Volume, interrupt: &Interrupt) -> Option<f64> {
    let device = Device::of_blocks(volume.disks.clone())?;
    let (before, started) = (device.read()?, Instant::now());
    interrupt.pause(OBSERVED);
    let change = device.read()?.since(&before);
    Some(device.usage(&change, started.elapsed().as_secs_f64()).busy_share)
}

/// Doubles the number of jobs, up to `most_jobs`, until the throughput grows by less than [`GAIN_MIN`].
/// Returns the highest rate, measured for `seconds`; the search itself measures at most [`SEARCH_S_MAX`]
/// for each number of jobs.
fn highest(
    most_jobs: u32,
    seconds: f64,
    mut measure: impl FnMut(u32, f64) -> Result<DiskRate, DiskError>,
) -> Result<DiskRate, DiskError> {
    let search_s = seconds.min(SEARCH_S_MAX);
    let mut jobs = 1;
    let (mut best, mut best_jobs) = (measure(jobs, search_s)?, jobs);
    while jobs < most_jobs {
        jobs = jobs.saturating_mul(2).min(most_jobs);
        let rate = measure(jobs, search_s)?;
        let has_grown = rate.requests_per_s >= best.requests_per_s * (1.0 + GAIN_MIN);
        if rate.requests_per_s > best.requests_per_s {
            (best, best_jobs) = (rate, jobs);
        }
        if !has_grown {
            break;
        }
    }
    if search_s < seconds { measure(best_jobs, seconds) } else { Ok(best) }
}

/// Prefix of the name of the scratch directory; the process id follows.
const SCRATCH_PREFIX: &str = "riops-doctor-";

/// The file that is measured.
const SCRATCH_FILE: &str = "fio";
/// All files in it: the results of fio are beside its file.
const SCRATCH_FILES: [&str; 2] = [SCRATCH_FILE, "fio.json"];

/// Removes the scratch directories of killed riops processes. Only their locks are free, also if the process is in
/// another container, and they contain nothing else.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let process = |name: &str| name.strip_prefix(SCRATCH_PREFIX)?.parse::<u32>().ok();
        let is_free = || File::open(entry.path()).is_ok_and(|opened| opened.try_lock().is_ok());
        if entry.file_name().to_str().and_then(process).is_some()
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && is_free()
        {
            remove_scratch(&entry.path());
        }
    }
}

/// Removes a scratch directory, unless it contains other files.
fn remove_scratch(path: &Path) {
    let names = || std::fs::read_dir(path).into_iter().flatten().flatten();
    if names().all(|entry| SCRATCH_FILES.iter().any(|name| entry.file_name() == *name)) {
        for name in SCRATCH_FILES {
            let _ = std::fs::remove_file(path.join(name));
        }
        let _ = std::fs::remove_dir(path);
    }
}

/// A locked directory that is removed with its file on every exit path.
struct ScratchDirectory {
    path: PathBuf,
    _lock: File,
}

impl ScratchDirectory {
    fn create(folder: &Path) -> Result<Self, DiskError> {
        remove_leftovers(folder);
        let path = folder.join(format!("{SCRATCH_PREFIX}{}", std::process::id()));
        let failed = |source| DiskError::Folder { folder: folder.to_owned(), source };
        std::fs::create_dir(&path).map_err(failed)?;
        let lock = File::open(&path).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        Ok(Self { path, _lock: lock })
    }

    fn file(&self) -> PathBuf {
        self.path.join(SCRATCH_FILE)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        remove_scratch(&self.path);
    }
}

// Storage of the server's data, if it is on this machine.

/// Reads the storage of `path` from the operating system.
pub fn storage_of(path: &Path) -> Storage {
    let topology = Topology::of_this_machine();
    let canonical = path.canonicalize().ok();
    let mount = canonical.and_then(|path| topology.mount_of(&path).cloned());
    let volume = topology.volume(path);
    // Partitions and logical volumes have no model and no queue of their own.
    let disk = volume.as_ref().and_then(|volume| volume.disks.first());
    let queue = |file: &str| topology.attribute(disk?, file);
    Storage {
        model: disk.and_then(|disk| topology.model(disk)),
        rotational: queue("queue/rotational").map(|text| text == "1"),
        scheduler: queue("queue/scheduler").map(|text| selected(&text).unwrap_or(text)),
        file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
        mount_options: mount.map(|mount| mount.options),
        device: volume.map(|volume| volume.name()),
    }
}

impl Topology {
    /// Returns the model name that the disk reports.
    pub fn model(&self, disk: &Block) -> Option<String> {
        self.attribute(disk, "device/model")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures a device that delivers these requests per second with 1, 2, 4 … jobs. Returns the result and
    /// the measurements.
    fn highest_of(most_jobs: u32, seconds: f64, rates: &[f64]) -> (DiskRate, Vec<(u32, f64)>) {
        let mut measured = Vec::new();
        let best = highest(most_jobs, seconds, |jobs, seconds| {
            measured.push((jobs, seconds));
            let position = usize::try_from(jobs.next_power_of_two().ilog2()).unwrap();
            Ok(DiskRate {
                mb_s: 1.0,
                requests_per_s: rates[position],
                p99_us: None,
                jobs: Some(jobs),
            })
        });
        (best.unwrap(), measured)
    }

    #[test]
    fn adds_jobs_until_the_throughput_no_longer_grows() {
        let (best, measured) = highest_of(64, 5.0, &[100.0, 180.0, 300.0, 310.0, 900.0]);
        assert_eq!((best.jobs, best.requests_per_s), (Some(8), 310.0));
        assert_eq!(measured, [(1, 5.0), (2, 5.0), (4, 5.0), (8, 5.0)]);
        let (best, measured) = highest_of(64, 5.0, &[100.0, 99.0, 500.0]);
        assert_eq!((best.jobs, measured.len()), (Some(1), 2));
    }

    #[test]
    fn uses_at_most_one_job_per_core() {
        let (best, measured) = highest_of(6, 1.0, &[100.0, 200.0, 400.0, 800.0]);
        assert_eq!((best.jobs, measured.len()), (Some(6), 4));
        assert_eq!(highest_of(1, 1.0, &[100.0]).1, [(1, 1.0)]);
    }

    #[test]
    fn runs_a_long_measurement_once_with_the_best_number_of_jobs() {
        let (best, measured) = highest_of(4, 60.0, &[100.0, 200.0, 201.0]);
        assert_eq!(measured, [(1, 5.0), (2, 5.0), (4, 5.0), (4, 60.0)]);
        assert_eq!(best.jobs, Some(4));
    }

    #[test]
    fn removes_the_scratch_directory_with_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectory::create(folder.path()).unwrap();
        std::fs::write(scratch.file(), b"x").unwrap();
        drop(scratch);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Left by killed processes; in use by a process of another container, which has another id here; of the user.
        let path = |process: u32| folder.path().join(format!("{SCRATCH_PREFIX}{process}"));
        for offset in 1..=3 {
            std::fs::create_dir(path(u32::MAX - offset)).unwrap();
        }
        std::fs::write(path(u32::MAX - 1).join(SCRATCH_FILE), b"x").unwrap();
        let lock = File::open(path(u32::MAX - 2)).unwrap();
        lock.lock().unwrap();
        std::fs::write(path(u32::MAX - 3).join("mine"), b"x").unwrap();
        drop(ScratchDirectory::create(folder.path()).unwrap());
        assert!(!path(u32::MAX - 1).exists());
        assert!(path(u32::MAX - 2).exists() && path(u32::MAX - 3).join("mine").exists());
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(ScratchDirectory::create(&nowhere), Err(DiskError::Folder { .. })));
    }

    #[test]
    fn the_root_has_a_file_system() {
        assert!(crate::probe::disk::storage_of(Path::new("/")).file_system.is_some());
    }
}
