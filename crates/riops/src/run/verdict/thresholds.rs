//! Compares the thresholds of the plan with the result of a stage.

use crate::engine::StageResult;
use crate::figure::Figure;
use crate::metrics::{Counter, Counters, Figures};
use crate::plan::{Metric, Part, Plan, Threshold, TimeKind};
use crate::record::{
    AtLeast, CommandRecord, HistogramError, Latencies, LoopRecord, QuerySeries, Record,
    StageRecord, StoredHistogram, ThresholdRecord,
};
use crate::run::parts::Measured;

/// Returns each threshold with its measured value.
pub(super) fn thresholds_of(
    measured: &Measured,
    plan: &Plan,
    stage: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let result = &measured.result;
    let (service, response) = result.workers.recorder.latencies()?;
    let figures = Figures {
        waiting: result.workers.starts.map(|starts| starts.waiting),
        ..Figures::of_stage(&result.workers.recorder, result.seconds, &service.observed)
    };
    let found = |part: Option<&Part>, metric| match (part, metric) {
        (None, Metric::Time(kind, quantity)) => {
            let of_kind = of_kind(kind, &service, response.as_ref());
            Ok(of_kind.map(|of| of.figure(quantity)).transpose()?.flatten())
        }
        (None, metric) => Ok(exact(figures.get(metric))),
        (Some(part), metric) => figure_of_part(result, metric, part),
    };
    judge(plan, stage, result.breached.as_ref(), &measured.usage.queries, found)
}

/// Returns each threshold with the value that is `found` for it, or that of a query of the user. `ended_run` is the one that has
/// ended the run: that of all clients of a fleet is not in the plan of one.
fn judge(
    plan: &Plan,
    stage: Option<&str>,
    ended_run: Option<&Threshold>,
    queries: &[QuerySeries],
    found: impl Fn(Option<&Part>, Metric) -> Result<Option<AtLeast>, HistogramError>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let of_all = ended_run.filter(|each| !plan.thresholds.contains(each));
    let judged = |threshold: &Threshold| {
        let (part, metric) = (threshold.part.as_ref(), threshold.metric);
        let found = match part.and_then(|part| part.probe.as_ref()) {
            Some(name) => exact(of_probe(queries, name, metric)),
            None => found(part, metric)?,
        };
        Ok(judged(threshold, found, ended_run == Some(threshold), stage))
    };
    plan.thresholds.iter().chain(of_all).map(judged).collect()
}

/// Judges the thresholds of a stage that name a figure of the catalog.
pub(in crate::run) fn judge_figures(
    thresholds: &mut [ThresholdRecord],
    record: &Record,
    stage: &StageRecord,
) {
    for each in thresholds {
        if let Ok(Some(figure)) = Figure::required(&each.threshold) {
            let found = figure.of(record, stage).map(|value| AtLeast {
                value: figure.in_unit_of_limit(value),
                is_bound: figure.is_bound(stage),
            });
            *each = judged(&each.threshold, found, each.ended_run, each.stage.as_deref());
        }
    }
}

/// Returns a threshold with its measured value.
fn judged(
    threshold: &Threshold,
    found: Option<AtLeast>,
    ended_run: bool,
    stage: Option<&str>,
) -> ThresholdRecord {
    let is_met = |found: AtLeast| match threshold.is_met_from(found.value) {
        is_met if found.is_bound => is_met == Some(true),
        _ => threshold.is_met_by(found.value),
    };
    ThresholdRecord {
        stage: stage.map(str::to_owned),
        threshold: threshold.clone(),
        found: found.map(|found| found.value),
        at_least: found.is_some_and(|found| found.is_bound),
        // A threshold that ended the run stays breached, even if the last transactions met it again.
        held: !ended_run && found.is_some_and(is_met),
        ended_run,
    }
}

/// Returns each threshold with its value in the record of a stage. `ended_run` is the one that has ended the run.
pub(in crate::run) fn thresholds_of_record(
    stage: &StageRecord,
    plan: &Plan,
    name: Option<&str>,
    ended_run: Option<&Threshold>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let of_loop = &stage.session_loop;
    let unfinished = of_loop.unfinished_histogram.as_ref();
    let times = |stored: &Option<StoredHistogram>, has_bounds: bool| {
        let read = |stored| Latencies::stored(stored, unfinished.filter(|_| has_bounds));
        stored.as_ref().map(read).transpose()
    };
    let response = times(&of_loop.response_histogram, true)?;
    let service = times(&of_loop.histogram, response.is_none())?;
    let service = service.map_or_else(Latencies::new, Ok)?;
    let figures = Figures {
        seconds: stage.seconds,
        counters: counters_of(stage),
        waiting: of_loop.schedule.as_ref().map(|schedule| schedule.waiting),
        is_final: true,
        service: &service.observed,
        response: None,
    };
    let found = |part: Option<&Part>, metric| match (part, metric) {
        (None, Metric::Time(kind, quantity)) => {
            let of_kind = of_kind(kind, &service, response.as_ref());
            Ok(of_kind.map(|of| of.figure(quantity)).transpose()?.flatten())
        }
        (None, Metric::TransactionsPerS) => Ok(exact(Some(stage.throughput.transactions_per_s))),
        (None, Metric::RowsPerS) => Ok(exact(Some(stage.throughput.rows_per_s))),
        (None, metric) => Ok(exact(figures.get(metric))),
        (Some(part), metric) => figure_of_recorded_part(of_loop, metric, part),
    };
    judge(plan, name, ended_run, &stage.query_series, found)
}

