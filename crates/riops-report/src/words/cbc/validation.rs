//! The storage validation of `cbc`: the rates of its steps as shares of the device's maximum, and the
//! bottleneck of each step.

use std::cmp::Ordering;

use riops_model::figure::device;
use riops_model::plan::{CbcDataset, CbcQuery, CbcStep};
use riops_model::record::{DeviceUse, DiskLimit, Record, Sampled, StageRecord};
use riops_model::units::BLOCK_BYTES;
use riops_model::units::format::percent;

/// Target of the benchmark: share of the device's maximum.
const AIM_SHARE: f64 = 0.9;
/// A resource with at least this share counts as saturated.
const FULL_SHARE: f64 = 0.9;
/// Minimum length of a stage that is validated, in seconds. In a shorter one, delayed writes of the previous
/// stage would count as its own.
pub(super) const SECONDS_MIN: f64 = 1.0;
/// If the device served less than this share of the I/O of the server, the page cache served most of it.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// A lower rate counts as idle.
const IDLE_MB_S: f64 = 1.0;
/// Reads and writes are added up if the lower rate is at least this share of the higher one.
const MIXED_SHARE_MIN: f64 = 0.1;
/// Smaller requests are compared with the random read rate of the device.
const SMALL_REQUEST_BYTES: f64 = 65_536.0;
/// Minimum share of a kind of time that is reported.
const WAIT_SHARE_MIN: f64 = 0.1;
/// Minimum share that counts as most of the time.
const FREQUENT_SHARE: f64 = 0.5;
/// If the device read more than this factor of the requested bytes, it did read-ahead.
const READ_AHEAD_MAX: f64 = 1.5;
/// Minimum number of wait event samples from which shares are computed.
const SAMPLES_MIN: u64 = 5;

/// A line of the storage validation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) script: &'static str,
    /// The rate that is compared with the device's maximum.
    pub(super) metric: &'static str,
    pub(super) best_mb_s: f64,
    pub(super) max_mb_s: f64,
    /// The bottleneck, if the rate is below the target and the cause is known.
    pub(super) bottleneck: Option<String>,
}

impl Line {
    /// Compares most of the I/O of a stage with the device's maximum. A SELECT only reads: concurrent writes belong to
    /// other processes. The maximum of a mixture assumes that the device alternates between reads and writes.
    fn new(script: &'static str, device: &DeviceUse, limit: &DiskLimit) -> Self {
        let (read, write) = (device.read_mb_s, device.write_mb_s);
        let (max_read, max_write) = (limit.sequential_read.mb_s, limit.sequential_write.mb_s);
        let is_select = script.contains("select");
        let bytes = read * 1e6 / device.reads_per_s.max(1.0);
        let is_small = read > IDLE_MB_S && bytes < SMALL_REQUEST_BYTES;
        let (metric, best_mb_s, max_mb_s) = if is_select && is_small {
            ("random read", read, limit.random_read.mb_s)
        } else if !is_select && read.min(write) >= MIXED_SHARE_MIN * read.max(write) {
            let time =
                read / max_read.max(f64::MIN_POSITIVE) + write / max_write.max(f64::MIN_POSITIVE);
            ("R+W", read + write, (read + write) / time.max(f64::MIN_POSITIVE))
        } else if is_select || read > write {
            ("read", read, max_read)
        } else {
            ("write", write, max_write)
        };
        Self { script, metric, best_mb_s, max_mb_s, bottleneck: None }
    }

    pub(super) fn share(&self) -> f64 {
        self.best_mb_s / self.max_mb_s.max(f64::MIN_POSITIVE)
    }
}

/// Returns the bytes of table and index, if known.
pub(super) fn dataset_bytes(record: &Record) -> Option<u64> {
    let dataset: &CbcDataset = record.dataset()?;
    Some(dataset.table_bytes? + dataset.index_bytes.unwrap_or(0))
}

/// Returns the script of a stage: of a step, or of sessions that repeat a SELECT.
pub(super) fn script_of(stage: &StageRecord) -> Option<&'static str> {
    let name = stage.name.split(' ').next().unwrap_or_default();
    // Earlier versions named the stages of the sessions like the scripts of the steps.
    let scripts =
        || CbcQuery::ALL.map(CbcQuery::script).into_iter().chain(CbcStep::ALL.map(CbcStep::script));
    let of_key = CbcStep::of_key(&stage.name).map(CbcStep::script);
    of_key.or_else(|| scripts().find(|script| *script == name))
}

