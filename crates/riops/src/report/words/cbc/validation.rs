//! The steps of `cbc` held against what the device can do: how near each came, and what held it back.
//! Judgements without a form, for text and HTML alike.

use super::super::super::format::percent;
use super::super::super::model::device;
use crate::plan::CbcDataset;
use crate::record::{DeviceUse, DiskLimit, Record, Sampled, StageRecord};
use crate::units::BLOCK_BYTES;
use crate::workload::cbc::Step;

/// What the benchmark aims at.
const AIM_SHARE: f64 = 0.9;
/// From here on a resource counts as used up.
const FULL_SHARE: f64 = 0.9;
/// A shorter stage is not held against the device: what was left to be written before it would count as its
/// own.
const SECONDS_MIN: f64 = 1.0;
/// Less than this share of what was asked for came from the device: the rest was in the page cache.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Less is no load.
const IDLE_MB_S: f64 = 1.0;
/// Reads and writes count together where the lesser is at least this share of the greater.
const MIXED_SHARE_MIN: f64 = 0.1;
/// Requests below this are small: they are held against what the device does at random.
const SMALL_REQUEST_BYTES: f64 = 65_536.0;
/// From here on a kind of waiting is worth a word.
const WAIT_SHARE_MIN: f64 = 0.1;
/// From here on it is most of the time.
const FREQUENT_SHARE: f64 = 0.5;
/// A device that read this much more than was asked for has read ahead.
const READ_AHEAD_MAX: f64 = 1.5;
/// Fewer looks are no share of anything.
const LOOKS_MIN: u64 = 5;

/// What is held against the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Read,
    /// In small requests.
    RandomRead,
    Write,
    Both,
}

