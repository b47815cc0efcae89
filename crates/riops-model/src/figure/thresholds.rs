//! Compares thresholds with the record of a stage: of one that has ended, or of one in progress.

use super::Figure;
use crate::plan::{LatencyKind, Metric, Part, Threshold};
use crate::record::{
    AtLeast, CommandRecord, Histogram, HistogramError, LoopRecord, QuerySeries, Record, StageKind,
    StageRecord, StoredTimes, ThresholdRecord,
};

/// Judges the thresholds of the plan of a record for one of its stages. `ended_run` has ended the run; the plan of one client lacks
/// it if all clients of a fleet have breached it together. `name` is present if the run has several stages.
///
/// # Errors
/// Returns [`HistogramError`] if a histogram is damaged.
pub fn judged(
    record: &Record,
    stage: &StageRecord,
    ended_run: Option<&Threshold>,
    name: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let thresholds = &record.plan.thresholds;
    let of_all = ended_run.filter(|threshold| !thresholds.contains(threshold));
    let judged = |threshold: &Threshold| {
        let measured = measured_value(threshold, record, stage)?;
        let is_met = |figure: AtLeast| match threshold.is_met_from(figure.value) {
            is_met if figure.is_bound => is_met == Some(true),
            _ => threshold.is_met_by(figure.value),
        };
        let ended_run = ended_run == Some(threshold);
        Ok(ThresholdRecord {
            stage: name.map(str::to_owned),
            threshold: threshold.clone(),
            found: measured.map(|measured| measured.value),
            at_least: measured.is_some_and(|measured| measured.is_bound),
            // A threshold that ended the run stays breached, even if the last transactions met it again.
            held: !ended_run && measured.is_some_and(is_met),
            ended_run,
        })
    };
    thresholds.iter().chain(of_all).map(judged).collect()
}

/// Returns the first threshold that a stage in progress certainly breaches. `stage` has its counts so far, and `times` returns its
/// latencies. Figures, parts and waiting starts are left out: they are known only at its end.
pub fn breached<'a, 'b>(
    stage: &StageRecord,
    times: impl Fn(LatencyKind) -> Option<&'b Histogram>,
    thresholds: &'a [Threshold],
) -> Option<&'a Threshold> {
    let of_kind = |kind| match kind {
        Some(kind) => times(kind),
        None => times(LatencyKind::Response).or(times(LatencyKind::Service)),
    };
    thresholds.iter().find(|threshold| {
        let measured = match threshold.metric {
            _ if threshold.part.is_some() => None,
            Metric::Time(kind, quantity) => {
                of_kind(kind).and_then(|latencies| latencies.figure(quantity))
            }
            // The drain may add some.
            Metric::Reconnects | Metric::Unknown => None,
            metric => count_of(stage, metric),
        };
        measured.is_some_and(|measured| threshold.is_clearly_breached(measured))
    })
}

/// Returns the value that a threshold judges, in microseconds for times; `None` if it was not measured.
fn measured_value(
    threshold: &Threshold,
    record: &Record,
    stage: &StageRecord,
) -> Result<Option<AtLeast>, HistogramError> {
    let of_loop = &stage.session_loop;
    Ok(match (&threshold.part, threshold.metric) {
        (_, Metric::Figure) => {
            let figure = Figure::required(threshold).ok().flatten();
            figure.and_then(|figure| {
                let value = figure.in_unit_of_limit(figure.value(record, stage)?);
                Some(AtLeast { value, is_bound: figure.is_bound(stage) })
            })
        }
        (Some(Part { probe: Some(name), .. }), metric) => {
            exact(of_probe(&stage.query_series, name, metric))
        }
        (Some(part), metric) => match record.plan.work.spec().script_of(part) {
            Ok(script) => of_script(of_loop, script, part.command, metric)?,
            Err(_) => None,
        },
        (None, Metric::Time(kind, quantity)) => of_loop.times(kind).figure(quantity)?,
        (None, metric) => exact(count_of(stage, metric)),
    })
}

fn exact(value: Option<f64>) -> Option<AtLeast> {
    value.map(|value| AtLeast { value, is_bound: false })
}

/// Returns the value of a metric that is a count or a rate.
fn count_of(stage: &StageRecord, metric: Metric) -> Option<f64> {
    let of_loop = &stage.session_loop;
    let outcomes = of_loop.outcomes.unwrap_or_default();
    let failed = outcomes.failed + outcomes.unknown;
    let has_time = stage.seconds > 0.0;
    let count = match metric {
        Metric::TransactionsPerS => {
            return Some(stage.throughput.transactions_per_s).filter(|_| has_time);
        }
        // riops did not send the transactions, and counts nothing else of them.
        _ if stage.kind == StageKind::Observed => return None,
        Metric::RowsPerS => return Some(stage.throughput.rows_per_s).filter(|_| has_time),
        Metric::ErrorPercent => {
            let ended = failed + stage.transactions;
            return (ended > 0).then(|| 100.0 * failed as f64 / ended as f64);
        }
        Metric::Errors => of_loop.error_count(),
        Metric::Late => {
            of_loop.late.map_or(0, |late| late.transactions.unwrap_or_default() + late.skipped)
        }
        Metric::Waiting => of_loop.schedule.as_ref()?.waiting,
        Metric::Retries => of_loop.retries,
        Metric::Reconnects => of_loop.reconnects,
        Metric::Unknown => outcomes.unknown,
        Metric::Time(..) | Metric::Probe | Metric::ProbeMax | Metric::Figure => return None,
    };
    Some(count as f64)
}