/// Returns the best stage of each script, ordered by script; empty if the device was not observed or its
/// maximum rates are unknown.
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
        if stage.seconds < SECONDS_MIN {
            continue;
        }
        let mut line = Line::new(script, device, limit);
        if line.share() < AIM_SHARE {
            line.bottleneck = bottleneck(stage, shared);
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

/// Shares of the time that a server process spent running or waiting, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Time {
    pub(super) cpu: f64,
    pub(super) data: f64,
    pub(super) wal: f64,
    pub(super) other: f64,
}

impl Time {
    /// Returns the shares; `None` without enough samples.
    pub(super) fn from_samples(probes: &Sampled) -> Option<Self> {
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
        (probes.looks >= SAMPLES_MIN).then_some(time)
    }

    /// Returns the kinds with a significant share, the largest first.
    pub(super) fn significant(self) -> Vec<(&'static str, f64)> {
        let mut kinds =
            vec![("CPU", self.cpu), ("data", self.data), ("WAL", self.wal), ("other", self.other)];
        kinds.retain(|(_, share)| *share >= WAIT_SHARE_MIN);
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        kinds
    }
}

/// Returns why a stage stayed below the maximum: the first cause that the counters show, and the writes of a
/// concurrent checkpoint.
fn bottleneck(stage: &StageRecord, shared: bool) -> Option<String> {
    let device = device(stage)?;
    let time = stage.probes.as_ref().and_then(Time::from_samples);
    let running = time.filter(|time| time.cpu >= FREQUENT_SHARE).map_or_else(String::new, |time| {
        format!("; not waiting {} of the time", percent(time.cpu))
    });
    let cause = match page_cache(stage, device) {
        Some(text) => Some(text + &running),
        None if shared && stage.machine_busy_share.is_some_and(|share| share >= FULL_SHARE) => {
            Some("CPU: all processors were busy".to_owned())
        }
        None => time.and_then(|time| main_activity(stage, time)),
    };
    let causes: Vec<String> = cause.into_iter().chain(checkpoint(stage, device)).collect();
    (!causes.is_empty()).then(|| causes.join("; "))
}

/// Returns the kind of time that took the largest share.
fn main_activity(stage: &StageRecord, time: Time) -> Option<String> {
    let wal_mb_s = stage.io.as_ref().and_then(|io| io.wal_mb_s).unwrap_or(0.0);
    let process = stage.statement.as_ref().and_then(|statement| statement.process_cpu_share);
    let [cpu, data, wal, other] = [time.cpu, time.data, time.wal, time.other].map(percent);
    Some(match time.significant().first()?.0 {
        "WAL" => {
            format!("WAL: waiting for it {wal} of the time, {wal_mb_s:.0} MB/s of WAL written")
        }
        "CPU" => match process.filter(|&share| share >= FULL_SHARE) {
            Some(share) => {
                format!("CPU: the server process used {} of one processor", percent(share))
            }
            None if time.wal >= WAIT_SHARE_MIN => {
                format!("CPU: not waiting {cpu} of the time, waiting for WAL {wal}")
            }
            None => format!("CPU: not waiting {cpu} of the time"),
        },
        "data" => format!("data: waiting for data blocks {data} of the time"),
        _ => {
            let named = |event: &&str| !event.starts_with("IO:") && *event != "CPU";
            let waits = stage.probes.iter().flat_map(|probes| &probes.waits);
            let event = waits.map(|wait| wait.event.as_str()).find(named).unwrap_or("unknown");
            format!("other waits: {other} of the time, most often {event}")
        }
    })
}

/// Reports the write rate of concurrent checkpoints, if it was a significant part of the device's writes.
fn checkpoint(stage: &StageRecord, device: &DeviceUse) -> Option<String> {
    let written = stage.database.as_ref()?.checkpoints?.buffers_written * BLOCK_BYTES;
    let mb_s = written as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE);
    (mb_s > IDLE_MB_S && mb_s >= WAIT_SHARE_MIN * device.write_mb_s)
        .then(|| format!("concurrent checkpoints wrote {mb_s:.0} MB/s"))
}

/// Returns the number of scheduled and requested checkpoints during the stage.
pub(super) fn checkpoints(stage: &StageRecord) -> u64 {
    let counted = stage.database.as_ref().and_then(|database| database.checkpoints);
    counted.map_or(0, |checkpoints| checkpoints.timed + checkpoints.requested)
}

