//! The steps of `cbc` held against what the device can do: how near each came, and what held it back.
//! Judgements without a form, for text and HTML alike.

use crate::plan::DatasetPlan;
use crate::probe::DeviceUse;
use crate::probe::disk::DiskLimit;
use crate::probe::sampler::Sampled;
use crate::store::{Record, StageRecord};
use crate::units::BLOCK_BYTES;
use crate::workload::cbc::Step;

/// What the benchmark aims at.
const AIM_SHARE: f64 = 0.9;
/// From here on a resource counts as used up.
const FULL_SHARE: f64 = 0.9;
/// Less than this share of what was asked for came from the device: the rest was in the page cache.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Less is no load.
const IDLE_MB_S: f64 = 1.0;
/// Reads and writes count together where the lesser is at least this share of the greater.
const MIXED_SHARE_MIN: f64 = 0.5;
/// Requests below this are small: the device is not read in a row.
const SMALL_REQUEST_BYTES: f64 = 65_536.0;
/// From here on a kind of waiting is worth a word.
const WAIT_SHARE_MIN: f64 = 0.1;

/// What is held against the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Read,
    Write,
    Both,
}

impl Metric {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Both => "R+W",
        }
    }

    /// The one that says most of a device's use, with its rate in MB/s.
    fn of(device: &DeviceUse) -> (Self, f64) {
        let (read, write) = (device.read_mb_s, device.write_mb_s);
        if read.min(write) >= MIXED_SHARE_MIN * read.max(write) {
            (Self::Both, read + write)
        } else if read > write {
            (Self::Read, read)
        } else {
            (Self::Write, write)
        }
    }

    /// What the device can do of it; a device that does both at once is held against its better one.
    fn most(self, limit: &DiskLimit) -> f64 {
        let (read, write) = (limit.sequential_read.mb_s, limit.sequential_write.mb_s);
        match self {
            Self::Read => read,
            Self::Write => write,
            Self::Both => read.max(write),
        }
    }
}

/// A line of the storage validation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) script: &'static str,
    pub(super) metric: Metric,
    pub(super) best_mb_s: f64,
    pub(super) most_mb_s: f64,
    /// What kept it below the aim, where it is.
    pub(super) held_back: Option<String>,
}

impl Line {
    pub(super) fn share(&self) -> f64 {
        self.best_mb_s / self.most_mb_s.max(f64::MIN_POSITIVE)
    }
}

/// Bytes of table and index, where they are known.
pub(super) fn true_bytes(record: &Record) -> Option<u64> {
    match &record.target.dataset.parameters {
        DatasetPlan::Cbc(dataset) => Some(dataset.table_bytes? + dataset.index_bytes.unwrap_or(0)),
        _ => None,
    }
}

/// The script of a stage: of a step, or of sessions that repeat a select.
pub(super) fn script_of(stage: &StageRecord) -> Option<&'static str> {
    let name = stage.name.split(' ').next().unwrap_or_default();
    let of_key = Step::of_key(&stage.name).map(Step::script);
    of_key.or_else(|| Step::ALL.map(Step::script).into_iter().find(|script| *script == name))
}

pub(super) fn device(stage: &StageRecord) -> Option<&DeviceUse> {
    stage.io.as_ref()?.device.as_ref()
}

/// The best stage of each script, in their order; none where the device was not seen or not measured.
pub(super) fn lines(record: &Record) -> Vec<Line> {
    let Some(limit) = &record.target.disk_limit else {
        return Vec::new();
    };
    let shared = record.client.shares_machine_with_server;
    let mut lines: Vec<Line> = Vec::new();
    for stage in &record.stages {
        let (Some(script), Some(device)) = (script_of(stage), device(stage)) else {
            continue;
        };
        let (metric, best_mb_s) = Metric::of(device);
        let mut line =
            Line { script, metric, best_mb_s, most_mb_s: metric.most(limit), held_back: None };
        if line.share() < AIM_SHARE {
            line.held_back = held_back(stage, shared);
        }
        match lines.iter_mut().find(|known| known.script == script) {
            Some(known) if known.share() < line.share() => *known = line,
            Some(_) => {}
            None => lines.push(line),
        }
    }
    lines.sort_by_key(|line| line.script);
    lines
}

/// Kinds of what a process does or waits for, as shares of its time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Time {
    pub(super) cpu: f64,
    pub(super) data: f64,
    pub(super) wal: f64,
    pub(super) other: f64,
}

