//! The series of stages in OpenMetrics, with the time of each point: for `promtool tsdb create-blocks-from
//! openmetrics`.
//!
//! Counters start with 0 at the start of their stage and grow with each interval, as those of a scrape do.

use jiff::{SignedDuration, Timestamp};

use super::super::openmetrics::{
    BACKLOG, ERRORS, FAILED, LATE, Labels, Metric, MetricsText, NODE_TRANSACTIONS, RECONNECTS,
    RESPONSE_TIME, RETRIES, ROWS, RUN, SERVICE_TIME, SESSIONS, SKIPPED, STATEMENTS, TRANSACTIONS,
    TextFormat, tag_label,
};
use super::super::words;
use super::stages::Row;
use crate::record::{Point, Record};

pub(super) fn text(records: &[Record]) -> String {
    let stages: Vec<Series<'_>> = Row::all(records)
        .filter(|row| !row.stage.session_loop.series.is_empty())
        .map(Series::of)
        .collect();
    let mut text = MetricsText::new(TextFormat::OpenMetrics);
    info(&mut text, &stages);
    let sessions = |series: &Series<'_>, _: &Point| {
        let known = Some(series.row.stage.sessions).filter(|sessions| *sessions > 0);
        known.map(f64::from)
    };
    gauge(&mut text, &stages, &SESSIONS, sessions);
    for (metric, count) in counters() {
        counter(&mut text, &stages, metric, count);
    }
    statements(&mut text, &stages);
    nodes(&mut text, &stages);
    gauge(&mut text, &stages, &BACKLOG, |_, point| point.backlog.map(|count| count as f64));
    quantiles(&mut text, &stages, &SERVICE_TIME, |point| {
        [point.p50_us, point.p99_us, point.max_us]
    });
    quantiles(&mut text, &stages, &RESPONSE_TIME, |point| {
        [point.response_p50_us, point.response_p99_us, point.response_max_us]
    });
    text.finish()
}

/// The number that an interval adds to a counter.
type Count = fn(&Point) -> u64;

fn counters() -> [(&'static Metric, Count); 8] {
    [
        (&TRANSACTIONS, |point| point.transactions),
        (&ROWS, |point| point.rows),
        (&ERRORS, |point| point.errors),
        (&FAILED, |point| point.failed),
        (&RETRIES, |point| point.retries),
        (&LATE, |point| point.late),
        (&SKIPPED, |point| point.skipped),
        (&RECONNECTS, |point| point.reconnects),
    ]
}

/// The series of a stage, with its start and labels.
struct Series<'a> {
    row: Row<'a>,
    start: Timestamp,
    labels: Labels,
}

impl<'a> Series<'a> {
    fn of(row: Row<'a>) -> Self {
        let record = row.record;
        let mut labels = vec![
            ("run".to_owned(), record.id.to_string()),
            ("workload".to_owned(), record.workload.clone()),
            ("stage".to_owned(), row.number.to_string()),
        ];
        labels.extend(record.label.iter().map(|label| ("label".to_owned(), label.clone())));
        Self { start: start(&row), row, labels }
    }

    fn points(&self) -> &'a [Point] {
        &self.row.stage.session_loop.series
    }

    /// The end of an interval.
    fn at(&self, point: &Point) -> Option<Timestamp> {
        let elapsed = SignedDuration::try_from_secs_f64(point.t_s).ok()?;
        self.start.checked_add(elapsed).ok()
    }

    fn with(&self, name: &str, value: &impl ToString) -> Labels {
        let own = (name.to_owned(), value.to_string());
        self.labels.iter().cloned().chain([own]).collect()
    }

    /// Whether the stage has this counter. Of an imported run, no event in the whole stage may also mean
    /// unknown.
    fn has(&self, metric: &Metric, count: Count) -> bool {
        if *metric == ROWS && !words::of(&self.row.record.plan.work).has_rows() {
            return false;
        }
        // Without a limit, no transaction is late.
        let is_limited = self.row.record.plan.latency_limit.is_some();
        let is_counted = is_limited || ![LATE, SKIPPED].contains(metric);
        (self.row.record.imported.is_none() && is_counted) || self.row.has_any(count)
    }
}

/// The start of the stage. Records of earlier releases have only that of the run, and the stages follow each
/// other.
fn start(row: &Row<'_>) -> Timestamp {
    row.stage.started_at.unwrap_or_else(|| {
        let before = usize::try_from(row.number.saturating_sub(1)).unwrap_or_default();
        let seconds = row.record.stages.iter().take(before).map(|stage| stage.seconds).sum();
        let elapsed = SignedDuration::try_from_secs_f64(seconds).unwrap_or_default();
        row.record.started_at.checked_add(elapsed).unwrap_or(row.record.started_at)
    })
}