/// Returns the MB per second that a stage read outside shared buffers: from its plan, or from the counters of
/// the table. For a session loop it is computed from LIOPS, because the counters also include the end of
/// the stage.
fn read_mb_s(stage: &StageRecord) -> Option<f64> {
    let Some(statement) = &stage.statement else {
        let io = stage.io.as_ref()?;
        return Some(io.liops? * (1.0 - io.hit_ratio?) * BLOCK_BYTES as f64 / 1e6);
    };
    let blocks = match &statement.plan {
        Some(plan) => plan.buffers.shared_read,
        None => stage.database.as_ref()?.blocks?.reads(),
    };
    Some((blocks * BLOCK_BYTES) as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE))
}

/// Returns the MB per second of blocks that a stage wrote: from the counters of the server, which include
/// parallel workers (PostgreSQL 16 or later), or from the kernel's I/O counters of the server process.
fn written_mb_s(stage: &StageRecord) -> Option<f64> {
    let io = stage.database.as_ref().and_then(|database| database.client_io);
    let bytes = match io {
        Some(io) => io.write_bytes + io.extend_bytes,
        None => stage.process_io?.written,
    };
    Some(bytes as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE))
}

/// Returns the cause if the page cache or shared buffers absorbed most reads or writes of the server.
fn page_cache(stage: &StageRecord, device: &DeviceUse) -> Option<String> {
    let (read, written) = (read_mb_s(stage)?, written_mb_s(stage)?);
    let &DeviceUse { read_mb_s, write_mb_s, .. } = device;
    if read.max(written).max(read_mb_s + write_mb_s) <= IDLE_MB_S {
        return Some("shared buffers: almost no reads or writes".to_owned());
    }
    let (did, server, device) = match read.total_cmp(&written) {
        Ordering::Greater => ("read", read, read_mb_s),
        Ordering::Less => ("wrote", written, write_mb_s),
        Ordering::Equal => return None,
    };
    (device < DEVICE_SHARE_MIN * server).then(|| {
        format!("page cache: the server {did} {server:.0} MB/s, the device only {device:.0} MB/s")
    })
}

/// Sources of the blocks of a SELECT that is meant to run with empty caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Uncached {
    /// Share of its blocks that were not in shared buffers, 0 to 1.
    pub(super) missed_share: f64,
    /// Bytes of these blocks.
    pub(super) requested_bytes: f64,
    /// Bytes that the device read during the SELECT, including read-ahead; `None` if it cannot be observed.
    pub(super) device_bytes: Option<f64>,
}

impl Uncached {
    pub(super) fn from_stage(stage: &StageRecord) -> Option<Self> {
        let buffers = stage.statement.as_ref()?.plan.as_ref()?.buffers;
        Some(Self {
            missed_share: buffers.uncached_share()?,
            requested_bytes: (buffers.shared_read * BLOCK_BYTES) as f64,
            device_bytes: device(stage).map(|device| device.read_mb_s * 1e6 * stage.seconds),
        })
    }