impl Metric {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::RandomRead => "random read",
            Self::Write => "write",
            Self::Both => "R+W",
        }
    }

    /// The one that says most of what a stage did to the device. A select only reads: what is written
    /// meanwhile is of others.
    fn of(device: &DeviceUse, is_select: bool) -> Self {
        let (read, write) = (device.read_mb_s, device.write_mb_s);
        if is_select {
            let bytes = read * 1e6 / device.reads_per_s.max(1.0);
            let small = read > IDLE_MB_S && bytes < SMALL_REQUEST_BYTES;
            return if small { Self::RandomRead } else { Self::Read };
        }
        if read.min(write) >= MIXED_SHARE_MIN * read.max(write) {
            Self::Both
        } else if read > write {
            Self::Read
        } else {
            Self::Write
        }
    }

    /// Its rate, and what the device can do of it, in MB/s. Of a mixture the device can do as much as its
    /// time allows when it reads and writes by turns.
    fn rates(self, device: &DeviceUse, limit: &DiskLimit) -> (f64, f64) {
        let (read, write) = (device.read_mb_s, device.write_mb_s);
        let (most_read, most_write) = (limit.sequential_read.mb_s, limit.sequential_write.mb_s);
        match self {
            Self::Read => (read, most_read),
            Self::RandomRead => (read, limit.random_read.mb_s),
            Self::Write => (write, most_write),
            Self::Both => {
                let time = read / most_read.max(f64::MIN_POSITIVE)
                    + write / most_write.max(f64::MIN_POSITIVE);
                (read + write, (read + write) / time.max(f64::MIN_POSITIVE))
            }
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
    let dataset: &CbcDataset = record.dataset()?;
    Some(dataset.table_bytes? + dataset.index_bytes.unwrap_or(0))
}

/// The script of a stage: of a step, or of sessions that repeat a select.
pub(super) fn script_of(stage: &StageRecord) -> Option<&'static str> {
    let name = stage.name.split(' ').next().unwrap_or_default();
    let of_key = Step::of_key(&stage.name).map(Step::script);
    of_key.or_else(|| Step::ALL.map(Step::script).into_iter().find(|script| *script == name))
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
        if stage.seconds < SECONDS_MIN {
            continue;
        }
        let metric = Metric::of(device, script.contains("select"));
        let (best_mb_s, most_mb_s) = metric.rates(device, limit);
        let mut line = Line { script, metric, best_mb_s, most_mb_s, held_back: None };
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
    /// `None` where nobody looked, or too few times.
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
        (probes.looks >= LOOKS_MIN).then_some(time)
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

/// What the process of a stage spent its time with, in words; nothing where that was not seen.
pub(super) fn time_spent(stage: &StageRecord) -> String {
    let told = stage.probes.as_ref().and_then(Time::of).map_or_else(Vec::new, Time::told);
    let parts: Vec<_> =
        told.iter().map(|(kind, share)| format!("{kind} {}", percent(*share))).collect();
    parts.join(", ")
}

/// Why a stage did not come near the maximum: the first cause for which there is evidence, and what a
/// checkpoint took of the device.
fn held_back(stage: &StageRecord, shared: bool) -> Option<String> {
    let device = device(stage)?;
    let time = stage.probes.as_ref().and_then(Time::of);
    let running = time.filter(|time| time.cpu >= FREQUENT_SHARE).map_or_else(String::new, |time| {
        format!("; {} of the time not waiting", percent(time.cpu))
    });
    let cause = match page_cache(stage, device) {
        Some(text) => Some(text + &running),
        None if shared && stage.machine_busy_share.is_some_and(|share| share >= FULL_SHARE) => {
            Some("CPU: all processors were busy".to_owned())
        }
        None => time.and_then(|time| longest(stage, time)),
    };
    let by_checkpoint = checkpoint(stage, device);
    match (cause, by_checkpoint) {
        (Some(cause), Some(checkpoint)) => Some(format!("{cause}; {checkpoint}")),
        (cause, checkpoint) => cause.or(checkpoint),
    }
}

/// What the process spent most of its time with.
fn longest(stage: &StageRecord, time: Time) -> Option<String> {
    let wal_mb_s = stage.io.as_ref().and_then(|io| io.wal_mb_s).unwrap_or(0.0);
    let process = stage.statement.as_ref().and_then(|statement| statement.process_cpu_share);
    Some(match time.told().first()?.0 {
        "WAL" => {
            format!(
                "WAL: {} of the time waiting for it, {wal_mb_s:.0} MB/s of log",
                percent(time.wal)
            )
        }
        "CPU" => match process {
            Some(share) if share >= FULL_SHARE => {
                format!("CPU: its one process used {} of a processor", percent(share))
            }
            _ => {
                let wal = if time.wal >= WAIT_SHARE_MIN {
                    format!(", {} waiting for WAL", percent(time.wal))
                } else {
                    String::new()
                };
                format!("CPU: {} of the time not waiting{wal}", percent(time.cpu))
            }
        },
        "data" => format!("data: {} of the time waiting for its blocks", percent(time.data)),
        _ => {
            let named = |event: &str| !event.starts_with("IO:") && event != "CPU";
            let waits = stage.probes.iter().flat_map(|probes| &probes.waits);
            let event = waits.map(|wait| wait.event.as_str()).find(|event| named(event));
            format!(
                "{} of the time in {} and the like",
                percent(time.other),
                event.unwrap_or("waits")
            )
        }
    })
}

/// What a checkpoint wrote meanwhile, where that was much of what the device did.
fn checkpoint(stage: &StageRecord, device: &DeviceUse) -> Option<String> {
    let written = stage.database.as_ref()?.checkpoints?.buffers_written * BLOCK_BYTES;
    let mb_s = written as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE);
    (mb_s > IDLE_MB_S && mb_s >= WAIT_SHARE_MIN * device.write_mb_s)
        .then(|| format!("a checkpoint wrote {mb_s:.0} MB/s meanwhile"))
}

/// Checkpoints that were begun or asked for within the stage.
pub(super) fn checkpoints(stage: &StageRecord) -> u64 {
    let found = stage.database.as_ref().and_then(|database| database.checkpoints);
    found.map_or(0, |checkpoints| checkpoints.timed + checkpoints.requested)
}