/// Returns the value of a metric for a script, by its number, or for one of its commands. A script that was never chosen has no
/// times.
fn of_script(
    of_loop: &LoopRecord,
    script: usize,
    command: Option<usize>,
    metric: Metric,
) -> Result<Option<AtLeast>, HistogramError> {
    let own = |record: &&CommandRecord| {
        record.script == script && command.is_none_or(|command| record.number == command)
    };
    let mut commands = of_loop.commands.iter().filter(own);
    let count = |value: u64| exact(Some(value as f64));
    match metric {
        Metric::Time(_, quantity) if command.is_some() => {
            let times = commands.next().map(|record| {
                StoredTimes::of_observed(record.histogram.as_ref(), record.service_us.as_ref())
            });
            times.map_or(Ok(None), |times| times.figure(quantity))
        }
        Metric::Time(kind, quantity) => {
            let operation = of_loop.operations.iter().find(|operation| operation.number == script);
            let times = operation.map(|operation| match of_loop.operations.as_slice() {
                // The only script of a run has the times of its stage.
                [_] if operation.response_histogram.is_none() => of_loop.times(kind),
                _ => operation.times(kind),
            });
            times.map_or(Ok(None), |times| times.figure(quantity))
        }
        Metric::Errors => Ok(count(commands.map(|command| command.failures).sum())),
        Metric::Retries => Ok(count(commands.map(|command| command.retries).sum())),
        _ => Ok(None),
    }
}

/// Returns the value of a metric for a query of the user.
fn of_probe(series: &[QuerySeries], name: &str, metric: Metric) -> Option<f64> {
    let query = series.iter().find(|query| query.name == name)?;
    if metric == Metric::ProbeMax { query.max() } else { query.mean() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ScriptRun, ScriptSource};
    use crate::record::example::example_record;
    use crate::record::{
        LateRecord, Latencies, OperationRecord, Outcomes, ScheduleRecord, StoredHistogram,
    };
    use crate::units::Nanos;

    const MS: u64 = 1_000_000;

    fn is_met(value: f64, text: &str) -> bool {
        text.parse::<Threshold>().unwrap().is_met_by(value)
    }

    #[test]
    fn each_metric_has_one_value_in_a_record() {
        let (record, stage) = example();
        for (text, value) in [
            ("reconnects=7", 7.0),
            ("unknown=2", 2.0),
            ("error_percent>0", 100.0 * 10.0 / (10.0 + stage.transactions as f64)),
            ("late=3", 3.0),
            ("waiting=4", 4.0),
            ("errors=0", 0.0),
        ] {
            let measured =
                measured_value(&text.parse().unwrap(), &record, &stage).unwrap().unwrap();
            assert_eq!(measured, AtLeast { value, is_bound: false }, "{text}");
        }
        let observed = StageRecord { kind: StageKind::Observed, ..stage };
        let measured =
            |text: &str| measured_value(&text.parse().unwrap(), &record, &observed).unwrap();
        assert!(
            measured("tps>1").is_some()
                && measured("errors=0").is_none()
                && measured("riops>1").is_none()
        );
    }

    #[test]
    fn the_times_of_a_script_have_their_kind_and_their_lower_bounds() {
        let (mut record, mut stage) = example();
        let source = |name: &str| {
            let text = Some("select 1;".to_owned());
            ScriptSource { name: name.to_owned(), weight: 1, text }
        };
        let scripts = ["a.sql", "b.sql", "c.sql"].map(source).to_vec();
        record.plan.work = ScriptRun { scripts, ..ScriptRun::default() }.into();
        let times = |ms: u64, unfinished: u64| {
            let mut times = Latencies::new().unwrap();
            times.observed.record(Nanos(ms * MS));
            (0..unfinished).for_each(|_| times.unfinished(Nanos(100 * ms * MS)));
            times
        };
        let (service, response) = (times(1, 1), times(5, 3));
        let own = OperationRecord {
            name: "c.sql".to_owned(),
            number: 3,
            service_us: service.summary().unwrap(),
            response_us: response.summary().unwrap(),
            histogram: Some(stored(&service.observed)),
            response_histogram: Some(stored(&response.observed)),
            unfinished_histogram: response.stored_bounds().unwrap(),
            unfinished_service_histogram: service.stored_bounds().unwrap(),
            ..OperationRecord::default()
        };
        let other =
            OperationRecord { name: "a.sql".to_owned(), number: 1, ..OperationRecord::default() };
        // The second script was never chosen.
        stage.session_loop.operations = vec![other, own];
        let measured =
            |text: &str| measured_value(&text.parse().unwrap(), &record, &stage).unwrap();
        for (text, from, to) in [
            ("p50{script=c.sql}<1s", "p50>=490ms", "p50<=510ms"),
            ("service.p99{script=3}<1s", "p50>=99ms", "p50<=101ms"),
        ] {
            let figure = measured(text).unwrap();
            assert!(figure.is_bound, "{text}");
            assert!(is_met(figure.value, from) && is_met(figure.value, to), "{text}: {figure:?}");
        }
        for text in ["p99{script=a.sql}<1s", "p99{script=2}<1s"] {
            assert_eq!(measured(text), None, "{text}");
        }
        assert_eq!(measured("errors{script=2}=0"), exact(Some(0.0)));
    }

    fn stored(histogram: &Histogram) -> StoredHistogram {
        histogram.stored().unwrap()
    }

    fn example() -> (Record, StageRecord) {
        let record = example_record();
        let mut stage = record.stages[0].clone();
        let session_loop = &mut stage.session_loop;
        session_loop.errors.clear();
        session_loop.reconnects = 7;
        session_loop.outcomes = Some(Outcomes { failed: 8, unknown: 2, ..Outcomes::default() });
        session_loop.late =
            Some(LateRecord { transactions: Some(2), skipped: 1, ..LateRecord::default() });
        session_loop.schedule = Some(ScheduleRecord { waiting: 4, ..ScheduleRecord::default() });
        (record, stage)
    }
}