impl Time {
    /// `None` where nobody looked.
    pub(super) fn of(probes: &Sampled) -> Option<Self> {
        let mut time = Self::default();
        for wait in &probes.waits {
            let kind = match wait.event.as_str() {
                "CPU" => &mut time.cpu,
                event if event.to_ascii_lowercase().contains(":wal") => &mut time.wal,
                event if event.starts_with("IO:") => &mut time.data,
                _ => &mut time.other,
            };
            *kind += wait.share;
        }
        (probes.looks > 0).then_some(time)
    }

    /// The kinds that are worth a word, the longest first.
    pub(super) fn told(self) -> Vec<(&'static str, f64)> {
        let mut kinds =
            vec![("CPU", self.cpu), ("data", self.data), ("WAL", self.wal), ("other", self.other)];
        kinds.retain(|(_, share)| *share >= WAIT_SHARE_MIN);
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        kinds
    }
}

/// Why a stage did not come near the maximum: the first cause for which there is evidence.
fn held_back(stage: &StageRecord, shared: bool) -> Option<String> {
    let percent = super::percent;
    let device = device(stage)?;
    if let Some(text) = page_cache(stage, device) {
        return Some(text);
    }
    if shared && stage.machine_busy_share.is_some_and(|share| share >= FULL_SHARE) {
        return Some("CPU: all processors were busy".to_owned());
    }
    let time = stage.probes.as_ref().and_then(Time::of)?;
    let wal_mb_s = stage.io.as_ref().and_then(|io| io.wal_mb_s).unwrap_or(0.0);
    let longest = time.told().first().map(|(kind, _)| *kind)?;
    let process = stage.statement.as_ref().and_then(|statement| statement.process_cpu_share);
    let text = match longest {
        "WAL" => {
            format!(
                "WAL: {} of the time waiting for it, {wal_mb_s:.0} MB/s of log",
                percent(time.wal)
            )
        }
        "CPU" if process.is_some_and(|share| share >= FULL_SHARE) => {
            format!("CPU: its one process used {} of a processor", percent(process.unwrap_or(0.0)))
        }
        "CPU" => {
            let wal = if time.wal >= WAIT_SHARE_MIN {
                format!(", {} waiting for WAL", percent(time.wal))
            } else {
                String::new()
            };
            format!("CPU: {} of the time running{wal}", percent(time.cpu))
        }
        "data" => {
            let requests = device.reads_per_s + device.writes_per_s;
            let bytes = (device.read_mb_s + device.write_mb_s) * 1e6 / requests.max(1.0);
            let small = if bytes < SMALL_REQUEST_BYTES {
                format!(", in requests of {:.0} kB", bytes / 1e3)
            } else {
                String::new()
            };
            format!("data: {} of the time waiting for its blocks{small}", percent(time.data))
        }
        _ => format!("{} of the time waiting for other processes", percent(time.other)),
    };
    let checkpoints = checkpoints(stage);
    let by_checkpoint = if checkpoints > 0 {
        format!("; {checkpoints} checkpoint{}", if checkpoints == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    Some(text + &by_checkpoint)
}

/// Checkpoints that were begun or asked for within the stage.
pub(super) fn checkpoints(stage: &StageRecord) -> u64 {
    let found = stage.database.as_ref().and_then(|database| database.checkpoints);
    found.map_or(0, |checkpoints| checkpoints.timed + checkpoints.requested)
}

/// Bytes that a stage asked for beyond shared buffers: by its plan, else by the table's counters.
pub(super) fn bytes_read(stage: &StageRecord) -> Option<u64> {
    let plan = stage.statement.as_ref().and_then(|statement| statement.plan.as_ref());
    let blocks = match plan {
        Some(plan) => plan.buffers.shared_read,
        None => stage.database.as_ref()?.blocks?.reads(),
    };
    Some(blocks * BLOCK_BYTES)
}

/// The page cache, where it answered or took most of what the server read or wrote: the device had little
/// to do then.
fn page_cache(stage: &StageRecord, device: &DeviceUse) -> Option<String> {
    let per_s = |bytes: u64| bytes as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE);
    let read = bytes_read(stage).map_or(0.0, per_s);
    let written = stage.process_io.map_or(0.0, |io| per_s(io.written));
    if read.max(written).max(device.read_mb_s + device.write_mb_s) <= IDLE_MB_S {
        return Some("shared buffers: next to nothing was read or written".to_owned());
    }
    if read > written && device.read_mb_s < DEVICE_SHARE_MIN * read {
        return Some(format!(
            "page cache: {read:.0} MB/s were read, {:.0} of them from the device",
            device.read_mb_s
        ));
    }
    if written > read && device.write_mb_s < DEVICE_SHARE_MIN * written {
        return Some(format!(
            "page cache: it took {written:.0} MB/s, of which {:.0} reached the device in time",
            device.write_mb_s
        ));
    }
    None
}

/// Whether a select that is meant to find nothing in the caches did so: the share of its blocks that were
/// not in shared buffers, and of these the share that came from the device where that can be told.
pub(super) fn uncached(stage: &StageRecord) -> Option<(f64, Option<f64>)> {
    let buffers = stage.statement.as_ref()?.plan.as_ref()?.buffers;
    let missed = buffers.uncached_share()?;
    let asked = buffers.shared_read * BLOCK_BYTES;
    let fetched = device(stage).map(|device| device.read_mb_s * 1e6 * stage.seconds);
    let from_device = fetched.filter(|_| asked > 0).map(|bytes| (bytes / asked as f64).min(1.0));
    Some((missed, from_device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_cbc;

    fn line(script: &str, change: impl Fn(&mut StageRecord)) -> Line {
        let mut record = example_cbc();
        record.stages.iter_mut().for_each(change);
        lines(&record).into_iter().find(|line| line.script == script).unwrap()
    }

    fn waits(stage: &mut StageRecord, of: &[(&str, f64)]) {
        let probes = stage.probes.as_mut().unwrap();
        probes.waits = of
            .iter()
            .map(|&(event, share)| crate::probe::sampler::WaitShare {
                event: event.to_owned(),
                share,
            })
            .collect();
    }

    #[test]
    fn each_script_is_held_against_the_device_by_what_it_does_most() {
        let record = example_cbc();
        let found: Vec<_> = lines(&record)
            .iter()
            .map(|line| (line.script, line.metric.as_str(), line.best_mb_s, line.most_mb_s))
            .collect();
        assert_eq!(
            found,
            [
                ("t00-ctas", "write", 480.0, 500.0),
                ("t01-vacuum", "R+W", 590.0, 700.0),
                ("t02-index", "R+W", 30.0, 700.0),
                ("t03-select-max", "read", 120.0, 700.0),
                ("t04-selectr", "read", 680.0, 700.0),
            ]
        );
        assert!(lines(&record)[0].held_back.is_none(), "{:?}", lines(&record)[0]);
    }

    #[test]
    fn a_step_below_the_aim_names_what_held_it_back() {
        let cause = |change: fn(&mut StageRecord)| line("t01-vacuum", change).held_back.unwrap();
        assert!(
            cause(|stage| waits(stage, &[("IO:WalSync", 0.6), ("CPU", 0.4)]))
                .starts_with("WAL: 60 % of the time waiting for it, ")
        );
        assert!(cause(|stage| waits(stage, &[("LWLock:WALWrite", 0.6)])).starts_with("WAL: 60 %"));
        assert!(cause(|stage| waits(stage, &[("IO:DataFileRead", 0.9)])).starts_with("data: 90 %"));
        assert!(
            cause(|stage| {
                waits(stage, &[("CPU", 0.9)]);
                stage.statement.iter_mut().for_each(|own| own.process_cpu_share = Some(0.95));
            })
            .starts_with("CPU: its one process used 95 %")
        );
        assert!(cause(|stage| stage.machine_busy_share = Some(0.97)).contains("all processors"));
        assert!(
            cause(|stage| {
                let device = stage.io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
                (device.read_mb_s, device.write_mb_s) = (3.0, 2.0);
            })
            .starts_with("page cache: it took ")
        );
        assert!(
            cause(|stage| {
                let database = stage.database.get_or_insert_default();
                database.checkpoints = Some(crate::probe::database::Checkpoints {
                    requested: 2,
                    ..Default::default()
                });
            })
            .ends_with("; 2 checkpoints")
        );
    }

    #[test]
    fn without_a_maximum_nothing_is_held_against_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        assert_eq!(lines(&record), []);
    }

    #[test]
    fn uncached_is_what_neither_cache_had() {
        let record = example_cbc();
        let first = record.stages.iter().find(|stage| stage.name == "SELECT_u1").unwrap();
        let (missed, from_device) = uncached(first).unwrap();
        assert!((missed - 0.992).abs() < 1e-9);
        // 120 MB/s over 0.8 s, of 12,400 blocks.
        assert!((from_device.unwrap() - 96e6 / (12_400.0 * 8192.0)).abs() < 1e-9);
    }
}