/// MB per second that a stage asked for beyond shared buffers: by its plan, else by the table's counters; of
/// sessions by their rate, since the counters have the end of the stage too.
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

/// MB per second of blocks that it wrote: by the server's own counters, which have its parallel workers too
/// (PostgreSQL 16 or later), else by the kernel's accounts of its process.
fn written_mb_s(stage: &StageRecord) -> Option<f64> {
    let io = stage.database.as_ref().and_then(|database| database.client_io);
    let bytes = match io {
        Some(io) => io.write_bytes + io.extend_bytes,
        None => stage.process_io?.written,
    };
    Some(bytes as f64 / 1e6 / stage.seconds.max(f64::MIN_POSITIVE))
}

/// The page cache, where it answered or took most of what the server read or wrote: the device had little
/// to do then.
fn page_cache(stage: &StageRecord, device: &DeviceUse) -> Option<String> {
    let (read, written) = (read_mb_s(stage)?, written_mb_s(stage)?);
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

/// Where the blocks came from of a select that is meant to find none in the caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Uncached {
    /// Share of its blocks that were not in shared buffers, 0 to 1.
    pub(super) missed: f64,
    /// Bytes of these.
    pub(super) asked: f64,
    /// Bytes that the device read meanwhile, where it is seen: with what it read ahead.
    pub(super) fetched: Option<f64>,
}

impl Uncached {
    pub(super) fn of(stage: &StageRecord) -> Option<Self> {
        let buffers = stage.statement.as_ref()?.plan.as_ref()?.buffers;
        Some(Self {
            missed: buffers.uncached_share()?,
            asked: (buffers.shared_read * BLOCK_BYTES) as f64,
            fetched: device(stage).map(|device| device.read_mb_s * 1e6 * stage.seconds),
        })
    }

