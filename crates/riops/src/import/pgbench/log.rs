//! `pgbench --log`: a line per transaction.
//!
//! `client transaction time script epoch_s epoch_us [lag] [retries]`; times in microseconds. `time` starts at the
//! intended start, so with a rate it is the response time, and `time - lag` is the service time. The epoch is
//! the end of the transaction.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};

use jiff::Timestamp;

use super::super::error::ImportError;
use super::super::format::Column7;
use super::super::input::Input;
use super::super::numbers::{Limited, parse_number};
use super::super::results::RunResults;
use super::values::Values;
use super::{OUT_OF_RANGE, TOOL};
use crate::import::series::SERIES_POINTS_MAX;
use crate::plan::ImportedRun;
use crate::record::{
    Fairness, Histogram, HistogramError, Latencies, LoopRecord, OperationRecord, Point,
    StageRecord, StoredHistogram,
};
use crate::units::Nanos;

/// A median up to this number of retries is common; a delay of a start is hardly ever as short, in microseconds.
const RETRIES_MEDIAN_MAX: u64 = 10;

const SECOND_US: i64 = 1_000_000;
/// Maximum number of scripts of a pgbench (`MAX_SCRIPTS`). Each has two histograms.
const SCRIPTS_MAX: usize = 128;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionEnd {
    Succeeded {
        time_us: u64,
    },
    Skipped,
    /// With the SQLSTATE, if it was logged.
    Failed(Option<&'static str>),
}

/// A line of the log.
#[derive(Debug, Clone, Copy)]
struct Entry {
    client: u64,
    transaction: u64,
    outcome: TransactionEnd,
    script: u32,
    end_us: i64,
    column_7: Option<u64>,
    column_8: Option<u64>,
}

impl Entry {
    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (&[client, transaction, time, script, ended_s, fraction_us], rest) = fields
            .split_first_chunk::<6>()
            .ok_or("expected 6 to 8 columns, as pgbench --log writes them")?;
        if rest.len() > 2 {
            return Err(format!("expected 6 to 8 columns, found {}", fields.len()));
        }
        let second = super::second(parse("epoch", ended_s)?)?;
        let fraction: i64 = parse("epoch", fraction_us)?;
        if !(0..SECOND_US).contains(&fraction) {
            return Err(OUT_OF_RANGE.to_owned());
        }
        let script: u32 = parse("script", script)?;
        if usize::try_from(script).is_ok_and(|script| script >= SCRIPTS_MAX) {
            return Err(format!("more than {SCRIPTS_MAX} scripts"));
        }
        let optional = |at: usize| rest.get(at).map(|text| parse("column", text)).transpose();
        Ok(Self {
            client: parse("client", client)?,
            transaction: parse("transaction", transaction)?,
            outcome: outcome(time)?,
            script,
            end_us: second * SECOND_US + fraction,
            column_7: optional(0)?,
            column_8: optional(1)?,
        })
    }
}

fn parse<T: Limited>(what: &str, text: &str) -> Result<T, String> {
    parse_number(text).ok_or_else(|| format!("expected a number as {what}, found \"{text}\""))
}

fn outcome(text: &str) -> Result<TransactionEnd, String> {
    Ok(match text {
        "skipped" => TransactionEnd::Skipped,
        "failed" | "other" => TransactionEnd::Failed(None),
        "serialization" | "serialization_failure" => TransactionEnd::Failed(Some("40001")),
        "deadlock" | "deadlock_failure" => TransactionEnd::Failed(Some("40P01")),
        time => TransactionEnd::Succeeded { time_us: parse("time", time)? },
    })
}

/// Times with and without column 7, which may be the delay of the start.
#[derive(Debug)]
struct Times {
    all: Histogram,
    without_7: Histogram,
}

impl Times {
    fn new() -> Result<Self, HistogramError> {
        Ok(Self { all: Histogram::new()?, without_7: Histogram::new()? })
    }

    fn record(&mut self, time_us: u64, column_7: u64) {
        let nanos = |us: u64| Nanos(us.saturating_mul(1_000));
        self.all.record(nanos(time_us));
        self.without_7.record(nanos(time_us.saturating_sub(column_7)));
    }
}

/// One second of the log.
#[derive(Debug, Default)]
struct Second {
    all: Values,
    without_7: Values,
    failed: u64,
    skipped: u64,
    sum_7: u64,
    sum_8: u64,
}

