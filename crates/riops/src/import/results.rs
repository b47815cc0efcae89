//! The results of a run of another tool, and the record of them. Unknown values stay absent.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::error::ImportError;
use super::format::{Format, Settings};
use crate::metrics::{Slot, steadiness};
use crate::plan::{ImportedRun, Plan, Protocol, Schedule, Stop};
use crate::record::{
    ClientRecord, ImportRecord, MachineFacts, Record, SCHEMA, StageKind, StageRecord, StartSource,
    Status, TargetRecord, Throughput, Verdict,
};
use crate::units::text::is_unprintable;

/// The contents of the files.
#[derive(Debug, Default)]
pub struct Imports {
    /// The runs.
    pub records: Vec<Record>,
    /// What the user should know about them.
    pub notices: Vec<String>,
}

impl Imports {
    /// Adds the runs of another import.
    pub fn extend(&mut self, other: Self) {
        self.records.extend(other.records);
        self.notices.extend(other.notices);
    }

    pub(super) fn add(
        &mut self,
        runs: Vec<(Format, RunResults)>,
        origin: &ImportSource<'_>,
        settings: &Settings,
    ) -> Result<(), ImportError> {
        let starts = starts(&runs, origin, settings);
        for ((format, results), start) in runs.into_iter().zip(starts) {
            self.notices.extend(results.notices.iter().cloned());
            let record = record(format, results, start, origin, settings);
            let name = origin.files.join(", ");
            require_sums(&record).map_err(|reason| ImportError::contents(&name, reason))?;
            self.records.push(record);
        }
        Ok(())
    }
}

/// Where results come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportSource<'a> {
    /// Names without directories.
    pub(super) files: &'a [String],
    pub(super) modified: Option<Timestamp>,
    pub(super) now: Timestamp,
}

/// A run in the results of another tool.
#[derive(Debug, Clone, Default)]
pub(super) struct RunResults {
    pub(super) run: ImportedRun,
    pub(super) started_at: Option<Timestamp>,
    /// Number of threads of the tool; 0 if unknown.
    pub(super) workers: u32,
    pub(super) protocol: Option<Protocol>,
    pub(super) rate: Option<Schedule>,
    pub(super) stop: Option<Stop>,
    pub(super) percentile: Option<f64>,
    /// The database, as far as it is known. riops measures PostgreSQL-compatible databases and assumes one here.
    pub(super) target: TargetRecord,
    /// Why the run did not end as planned.
    pub(super) failure: Option<String>,
    /// The results. Throughput, name and steadiness are filled in by [`record`].
    pub(super) stage: StageRecord,
    /// Whether lines of intervals are missing in the series.
    pub(super) has_gaps: bool,
    pub(super) notices: Vec<String>,
}

impl RunResults {
    pub(super) fn fact(&mut self, name: &str, value: &impl ToString) {
        self.run.facts.insert(name.to_owned(), value.to_string());
    }
}

/// Replaces control characters, which a terminal would execute.
fn plain(text: &str) -> String {
    text.replace(is_unprintable, " ")
}

/// A report while it is read.
pub(super) trait Report: Default {
    /// The format, which has the name of the tool.
    const FORMAT: Format;

    /// Returns the report that begins with this line, or `None` if the line belongs to this report. A report without a header
    /// takes the header of this one.
    fn next(&self, line: &str) -> Option<Self>;

    /// Reads a line. Lines of other programs are ignored.
    fn line(&mut self, line: &str) -> Result<(), String>;

    /// Whether a line of the tool was read.
    fn has_begun(&self) -> bool;

    /// Whether there is a result: the report must be complete.
    fn has_results(&self) -> bool;

    /// Whether a run began, which may have ended before its report.
    fn has_started(&self) -> bool;

    /// Returns the run, or what is missing.
    fn finish(self) -> Result<RunResults, String>;
}