    /// Whether it found nothing in the caches; `None` where that cannot be told: the device is not seen, or it
    /// has read ahead so much that nobody knows what of it was asked for.
    pub(super) fn verdict(self) -> Option<bool> {
        if self.missed < FULL_SHARE {
            return Some(false);
        }
        match self.fetched? / self.asked.max(f64::MIN_POSITIVE) {
            share if share < FULL_SHARE => Some(false),
            share if share > READ_AHEAD_MAX => None,
            _ => Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Checkpoints, WaitShare};
    use crate::report::example_cbc;

    fn line(script: &str, change: impl Fn(&mut StageRecord)) -> Line {
        let mut record = example_cbc();
        record.stages.iter_mut().for_each(change);
        lines(&record).into_iter().find(|line| line.script == script).unwrap()
    }

    fn waits(stage: &mut StageRecord, of: &[(&str, f64)]) {
        let probes = stage.probes.as_mut().unwrap();
        probes.waits =
            of.iter().map(|&(event, share)| WaitShare { event: event.to_owned(), share }).collect();
    }

    #[test]
    fn each_script_is_held_against_the_device_by_what_it_does_most() {
        let mut record = example_cbc();
        let found = |record: &Record| -> Vec<_> {
            lines(record)
                .iter()
                .map(|line| {
                    (line.script, line.metric.as_str(), line.best_mb_s, line.most_mb_s.round())
                })
                .collect()
        };
        // 300 of 700 and 290 of 500 make 100.9 % of its time; 20 and 10 the same maximum of another mixture.
        assert_eq!(
            found(&record),
            [
                ("t00-ctas", "write", 480.0, 500.0),
                ("t01-vacuum", "R+W", 590.0, 585.0),
                ("t02-index", "R+W", 30.0, 618.0),
                ("t03-select-max", "read", 0.1, 700.0),
                ("t04-selectr", "read", 680.0, 700.0),
            ]
        );
        assert!(lines(&record)[0].held_back.is_none(), "{:?}", lines(&record)[0]);
        // What the kernel writes meanwhile is not a select's; small requests have a maximum of their own.
        let select = record.stages.iter_mut().find(|stage| stage.name == "SELECT_r").unwrap();
        let device = select.io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
        (device.read_mb_s, device.write_mb_s, device.reads_per_s) = (120.0, 490.0, 15_000.0);
        assert_eq!(found(&record)[4], ("t04-selectr", "random read", 120.0, 160.0));
        // Too short to be told from what was before it.
        record.stages.retain(|stage| stage.name == "SELECT_u1");
        assert_eq!(found(&record), []);
    }

    #[test]
    fn a_step_below_the_aim_names_what_held_it_back() {
        // Half of what VACUUM does in the example.
        let held_back = |change: fn(&mut StageRecord)| {
            let halved = |stage: &mut StageRecord| {
                if let Some(device) = stage.io.as_mut().and_then(|io| io.device.as_mut()) {
                    (device.read_mb_s, device.write_mb_s) = (150.0, 145.0);
                }
                change(stage);
            };
            line("t01-vacuum", halved).held_back
        };
        let cause = |change| held_back(change).unwrap();
        assert!(
            cause(|stage| waits(stage, &[("IO:WalSync", 0.6), ("CPU", 0.4)]))
                .starts_with("WAL: 60 % of the time waiting for it, ")
        );
        assert!(cause(|stage| waits(stage, &[("LWLock:WALWrite", 0.6)])).starts_with("WAL: 60 %"));
        assert!(cause(|stage| waits(stage, &[("IO:DataFileRead", 0.9)])).starts_with("data: 90 %"));
        assert_eq!(
            cause(|stage| waits(stage, &[("Timeout:VacuumDelay", 0.9)])),
            "90 % of the time in Timeout:VacuumDelay and the like"
        );
        let busy = cause(|stage| {
            waits(stage, &[("CPU", 0.9)]);
            stage.statement.iter_mut().for_each(|own| own.process_cpu_share = Some(0.95));
        });
        assert!(busy.starts_with("CPU: its one process used 95 %"), "{busy}");
        assert!(cause(|stage| stage.machine_busy_share = Some(0.97)).contains("all processors"));
        let cached = cause(|stage| {
            let device = stage.io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
            (device.read_mb_s, device.write_mb_s) = (3.0, 2.0);
        });
        assert!(cached.starts_with("page cache: 242 MB/s were read, 3 of them"), "{cached}");
        let checkpoint = cause(|stage| {
            let checkpoints = Checkpoints { buffers_written: 100_000, ..Checkpoints::default() };
            stage.database.get_or_insert_default().checkpoints = Some(checkpoints);
        });
        assert!(checkpoint.ends_with("; a checkpoint wrote 182 MB/s meanwhile"), "{checkpoint}");
        // Too few looks to say anything.
        assert_eq!(held_back(|stage| stage.probes.as_mut().unwrap().looks = 2), None);
    }

    #[test]
    fn without_a_maximum_nothing_is_held_against_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        assert_eq!(lines(&record), []);
    }

    #[test]
    fn uncached_is_what_neither_cache_had_as_far_as_that_can_be_told() {
        let record = example_cbc();
        let mut first = record.stages.into_iter().find(|stage| stage.name == "SELECT_u1").unwrap();
        let found = Uncached::of(&first).unwrap();
        assert!((found.missed - 0.992).abs() < 1e-9);
        // 120 MB/s over 0.8 s, of 12,400 blocks.
        assert!((found.fetched.unwrap() - 96e6).abs() < 1.0 && found.asked == 12_400.0 * 8192.0);
        assert_eq!(found.verdict(), Some(true));
        assert_eq!(Uncached { fetched: Some(50e6), ..found }.verdict(), Some(false));
        assert_eq!(Uncached { fetched: Some(200e6), ..found }.verdict(), None);
        assert_eq!(Uncached { missed: 0.5, ..found }.verdict(), Some(false));
        first.io = None;
        assert_eq!(Uncached::of(&first).unwrap().verdict(), None);
    }
}