/// The transactions of a script.
#[derive(Debug)]
struct Script {
    times: Times,
    failed: u64,
}

/// The transactions of a client.
#[derive(Debug, Default)]
struct Client {
    logged: u64,
    succeeded: u64,
    /// The number of its last transaction, and whether they count from 0, as up to version 9.5.
    last: u64,
    counts_from_0: bool,
}

/// The sums over all lines.
struct Sums {
    times: Times,
    /// Column 7 of the transactions that did not succeed: with a rate, at least their latency.
    unfinished: Histogram,
    scripts: BTreeMap<u32, Script>,
    seconds: BTreeMap<i64, Second>,
    clients: BTreeMap<u64, Client>,
    failures: BTreeMap<&'static str, u64>,
    columns: Option<usize>,
    start_us: i64,
    end_us: i64,
    /// Values of column 7: all, and those small enough for retries.
    values_7: u64,
    small_7: u64,
    sum_7: u64,
    sum_8: u64,
}

impl Sums {
    fn new() -> Result<Self, HistogramError> {
        Ok(Self {
            times: Times::new()?,
            unfinished: Histogram::new()?,
            scripts: BTreeMap::new(),
            seconds: BTreeMap::new(),
            clients: BTreeMap::new(),
            failures: BTreeMap::new(),
            columns: None,
            start_us: i64::MAX,
            end_us: i64::MIN,
            values_7: 0,
            small_7: 0,
            sum_7: 0,
            sum_8: 0,
        })
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let entry = Entry::parse(line)?;
        let columns =
            6 + usize::from(entry.column_7.is_some()) + usize::from(entry.column_8.is_some());
        if *self.columns.get_or_insert(columns) != columns {
            return Err(format!("{columns} columns, but the lines before have another number"));
        }
        let column_7 = entry.column_7.unwrap_or_default();
        let script = match self.scripts.entry(entry.script) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            btree_map::Entry::Vacant(new) => {
                let times = Times::new().map_err(|error| error.to_string())?;
                new.insert(Script { times, failed: 0 })
            }
        };
        let second = self.seconds.entry(entry.end_us.div_euclid(SECOND_US)).or_default();
        let client = self.clients.entry(entry.client).or_default();
        client.logged += 1;
        client.last = client.last.max(entry.transaction);
        client.counts_from_0 |= entry.transaction == 0;
        let mut started_us = entry.end_us;
        match entry.outcome {
            TransactionEnd::Succeeded { time_us } => {
                client.succeeded += 1;
                let start = entry.end_us.checked_sub_unsigned(time_us);
                started_us = start.filter(|start| *start >= 0).ok_or(OUT_OF_RANGE)?;
                self.times.record(time_us, column_7);
                script.times.record(time_us, column_7);
                second.all.add(time_us);
                if entry.column_7.is_some() {
                    second.without_7.add(time_us.saturating_sub(column_7));
                    self.values_7 += 1;
                    self.small_7 += u64::from(column_7 <= RETRIES_MEDIAN_MAX);
                }
            }
            TransactionEnd::Skipped => second.skipped += 1,
            TransactionEnd::Failed(sqlstate) => {
                second.failed += 1;
                script.failed += 1;
                *self.failures.entry(sqlstate.unwrap_or_default()).or_default() += 1;
            }
        }
        if !matches!(entry.outcome, TransactionEnd::Succeeded { .. }) {
            self.unfinished.record(Nanos(column_7.saturating_mul(1_000)));
        }
        let column_8 = entry.column_8.unwrap_or_default();
        // The sums of a second need no check: they are at most the sums of the run.
        self.sum_7 = self.sum_7.checked_add(column_7).ok_or(OUT_OF_RANGE)?;
        self.sum_8 = self.sum_8.checked_add(column_8).ok_or(OUT_OF_RANGE)?;
        second.sum_7 += column_7;
        second.sum_8 += column_8;
        self.start_us = self.start_us.min(started_us);
        self.end_us = self.end_us.max(entry.end_us);
        Ok(())
    }

    /// Whether column 7 is the delay of the start; `None` without column 7.
    fn has_lag(&self, given: Option<Column7>) -> Option<bool> {
        match (self.columns, given) {
            (Some(8), _) => Some(true),
            (Some(7), Some(given)) => Some(given == Column7::Lag),
            (Some(7), None) => Some(2 * self.small_7 < self.values_7),
            _ => None,
        }
    }

    fn retries(&self, has_lag: Option<bool>) -> Option<u64> {
        match (self.columns, has_lag) {
            (Some(8), _) => Some(self.sum_8),
            (Some(7), Some(false)) => Some(self.sum_7),
            _ => None,
        }
    }
}

