//! The metrics of runs in progress.
//!
//! Counters are sums over the completed intervals of a stage. Gauges and quantiles describe the last interval, because
//! percentiles of different intervals cannot be combined. Names and formats come from `openmetrics`.

use super::openmetrics::{
    BACKLOG, Labels, Metric, MetricType, MetricsText, RUN, SESSIONS, TextFormat, metric, quantiles,
};
use riops_model::figure::{COUNTS, Count, ERRORS, ROWS, TRANSACTIONS, per_second};
use riops_model::record::{LatencyKind, LivePhase, LiveRun, LiveStage, Point};

/// Returns the format that a client prefers, according to its `Accept` header.
pub fn accepted_format(accept: &str) -> TextFormat {
    let is_accepted = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| {
            part.strip_prefix("q=").is_some_and(|q| q.parse().is_ok_and(|q: f64| q <= 0.0))
        });
        name.eq_ignore_ascii_case("application/openmetrics-text") && !is_refused
    };
    if accept.split(',').any(is_accepted) {
        TextFormat::OpenMetrics
    } else {
        TextFormat::Prometheus
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    metric(MetricType::Gauge, name, help)
}

const PHASE: Metric = gauge("run_phase", "Phase of the run: 1 for the current one, label phase");
const START: Metric = gauge("run_start_time_seconds", "Start of the run, seconds since 1970");
const PREPARED_ROWS: Metric = gauge("prepared_rows", "Rows of the dataset that were loaded so far");
const MEASURED: Metric =
    metric(MetricType::Counter, "measured_seconds", "Duration of the completed intervals");
const INTERVAL: Metric = gauge("interval_seconds", "Length of the last interval");
const STATEMENT: Metric =
    gauge("statement_seconds", "Duration so far of a statement that runs once");
const PROGRESS: Metric =
    gauge("statement_progress_ratio", "Share of a statement that is done, 0 to 1");

/// Rates in the last interval.
const RATES: [(Metric, &Count); 3] = [
    (
        gauge("transactions_per_second", "Transactions per second in the last interval"),
        &TRANSACTIONS,
    ),
    (gauge("rows_per_second", "Rows per second in the last interval"), &ROWS),
    (gauge("errors_per_second", "Errors per second in the last interval"), &ERRORS),
];

/// Returns the metrics of the runs in progress.
pub fn metrics_text(runs: &[LiveRun], format: TextFormat) -> String {
    let mut text = MetricsText::new(format);
    for (metric, samples) in families(runs) {
        text.family(&metric, samples.into_iter().map(|(labels, value)| (labels, value, None)));
    }
    text.finish()
}

/// A metric with its samples.
type Family = (Metric, Vec<(Labels, f64)>);

/// Returns the metrics of the runs in progress, each with the samples of all of them.
pub(super) fn families(runs: &[LiveRun]) -> Vec<Family> {
    let started = |run: &LiveRun| Some(run.started_at.as_millisecond() as f64 / 1e3);
    let prepared = |run: &LiveRun| {
        Some(run.prepared_rows.filter(|_| run.phase == LivePhase::Preparing)?.0 as f64)
    };
    let labeled: Vec<_> = runs.iter().map(|run| (run_labels(run), run)).collect();
    let mut families = vec![
        (RUN, runs.iter().map(info).collect()),
        (PHASE, runs.iter().map(phase).collect()),
        family(START, &labeled, started),
        family(SESSIONS, &labeled, |run| Some(f64::from(run.sessions))),
        family(PREPARED_ROWS, &labeled, prepared),
    ];
    let stages = runs.iter().flat_map(|run| run.stages.iter().map(move |stage| (run, stage)));
    let stages: Vec<_> = stages.map(|(run, stage)| (stage_labels(run, stage), stage)).collect();
    let of_loop = |stage: &LiveStage| stage.statement_s.is_none().then_some(stage.totals);
    families.extend(
        COUNTS.map(|count| {
            family(count, &stages, |stage| Some((count.total)(&of_loop(stage)?) as f64))
        }),
    );
    families.push(family(MEASURED, &stages, |stage| Some(of_loop(stage)?.seconds)));
    families.extend(of_last(runs));
    families.push(family(STATEMENT, &stages, |stage| stage.statement_s));
    families.push(family(PROGRESS, &stages, |stage| stage.share));
    families
}

/// Returns the metrics of the last interval of each run: intervals of earlier stages are not current.
fn of_last(runs: &[LiveRun]) -> Vec<Family> {
    let last = runs.iter().filter_map(|run| {
        let stage = run.stages.last()?;
        Some((stage_labels(run, stage), stage.last.as_ref()?))
    });
    let last: Vec<(Labels, &Point)> = last.collect();
    let mut families = vec![family(INTERVAL, &last, |point| Some(point.seconds))];
    let rate = |(metric, count): (Metric, &Count)| {
        family(metric, &last, |point| per_second((count.in_interval)(point)?, point))
    };
    families.extend(RATES.map(rate));
    families.push(family(BACKLOG, &last, |point| point.backlog.map(|count| count as f64)));
    families.extend(LatencyKind::ALL.map(|kind| {
        let samples = last.iter().flat_map(|(labels, point)| {
            quantiles(point, kind)
                .map(move |((name, text), value)| (with(labels, &name, &text), value))
        });
        (kind.into(), samples.collect())
    }));
    families
}