/// Returns the record of a run.
fn record(
    format: Format,
    mut results: RunResults,
    start: Start,
    origin: &ImportSource<'_>,
    settings: &Settings,
) -> Record {
    let unreported = unreported(&results);
    let facts = std::mem::take(&mut results.run.facts).into_iter();
    results.run.facts = facts.map(|(name, value)| (plain(&name), plain(&value))).collect();
    results.run.version = results.run.version.as_deref().map(plain);
    results.run.test = results.run.test.as_deref().map(plain);
    let failure = results.failure.as_deref().map(plain);
    results.target.server_version = plain(&results.target.server_version);
    let mut stage = results.stage;
    let operations = stage.session_loop.operations.iter_mut();
    operations.for_each(|operation| operation.name = plain(&operation.name));
    stage.name = format!("imported, {}", results.run.tool);
    stage.kind = StageKind::Loop;
    stage.throughput =
        Throughput::over(stage.seconds, stage.transactions, stage.rows, stage.statements);
    let slots = Slot::of_series(&stage.session_loop.series);
    let rows_each = stage.rows as f64 / stage.transactions.max(1) as f64;
    stage.session_loop.steadiness = steadiness(&slots, rows_each, false);
    stage.started_at = results.started_at.or(settings.started_at);
    let id = id(&results.run, &stage, results.started_at, start.at);
    let tool = results.run.tool.clone();
    let plan = Plan {
        sessions: stage.sessions,
        workers: results.workers,
        protocol: results.protocol.unwrap_or_default(),
        schedule: results.rate.unwrap_or(Schedule::Closed),
        stop: results.stop.unwrap_or(Stop::DurationS(stage.seconds)),
        percentile: results.percentile.unwrap_or(Plan::default().percentile),
        warmup_s: 0.0,
        verify: false,
        label: settings.label.clone(),
        tags: settings.tags.clone(),
        work: results.run.into(),
        ..Plan::default()
    };
    Record {
        schema: SCHEMA,
        id,
        started_at: start.at,
        workload: plan.work.traits().name.to_owned(),
        label: settings.label.clone(),
        tags: settings.tags.clone(),
        imported: Some(ImportRecord {
            format: format.as_str().to_owned(),
            files: origin.files.to_vec(),
            imported_at: origin.now,
            start: start.source,
            unreported,
        }),
        plan,
        status: if failure.is_some() { Status::Failed } else { Status::Done },
        failure: failure.clone(),
        target: results.target,
        client: client(results.workers),
        agents: Vec::new(),
        stages: vec![stage],
        accesses: Vec::new(),
        unknown_outcomes: None,
        checks: Vec::new(),
        notes: Vec::new(),
        thresholds: Vec::new(),
        verdict: verdict(&tool, failure.as_deref()),
    }
}

/// The client, of which the tool reports nothing else.
fn client(workers: u32) -> ClientRecord {
    ClientRecord {
        riops_version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: MachineFacts::default(),
        workers,
        driver: None,
        shares_machine_with_server: false,
        server_may_be_here: false,
    }
}

/// Not a finding: no one who filters for valid runs may get results that riops did not verify.
fn verdict(tool: &str, failure: Option<&str>) -> Verdict {
    let imported = format!(
        "imported from {tool}: access paths, bottleneck and data were not verified by riops"
    );
    Verdict {
        valid: false,
        reasons: failure.map(str::to_owned).into_iter().chain([imported]).collect(),
        warnings: Vec::new(),
    }
}