/// Returns the run in the log files of all threads of one pgbench.
pub(in crate::import) fn log(
    group: Vec<Input>,
    column_7: Option<Column7>,
) -> Result<RunResults, ImportError> {
    let name = group.first().map(|input| input.name.clone()).unwrap_or_default();
    let failed = |error: HistogramError| ImportError::contents(&name, error.to_string());
    let mut sums = Sums::new().map_err(failed)?;
    for input in group {
        input.for_each_line(|_, line| sums.add(line))?;
    }
    require_whole(&sums, &name)?;
    let has_lag = sums.has_lag(column_7);
    let mut results = RunResults {
        run: ImportedRun { tool: TOOL.to_owned(), ..ImportedRun::default() },
        started_at: Timestamp::from_microsecond(sums.start_us).ok(),
        stage: stage(&sums, has_lag).map_err(failed)?,
        ..RunResults::default()
    };
    if sums.columns == Some(7) && column_7.is_none() {
        let (meaning, other) = match has_lag {
            Some(true) => ("the delay of the start (--rate)", "retries"),
            _ => ("the number of retries (--max-tries)", "lag"),
        };
        results.notices.push(format!(
            "{name}: column 7 was read as {meaning}, from its values; if that is wrong, use --pgbench-column-7 {other}"
        ));
    }
    if let Some(missing) = missing_clients(&sums) {
        results.notices.push(format!(
            "{name}: no transaction of client {missing}: if a log file of another thread is missing, import all files of the run together"
        ));
    }
    let skipped: u64 = sums.seconds.values().map(|second| second.skipped).sum();
    if has_lag == Some(true) {
        results.fact("number of transactions skipped", &skipped);
    }
    Ok(results)
}

/// Fails for an empty log, and for one with a sample of the transactions, whose rate is unknown.
fn require_whole(sums: &Sums, name: &str) -> Result<(), ImportError> {
    let logged: u64 = sums.clients.values().map(|client| client.logged).sum();
    // Numbers of the log, unlike those that count its lines.
    let numbered = |client: &Client| u128::from(client.last) + u128::from(client.counts_from_0);
    let last: u128 = sums.clients.values().map(numbered).sum();
    let reason = match last.cmp(&logged.into()) {
        _ if logged == 0 => "the log has no transactions".to_owned(),
        Ordering::Equal => return Ok(()),
        Ordering::Less => {
            format!("the log has {logged} transactions with {last} numbers: some lines occur twice")
        }
        Ordering::Greater => format!(
            "the log has {logged} of at least {last} transactions: it is a sample (--sampling-rate) or incomplete; import the report that pgbench printed instead"
        ),
    };
    Err(ImportError::contents(name, reason))
}

/// Returns the first client without a transaction: clients count from 0.
fn missing_clients(sums: &Sums) -> Option<u64> {
    (0..).zip(sums.clients.keys()).find(|(expected, client)| expected != *client).map(|pair| pair.0)
}

fn stage(sums: &Sums, has_lag: Option<bool>) -> Result<StageRecord, HistogramError> {
    let with_lag = has_lag == Some(true);
    let service = if with_lag { &sums.times.without_7 } else { &sums.times.all };
    let response = with_lag.then(|| responses(sums)).transpose()?;
    let bounds = response.as_ref().map(Latencies::bounds).filter(|bounds| bounds.count() > 0);
    let succeeded = sums.times.all.count();
    let of_clients: Vec<u64> = sums.clients.values().map(|client| client.succeeded).collect();
    let failed: u64 = sums.failures.values().sum();
    let skipped = sums.seconds.values().map(|second| second.skipped).sum();
    let session_loop = LoopRecord {
        service_us: service.summary(),
        histogram: stored(service)?,
        response_us: response.as_ref().map(Latencies::summary).transpose()?.flatten(),
        response_histogram: response
            .map(|latencies| stored(&latencies.observed))
            .transpose()?
            .flatten(),
        unfinished_histogram: bounds.map(|bounds| bounds.stored()).transpose()?,
        late: super::skipped(skipped),
        outcomes: Some(super::outcomes(succeeded, failed)),
        retries: sums.retries(has_lag).unwrap_or_default(),
        operations: operations(sums, with_lag)?,
        errors: super::errors(sums.failures.iter().map(|(sqlstate, count)| (*sqlstate, *count))),
        sessions_fairness: Fairness::from_transactions(&of_clients),
        series: series(sums, has_lag),
        ..LoopRecord::default()
    };
    Ok(StageRecord {
        seconds: seconds(sums.end_us - sums.start_us),
        sessions: u32::try_from(sums.clients.len()).unwrap_or(u32::MAX),
        transactions: succeeded,
        database_s: Some(service.total_s()),
        session_loop,
        ..StageRecord::default()
    })
}