/// Returns a metric with a sample for each item that has a value.
fn family<T>(
    metric: impl Into<Metric>,
    items: &[(Labels, &T)],
    value: impl Fn(&T) -> Option<f64>,
) -> Family {
    let sample = |(labels, item): &(Labels, &T)| Some((labels.clone(), value(item)?));
    (metric.into(), items.iter().filter_map(sample).collect())
}

fn info(run: &LiveRun) -> (Labels, f64) {
    let texts = [("title", &run.title), ("server", &run.server), ("host", &run.host)];
    let more = texts.map(|(name, text)| label(name, text));
    (run_labels(run).into_iter().chain(more).collect(), 1.0)
}

fn phase(run: &LiveRun) -> (Labels, f64) {
    (with(&run_labels(run), "phase", run.phase.as_str()), 1.0)
}

fn label(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn with(labels: &Labels, name: &str, value: &str) -> Labels {
    labels.iter().cloned().chain([label(name, value)]).collect()
}

fn run_labels(run: &LiveRun) -> Labels {
    let own = [label("run", &run.id.to_string()), label("workload", &run.workload)];
    own.into_iter().chain(run.label.iter().map(|text| label("label", text))).collect()
}

/// Returns the labels of a stage.
fn stage_labels(run: &LiveRun, stage: &LiveStage) -> Labels {
    // The stages of one run may have the same name, but the labels of a sample must be unique.
    let same = run.stages.iter().filter(|other| other.name == stage.name);
    let position = same.take_while(|other| !std::ptr::eq(*other, stage)).count();
    let again = if position == 0 { String::new() } else { format!(" ({})", position + 1) };
    with(&run_labels(run), "stage", &format!("{}{again}", stage.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::plan::Plan;
    use riops_model::record::{RunEvent, example_live_run};

    fn point() -> Point {
        Point {
            t_s: 1.0,
            seconds: 0.5,
            transactions: 100,
            rows: 1_000,
            errors: 3,
            retries: 2,
            backlog: Some(4),
            p50_us: Some(250.0),
            p99_us: Some(1_250.0),
            max_us: Some(2e6),
            response_p50_us: Some(300.0),
            ..Point::default()
        }
    }

    fn run(label: &str) -> LiveRun {
        let plan = Plan { label: Some(label.to_owned()), ..Plan::default() };
        let mut run = example_live_run(&plan);
        for event in [
            RunEvent::Stage { name: "one \"quoted\"".to_owned() },
            RunEvent::Measuring,
            RunEvent::Point(Box::new(point())),
            RunEvent::Stage { name: "two".to_owned() },
            RunEvent::Point(Box::new(point())),
            RunEvent::Point(Box::new(point())),
        ] {
            run.apply(&event);
        }
        run
    }

    #[test]
    fn the_metrics_of_a_run_in_prometheus_text() {
        insta::assert_snapshot!(metrics_text(&[run("night\\ly\n\"2\"")], TextFormat::Prometheus));
    }

    #[test]
    fn the_metrics_of_a_run_in_open_metrics() {
        insta::assert_snapshot!(metrics_text(&[run("a")], TextFormat::OpenMetrics));
    }

    #[test]
    fn the_samples_of_a_family_are_together_with_several_runs() {
        let text = metrics_text(&[run("a"), run("b")], TextFormat::OpenMetrics);
        let names: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split('{').next())
            .collect();
        let mut groups = names.clone();
        groups.dedup();
        let mut unique = names;
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(groups.len(), unique.len());
        assert_eq!(text.matches("# TYPE riops_rows counter").count(), 1);
    }

    #[test]
    fn stages_with_the_same_name_have_different_labels() {
        let mut run = example_live_run(&Plan::default());
        for _ in 0..2 {
            run.apply(&RunEvent::Stage { name: "select".to_owned() });
        }
        let text = metrics_text(&[run], TextFormat::Prometheus);
        assert!(text.contains("stage=\"select\"} 0\n"), "{text}");
        assert!(text.contains("stage=\"select (2)\"} 0\n"), "{text}");
    }

    #[test]
    fn without_a_run_the_text_is_valid_and_empty() {
        assert_eq!(metrics_text(&[], TextFormat::Prometheus), "");
        assert_eq!(metrics_text(&[], TextFormat::OpenMetrics), "# EOF\n");
    }

    #[test]
    fn statements_that_run_once_have_a_duration_and_a_progress() {
        let mut run = example_live_run(&Plan::default());
        run.apply(&RunEvent::Step { name: "vacuum".to_owned() });
        run.apply(&RunEvent::StepProgress { t_s: 2.5, share: Some(0.25), sample: Box::default() });
        let text = metrics_text(&[run], TextFormat::Prometheus);
        assert!(text.contains("riops_statement_seconds{") && text.contains("} 2.5\n"), "{text}");
        assert!(text.contains("stage=\"vacuum\"} 0.25\n"), "{text}");
        assert!(!text.contains("riops_transactions_total"), "{text}");
    }

    #[test]
    fn openmetrics_is_used_only_if_the_client_accepts_it() {
        for (accept, expected) in [
            ("", TextFormat::Prometheus),
            ("text/plain", TextFormat::Prometheus),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                TextFormat::OpenMetrics,
            ),
            ("application/openmetrics-text; q=0, text/plain", TextFormat::Prometheus),
        ] {
            assert_eq!(accepted_format(accept), expected, "{accept}");
        }
    }
}