/// Returns the counts of a record.
fn counters_of(stage: &StageRecord) -> Counters {
    let of_loop = &stage.session_loop;
    let outcomes = of_loop.outcomes.unwrap_or_default();
    let late =
        of_loop.late.map_or((0, 0), |late| (late.transactions.unwrap_or_default(), late.skipped));
    let mut counters = Counters::default();
    counters.add([
        (Counter::Transactions, stage.transactions),
        (Counter::Rows, stage.rows),
        (Counter::Errors, of_loop.error_count()),
        (Counter::Failed, outcomes.failed),
        (Counter::Unknown, outcomes.unknown),
        (Counter::Late, late.0),
        (Counter::Skipped, late.1),
        (Counter::Retries, of_loop.retries),
        (Counter::Reconnects, of_loop.reconnects),
    ]);
    counters
}

/// Returns the value of a metric for a script or one of its commands in a record. Response times of one of several scripts
/// are not recorded.
fn figure_of_recorded_part(
    of_loop: &LoopRecord,
    metric: Metric,
    part: &Part,
) -> Result<Option<AtLeast>, HistogramError> {
    let names = of_loop.operations.iter().map(|each| each.name.as_str());
    let Some(operation) = part.position(names).and_then(|at| of_loop.operations.get(at)) else {
        return Ok(None);
    };
    let own = |command: &&CommandRecord| {
        command.script == operation.number && part.command.is_none_or(|of| command.number == of)
    };
    let commands = || of_loop.commands.iter().filter(own);
    let count =
        |pick: fn(&CommandRecord) -> u64| exact(Some(commands().map(pick).sum::<u64>() as f64));
    let figure = |stored: Option<&StoredHistogram>, quantity| {
        let decoded = stored.map(StoredHistogram::decode).transpose()?;
        Ok(exact(decoded.and_then(|histogram| histogram.figure(quantity))))
    };
    let has_rate = of_loop.response_us.is_some();
    match metric {
        Metric::Time(_, quantity) if part.command.is_some() => {
            figure(commands().next().and_then(|command| command.histogram.as_ref()), quantity)
        }
        Metric::Time(kind, quantity) if kind == TimeKind::Service || !has_rate => {
            figure(operation.histogram.as_ref(), quantity)
        }
        Metric::Errors => Ok(count(|command| command.failures)),
        Metric::Retries => Ok(count(|command| command.retries)),
        _ => Ok(None),
    }
}

/// Returns each threshold with its value in a stage whose transactions riops did not send.
pub(super) fn thresholds_of_stage(
    stage: &StageRecord,
    plan: &Plan,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let found = |part: Option<&Part>, metric| match (part, metric) {
        (None, Metric::TransactionsPerS) => Ok(exact(Some(stage.throughput.transactions_per_s))),
        _ => Ok(None),
    };
    judge(plan, None, None, &stage.query_series, found)
}

/// Returns the value of a metric for a query of the user.
fn of_probe(series: &[QuerySeries], name: &str, metric: Metric) -> Option<f64> {
    let found = series.iter().find(|each| each.name == name)?;
    if metric == Metric::ProbeMax { found.max() } else { found.mean() }
}

fn exact(value: Option<f64>) -> Option<AtLeast> {
    value.map(|value| AtLeast { value, is_bound: false })
}

/// Returns the latencies of a kind: the response times exist only with a rate.
fn of_kind<'a>(
    kind: TimeKind,
    service: &'a Latencies,
    response: Option<&'a Latencies>,
) -> Option<&'a Latencies> {
    match kind {
        TimeKind::Service => Some(service),
        TimeKind::Response => response,
        TimeKind::Either => response.or(Some(service)),
    }
}

/// Returns the value of a metric for a script or one of its commands.
fn figure_of_part(
    result: &StageResult,
    metric: Metric,
    part: &Part,
) -> Result<Option<AtLeast>, HistogramError> {
    let Some(script) = part.position(result.operations.iter().map(AsRef::as_ref)) else {
        return Ok(None);
    };
    let all = result.commands.iter().zip(&result.workers.recorder.commands.totals);
    let mut own = all.filter(|(command, _)| {
        command.operation == script && part.command.is_none_or(|number| command.number == number)
    });
    let count = |number: u64| exact(Some(number as f64));
    Ok(match metric {
        Metric::Time(kind, quantity) if part.command.is_none() => {
            let Some(totals) = result.workers.recorder.operations.get(script) else {
                return Ok(None);
            };
            // Without a rate, the response time is the service time.
            let of = of_kind(kind, &totals.service, totals.response.as_ref());
            of.unwrap_or(&totals.service).figure(quantity)?
        }
        Metric::Time(_, quantity) => {
            let service = own.next().and_then(|(_, totals)| totals.service.as_deref());
            exact(service.and_then(|service| service.figure(quantity)))
        }
        Metric::Errors => count(own.map(|(_, totals)| totals.failures).sum()),
        Metric::Retries => count(own.map(|(_, totals)| totals.retries).sum()),
        _ => None,
    })
}