/// The response times, with the delays of those that were skipped or failed as lower bounds.
fn responses(sums: &Sums) -> Result<Latencies, HistogramError> {
    let mut latencies = Latencies::new()?;
    latencies.observed.merge(&sums.times.all)?;
    latencies.merge_unfinished(&sums.unfinished)?;
    Ok(latencies)
}

fn stored(histogram: &Histogram) -> Result<Option<StoredHistogram>, HistogramError> {
    (histogram.count() > 0).then(|| histogram.stored()).transpose()
}

fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

/// The transactions of each script; none if there is only one.
fn operations(sums: &Sums, with_lag: bool) -> Result<Vec<OperationRecord>, HistogramError> {
    if sums.scripts.len() < 2 {
        return Ok(Vec::new());
    }
    let operation = |(position, script): (&u32, &Script)| {
        let Times { all, without_7 } = &script.times;
        let service = if with_lag { without_7 } else { all };
        Ok(OperationRecord {
            name: format!("script {position}"),
            transactions: all.count(),
            failed: script.failed,
            service_us: service.summary(),
            response_us: all.summary().filter(|_| with_lag),
            histogram: stored(service)?,
            ..OperationRecord::default()
        })
    };
    sums.scripts.iter().map(operation).collect()
}

/// The series: a point per full second of the clock, the first and the last one for a part of it. A longer log
/// than the series can have gets points of several seconds.
fn series(sums: &Sums, has_lag: Option<bool>) -> Vec<Point> {
    let first = sums.start_us.div_euclid(SECOND_US);
    let last = sums.end_us.div_euclid(SECOND_US);
    let most = i64::try_from(SERIES_POINTS_MAX).unwrap_or(i64::MAX) - 1;
    let step = (last - first) / most + 1;
    let mut points = Vec::new();
    let mut from = first;
    while from <= last {
        let to_us = ((from + step) * SECOND_US).min(sums.end_us);
        let length_us = to_us - (from * SECOND_US).max(sums.start_us);
        let within: Vec<&Second> =
            sums.seconds.range(from..from + step).map(|(_, second)| second).collect();
        let counted = within
            .iter()
            .any(|second| !second.all.is_empty() || second.failed + second.skipped > 0);
        if length_us > 0 || counted {
            let mut point = point(&within, has_lag);
            point.t_s = seconds(to_us - sums.start_us);
            point.seconds = seconds(length_us.max(1));
            points.push(point);
        }
        from += step;
    }
    points
}

fn point(within: &[&Second], has_lag: Option<bool>) -> Point {
    let with_lag = has_lag == Some(true);
    let times =
        |pick: fn(&Second) -> &Values| Values::sorted(within.iter().map(|second| pick(second)));
    let all = times(|second| &second.all);
    let (service, response) =
        if with_lag { (times(|second| &second.without_7), all) } else { (all, Values::default()) };
    let sum = |pick: fn(&Second) -> u64| within.iter().map(|second| pick(second)).sum::<u64>();
    let mut point = Point {
        transactions: service.len(),
        failed: sum(|second| second.failed),
        errors: sum(|second| second.failed),
        skipped: sum(|second| second.skipped),
        retries: if with_lag { sum(|second| second.sum_8) } else { sum(|second| second.sum_7) },
        ..Point::default()
    };
    point.set_latencies(
        |percent| service.percentile(percent),
        |percent| response.percentile(percent),
    );
    point
}