/// Returns the fields of the plan that the results do not contain.
fn unreported(results: &RunResults) -> Vec<String> {
    let fields = [
        ("sessions", results.stage.sessions == 0),
        ("workers", results.workers == 0),
        ("protocol", results.protocol.is_none()),
        ("stop", results.stop.is_none()),
        ("percentile", results.percentile.is_none()),
        ("errors", true),
    ];
    fields
        .into_iter()
        .filter(|(_, is_absent)| *is_absent)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The start of a run.
#[derive(Clone, Copy)]
struct Start {
    at: Timestamp,
    /// Where it comes from.
    source: StartSource,
}

/// Returns the start of each run. A tool that redirects its output ends when the file was last
/// modified, and each earlier run ends when the next one starts.
fn starts(
    runs: &[(Format, RunResults)],
    origin: &ImportSource<'_>,
    settings: &Settings,
) -> Vec<Start> {
    /// Minimum distance of two starts, so that the runs are ordered as in the text.
    const LEAST: SignedDuration = SignedDuration::from_millis(1);
    let mut starts = Vec::new();
    let mut next: Option<Timestamp> = None;
    for (_, results) in runs.iter().rev() {
        let length = SignedDuration::try_from_secs_f64(results.stage.seconds).unwrap_or_default();
        let before = |end: Timestamp, length| end.checked_sub(length).unwrap_or(end);
        let of_next = next.map(|next| before(next, length.max(LEAST)));
        let of_file = origin.modified.map(|end| of_next.unwrap_or_else(|| before(end, length)));
        let sources = [
            (results.started_at, StartSource::Results),
            (settings.started_at, StartSource::User),
            (of_file, StartSource::FileTime),
        ];
        let known = sources.into_iter().find_map(|(at, source)| Some(Start { at: at?, source }));
        let at = of_next.unwrap_or(origin.now);
        let start = known.unwrap_or(Start { at, source: StartSource::ImportTime });
        next = Some(start.at);
        starts.push(start);
    }
    starts.reverse();
    starts
}

/// Maximum sum of all whole numbers of the stages of a run. Reports add numbers of one run, and of many. Bytes are the
/// largest numbers, and this is 64 PiB.
const SUM_MAX: u64 = 1 << 56;

/// Bytes of an id that are not its time.
const RANDOM_BYTES: usize = 10;

/// Returns an id that is the same for the same results, so that a second import finds the first one: the time
/// of the run, and a hash of the results instead of random bits.
fn id(
    run: &ImportedRun,
    stage: &StageRecord,
    reported_start: Option<Timestamp>,
    started_at: Timestamp,
) -> Uuid {
    let contents = StageRecord { started_at: None, ..stage.clone() };
    let start = reported_start.map(|at| at.to_string());
    let json = serde_json::to_vec(&(run, contents, start)).unwrap_or_default();
    let mut random = [0; RANDOM_BYTES];
    for (byte, hashed) in random.iter_mut().zip(Sha256::digest(json)) {
        *byte = hashed;
    }
    let ms = u64::try_from(started_at.as_millisecond()).unwrap_or_default();
    Builder::from_unix_timestamp_millis(ms, &random).into_uuid()
}

/// Fails unless `--started-at` was needed for one run.
pub(super) fn require_one_unknown_start(records: &[Record]) -> Result<(), ImportError> {
    let used = |record: &&Record| {
        record.imported.as_ref().is_some_and(|imported| imported.start == StartSource::User)
    };
    match records.iter().filter(used).count() {
        0 => Err(ImportError::StartIsKnown),
        1 => Ok(()),
        several => Err(ImportError::SeveralRuns(several)),
    }
}

/// Fails if the sums that reports compute could overflow.
pub(super) fn require_sums(record: &Record) -> Result<(), String> {
    let stages = serde_json::to_value(&record.stages).map_err(|error| error.to_string())?;
    if sum(&stages) > SUM_MAX {
        return Err("the numbers are too large: their sum is out of range".to_owned());
    }
    Ok(())
}

/// The sum of all whole numbers in a value.
fn sum(value: &Value) -> u64 {
    let add = |all: u64, inner: &Value| all.saturating_add(sum(inner));
    match value {
        Value::Number(value) => {
            value.as_u64().or(value.as_i64().map(i64::unsigned_abs)).unwrap_or(0)
        }
        Value::Array(values) => values.iter().fold(0, add),
        Value::Object(fields) => fields.values().fold(0, add),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_whole_numbers_are_added() {
        let sum = |json: &str| sum(&serde_json::from_str(json).unwrap());
        assert_eq!(sum(r#"[{"a": 1, "b": [2, -3, 0.5, null, "4", true]}, [[10]]]"#), 16);
        assert_eq!(sum("[18446744073709551615, 1]"), u64::MAX);
    }
}