/// Writes the head of a metric and its samples, unless no stage has one.
fn family(text: &mut MetricsText, metric: &Metric, samples: Vec<(Labels, f64, Timestamp)>) {
    if samples.is_empty() {
        return;
    }
    text.head(metric);
    for (labels, value, at) in samples {
        text.sample(metric, &labels, value, Some(at));
    }
}

/// What each run is, at the start and the end of each of its stages.
fn info(text: &mut MetricsText, stages: &[Series<'_>]) {
    let mut samples = Vec::new();
    for series in stages {
        let record = series.row.record;
        let mut labels = series.labels.clone();
        labels.push(("stage_name".to_owned(), series.row.stage.name.clone()));
        labels.push(("server_version".to_owned(), record.target.server_version.clone()));
        for (key, value) in &record.tags {
            let name = tag_label(key);
            // Two keys may give the same name; a label must be unique.
            if labels.iter().all(|(known, _)| *known != name) {
                labels.push((name, value.clone()));
            }
        }
        let end = series.points().last().and_then(|point| series.at(point));
        let times = [Some(series.start), end.filter(|end| *end > series.start)];
        samples.extend(times.into_iter().flatten().map(|at| (labels.clone(), 1.0, at)));
    }
    family(text, &RUN, samples);
}

/// Writes a total that grows with each interval.
fn counter(text: &mut MetricsText, stages: &[Series<'_>], metric: &Metric, count: Count) {
    let samples = stages
        .iter()
        .filter(|series| series.has(metric, count))
        .flat_map(|series| totals(series, &series.labels, |point| Some(count(point))));
    family(text, metric, samples.collect());
}

/// The running total of a count, from 0 at the start of the stage.
fn totals(
    series: &Series<'_>,
    labels: &Labels,
    count: impl Fn(&Point) -> Option<u64>,
) -> Vec<(Labels, f64, Timestamp)> {
    // Of imported records, the counts may be any numbers.
    let mut total = 0u128;
    let mut samples = vec![(labels.clone(), 0.0, series.start)];
    for point in series.points() {
        total += u128::from(count(point).unwrap_or_default());
        if let Some(at) = series.at(point) {
            samples.push((labels.clone(), total as f64, at));
        }
    }
    samples
}

fn statements(text: &mut MetricsText, stages: &[Series<'_>]) {
    let kinds: [(&str, Count); 3] = [
        ("read", |point| point.queries.read),
        ("write", |point| point.queries.write),
        ("other", |point| point.queries.other),
    ];
    let counted = |series: &&Series<'_>| !series.row.stage.session_loop.queries.is_none();
    let samples = stages.iter().filter(counted).flat_map(|series| {
        kinds.iter().flat_map(move |(kind, count)| {
            totals(series, &series.with("kind", kind), |point| Some(count(point)))
        })
    });
    family(text, &STATEMENTS, samples.collect());
}

fn nodes(text: &mut MetricsText, stages: &[Series<'_>]) {
    let samples = stages.iter().flat_map(|series| {
        let nodes = series.points().iter().map(|point| point.nodes.len()).max().unwrap_or(0);
        (0..nodes).flat_map(move |node| {
            totals(series, &series.with("node", &(node + 1)), |point| {
                point.nodes.get(node).copied()
            })
        })
    });
    family(text, &NODE_TRANSACTIONS, samples.collect());
}

fn gauge(
    text: &mut MetricsText,
    stages: &[Series<'_>],
    metric: &Metric,
    value: impl Fn(&Series<'_>, &Point) -> Option<f64>,
) {
    let mut samples = Vec::new();
    for series in stages {
        for point in series.points() {
            if let (Some(value), Some(at)) = (value(series, point), series.at(point)) {
                samples.push((series.labels.clone(), value, at));
            }
        }
    }
    family(text, metric, samples);
}

/// Writes the median, the 99th percentile and the maximum of each interval, in seconds.
fn quantiles(
    text: &mut MetricsText,
    stages: &[Series<'_>],
    metric: &Metric,
    values_us: impl Fn(&Point) -> [Option<f64>; 3],
) {
    let mut samples = Vec::new();
    for series in stages {
        let labels = ["0.5", "0.99", "1"].map(|quantile| series.with("quantile", &quantile));
        // All quantiles of a time belong together.
        for point in series.points() {
            let Some(at) = series.at(point) else { continue };
            for (labels, us) in labels.iter().zip(values_us(point)) {
                samples.extend(us.map(|us| (labels.clone(), us / 1e6, at)));
            }
        }
    }
    family(text, metric, samples);
}
