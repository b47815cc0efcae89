//! The series of stages in OpenMetrics, with the time of each point: for `promtool tsdb create-blocks-from
//! openmetrics`.
//!
//! Counters are 0 at the start of their stage and grow with each interval, like scraped counters.

use jiff::Timestamp;

use super::super::openmetrics::{
    BACKLOG, Labels, Metric, MetricsText, NODE_TRANSACTIONS, PROBE, RUN, SESSIONS, STATEMENTS,
    TextFormat, quantiles, tag_label,
};
use super::table::{after, stages};
use riops_model::figure::{COUNTS, ROWS};
use riops_model::record::{LatencyKind, Point, Queries, QuerySeries, Record};
use riops_model::summary::StageRow;

pub(super) fn text<'a>(records: &'a [Record]) -> String {
    let stages: Vec<Series<'a>> = stages(records)
        .filter(|row| !row.stage.session_loop.series.is_empty())
        .map(Series::new)
        .collect();
    let mut text = MetricsText::new(TextFormat::OpenMetrics);
    text.family(&RUN, stages.iter().flat_map(Series::info));
    let mut family = |metric: &Metric, samples: &dyn Fn(&Series<'a>) -> Vec<Sample>| {
        text.family(metric, stages.iter().flat_map(samples));
    };
    family(&SESSIONS, &|series| {
        let sessions = series.row.stage.sessions;
        series.gauge(|_| (sessions > 0).then(|| sessions.into()))
    });
    for count in COUNTS {
        family(&count.into(), &|series| {
            // Not all workloads have rows.
            let exists = count.key != ROWS.key || series.row.has_rows();
            if !exists || !count.is_known(series.row.record, series.row.stage) {
                return Vec::new();
            }
            series.totals(&series.labels, |point| (count.in_interval)(point).unwrap_or_default())
        });
    }
    family(&STATEMENTS, &Series::statements);
    family(&NODE_TRANSACTIONS, &Series::nodes);
    family(&BACKLOG, &|series| series.gauge(|point| point.backlog.map(|count| count as f64)));
    family(&PROBE, &Series::probes);
    for kind in LatencyKind::ALL {
        family(&kind.into(), &|series| series.quantiles(kind));
    }
    text.finish()
}

type Sample = (Labels, f64, Option<Timestamp>);

/// The series of a stage, with its start and labels.
struct Series<'a> {
    row: StageRow<'a>,
    start: Timestamp,
    labels: Labels,
}

impl<'a> Series<'a> {
    fn new(row: StageRow<'a>) -> Self {
        let record = row.record;
        let mut labels = vec![
            ("run".to_owned(), record.id.to_string()),
            ("workload".to_owned(), record.workload.clone()),
            ("stage".to_owned(), row.ordinal.to_string()),
        ];
        labels.extend(record.label.iter().map(|label| ("label".to_owned(), label.clone())));
        Self { start: start(&row), row, labels }
    }

    fn points(&self) -> &'a [Point] {
        &self.row.stage.session_loop.series
    }

    /// Returns the end of an interval.
    fn at(&self, point: &Point) -> Option<Timestamp> {
        after(self.start, point.t_s)
    }

    fn with(&self, name: &str, value: &impl ToString) -> Labels {
        let own = (name.to_owned(), value.to_string());
        self.labels.iter().cloned().chain([own]).collect()
    }

    /// Returns the info metric of the run, at the start and the end of the stage.
    fn info(&self) -> Vec<Sample> {
        let record = self.row.record;
        let mut labels = self.labels.clone();
        labels.push(("stage_name".to_owned(), self.row.stage.name.clone()));
        labels.push(("server_version".to_owned(), record.target.server_version.clone()));
        for (key, value) in &record.tags {
            let name = tag_label(key);
            // Two keys may give the same name; a label must be unique.
            if labels.iter().all(|(known, _)| *known != name) {
                labels.push((name, value.clone()));
            }
        }
        let end = self.points().last().and_then(|point| self.at(point));
        let times = [Some(self.start), end.filter(|end| *end > self.start)];
        times.into_iter().flatten().map(|at| (labels.clone(), 1.0, Some(at))).collect()
    }

    fn gauge(&self, value: impl Fn(&Point) -> Option<f64>) -> Vec<Sample> {
        let sample = |point| Some((self.labels.clone(), value(point)?, Some(self.at(point)?)));
        self.points().iter().filter_map(sample).collect()
    }

    /// Returns the running total of a count, from 0 at the start of the stage.
    fn totals(&self, labels: &Labels, count: impl Fn(&Point) -> u64) -> Vec<Sample> {
        // Imported records may have counts of any size.
        let mut total = 0u128;
        let mut samples = vec![(labels.clone(), 0.0, Some(self.start))];
        for point in self.points() {
            total += u128::from(count(point));
            if let Some(at) = self.at(point) {
                samples.push((labels.clone(), total as f64, Some(at)));
            }
        }
        samples
    }

    fn statements(&self) -> Vec<Sample> {
        if self.row.stage.session_loop.queries.is_none() {
            return Vec::new();
        }
        let samples = |kind: &str, count: fn(&Queries) -> u64| {
            self.totals(&self.with("kind", &kind), |point| count(&point.queries))
        };
        [
            samples("read", |queries| queries.read),
            samples("write", |queries| queries.write),
            samples("other", |queries| queries.other),
        ]
        .concat()
    }

    fn nodes(&self) -> Vec<Sample> {
        let nodes = self.points().iter().map(|point| point.nodes.len()).max().unwrap_or(0);
        let totals = |node| {
            self.totals(&self.with("node", &(node + 1)), |point| {
                point.nodes.get(node).copied().unwrap_or_default()
            })
        };
        (0..nodes).flat_map(totals).collect()
    }

    fn probes(&self) -> Vec<Sample> {
        let of_series = |series: &'a QuerySeries| {
            let labels = self.with("name", &series.name);
            let points = series.points.iter();
            points.map(move |point| (labels.clone(), point.value, after(self.start, point.t_s)))
        };
        self.row.stage.query_series.iter().flat_map(of_series).collect()
    }

    /// Returns the quantiles, grouped by interval.
    fn quantiles(&self, kind: LatencyKind) -> Vec<Sample> {
        let points = self.points().iter();
        let samples = points.flat_map(|point| {
            quantiles(point, kind).filter_map(move |((name, quantile), value)| {
                Some((self.with(&name, &quantile), value, Some(self.at(point)?)))
            })
        });
        samples.collect()
    }
}

/// Returns the start of the stage. Records of earlier releases have only the start of the run: their stages follow one
/// another.
fn start(row: &StageRow<'_>) -> Timestamp {
    row.stage.started_at.unwrap_or_else(|| {
        let before = usize::try_from(row.ordinal.saturating_sub(1)).unwrap_or_default();
        let seconds = row.record.stages.iter().take(before).map(|stage| stage.seconds).sum();
        after(row.record.started_at, seconds).unwrap_or(row.record.started_at)
    })
}