    /// Returns whether the SELECT found almost nothing in the caches. `None` if that is uncertain: the device
    /// cannot be observed, or its read-ahead hides how much of its reads was requested.
    pub(super) fn verdict(self) -> Option<bool> {
        if self.missed_share < FULL_SHARE {
            return Some(false);
        }
        match self.device_bytes? / self.requested_bytes.max(f64::MIN_POSITIVE) {
            share if share < FULL_SHARE => Some(false),
            share if share > READ_AHEAD_MAX => None,
            _ => Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_cbc;
    use riops_model::record::{Checkpoints, WaitShare};

    fn line(script: &str, change: impl Fn(&mut StageRecord)) -> Line {
        let mut record = example_cbc();
        record.stages.iter_mut().for_each(change);
        lines(&record).into_iter().find(|line| line.script == script).unwrap()
    }

    fn waits(stage: &mut StageRecord, shares: &[(&str, f64)]) {
        let probes = stage.probes.as_mut().unwrap();
        probes.waits = shares
            .iter()
            .map(|&(event, share)| WaitShare { event: event.to_owned(), share })
            .collect();
    }

    #[test]
    fn each_script_is_validated_by_its_main_kind_of_io() {
        let mut record = example_cbc();
        let rates = |record: &Record| -> Vec<_> {
            lines(record)
                .iter()
                .map(|line| (line.script, line.metric, line.best_mb_s, line.max_mb_s.round()))
                .collect()
        };
        // t01-vacuum: 300/700 + 290/500 = 100.9% of the device's time. t02-index mixes 20 and 10, so its
        // maximum differs.
        assert_eq!(
            rates(&record),
            [
                ("t00-ctas", "write", 480.0, 500.0),
                ("t01-vacuum", "R+W", 590.0, 585.0),
                ("t02-index", "R+W", 30.0, 618.0),
                ("t03-select-max-no-explain", "read", 0.1, 700.0),
                ("t04-selectr", "read", 680.0, 700.0),
            ]
        );
        assert!(lines(&record)[0].bottleneck.is_none(), "{:?}", lines(&record)[0]);
        let mut earlier = record.stages.last().unwrap().clone();
        earlier.name = "t03-select-max -c 2".to_owned();
        assert_eq!(script_of(&earlier), Some("t03-select-max"));
        // Concurrent writes do not belong to a SELECT. Small requests have a separate maximum.
        let select = record.stages.iter_mut().find(|stage| stage.name == "SELECT_r").unwrap();
        let device = select.io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
        (device.read_mb_s, device.write_mb_s, device.reads_per_s) = (120.0, 490.0, 15_000.0);
        assert_eq!(rates(&record)[4], ("t04-selectr", "random read", 120.0, 160.0));
        // Too short to distinguish from the previous stage.
        record.stages.retain(|stage| stage.name == "SELECT_u1");
        assert_eq!(rates(&record), []);
    }

    #[test]
    fn a_step_below_the_target_names_its_bottleneck() {
        // Half of the device rates of VACUUM in the example.
        let bottleneck = |change: fn(&mut StageRecord)| {
            let halved = |stage: &mut StageRecord| {
                if let Some(device) = stage.io.as_mut().and_then(|io| io.device.as_mut()) {
                    (device.read_mb_s, device.write_mb_s) = (150.0, 145.0);
                }
                change(stage);
            };
            line("t01-vacuum", halved).bottleneck
        };
        let cause = |change| bottleneck(change).unwrap();
        assert!(
            cause(|stage| waits(stage, &[("IO:WalSync", 0.6), ("CPU", 0.4)]))
                .starts_with("WAL: waiting for it 60% of the time, ")
        );
        assert!(
            cause(|stage| waits(stage, &[("LWLock:WALWrite", 0.6)]))
                .starts_with("WAL: waiting for it 60%")
        );
        assert!(
            cause(|stage| waits(stage, &[("IO:DataFileRead", 0.9)]))
                .starts_with("data: waiting for data blocks 90%")
        );
        assert_eq!(
            cause(|stage| waits(stage, &[("Timeout:VacuumDelay", 0.9)])),
            "other waits: 90% of the time, most often Timeout:VacuumDelay"
        );
        let busy = cause(|stage| {
            waits(stage, &[("CPU", 0.9)]);
            stage.statement.iter_mut().for_each(|own| own.process_cpu_share = Some(0.95));
        });
        assert!(busy.starts_with("CPU: the server process used 95%"), "{busy}");
        assert!(cause(|stage| stage.machine_busy_share = Some(0.97)).contains("all processors"));
        let cached = cause(|stage| {
            let device = stage.io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
            (device.read_mb_s, device.write_mb_s) = (3.0, 2.0);
        });
        assert!(
            cached.starts_with("page cache: the server read 242 MB/s, the device only 3"),
            "{cached}"
        );
        let checkpoint = cause(|stage| {
            let checkpoints = Checkpoints { buffers_written: 100_000, ..Checkpoints::default() };
            stage.database.get_or_insert_default().checkpoints = Some(checkpoints);
        });
        assert!(checkpoint.ends_with("; concurrent checkpoints wrote 182 MB/s"), "{checkpoint}");
        // Too few samples.
        assert_eq!(bottleneck(|stage| stage.probes.as_mut().unwrap().looks = 2), None);
    }

    #[test]
    fn validates_nothing_without_a_measured_maximum() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        assert_eq!(lines(&record), []);
    }

    #[test]
    fn uncached_means_in_neither_cache_and_is_uncertain_after_read_ahead() {
        let record = example_cbc();
        let mut first = record.stages.into_iter().find(|stage| stage.name == "SELECT_u1").unwrap();
        let uncached = Uncached::from_stage(&first).unwrap();
        assert!((uncached.missed_share - 0.992).abs() < 1e-9);
        // 120 MB/s over 0.8 s, for 12,400 blocks.
        assert!((uncached.device_bytes.unwrap() - 96e6).abs() < 1.0);
        assert!(uncached.requested_bytes == 12_400.0 * 8192.0);
        assert_eq!(uncached.verdict(), Some(true));
        assert_eq!(Uncached { device_bytes: Some(50e6), ..uncached }.verdict(), Some(false));
        assert_eq!(Uncached { device_bytes: Some(200e6), ..uncached }.verdict(), None);
        assert_eq!(Uncached { missed_share: 0.5, ..uncached }.verdict(), Some(false));
        first.io = None;
        assert_eq!(Uncached::from_stage(&first).unwrap().verdict(), None);
    }
}
