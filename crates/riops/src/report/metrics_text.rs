//! Runs in progress in the text formats of Prometheus and OpenMetrics.
//!
//! Formats: <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>. Counters are sums over the completed intervals of a stage,
//! and gauges describe the last interval: percentiles of different intervals cannot be combined.

use std::fmt::Write as _;

use crate::record::{LivePhase, LiveRun, LiveStage, LiveTotals, Point};

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Text format 0.0.4 of Prometheus.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// Returns the format that a client prefers, according to its `Accept` header.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let is_accepted = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let is_refused = parts.any(|part| {
                part.strip_prefix("q=").is_some_and(|q| q.parse().is_ok_and(|q: f64| q <= 0.0))
            });
            name.eq_ignore_ascii_case("application/openmetrics-text") && !is_refused
        };
        if accept.split(',').any(is_accepted) { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the content type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Reads a counter of a stage.
type Count = fn(&LiveTotals) -> f64;

/// Counters: name without `_total`, unit, meaning, value.
const COUNTERS: [(&str, &str, &str, Count); 9] = [
    ("riops_transactions", "", "Successful transactions.", |sums| sums.transactions as f64),
    ("riops_rows", "", "Rows of the successful transactions.", |sums| sums.rows as f64),
    ("riops_errors", "", "Errors, also of transactions that succeeded after a retry.", |sums| {
        sums.errors as f64
    }),
    (
        "riops_failed_transactions",
        "",
        "Transactions that failed or whose outcome is unknown.",
        |sums| sums.failed as f64,
    ),
    ("riops_retries", "", "Retries of transactions.", |sums| sums.retries as f64),
    ("riops_late_transactions", "", "Transactions that exceeded the latency limit.", |sums| {
        sums.late as f64
    }),
    ("riops_skipped_transactions", "", "Intended starts that were skipped.", |sums| {
        sums.skipped as f64
    }),
    ("riops_reconnects", "", "Broken connections that were replaced.", |sums| {
        sums.reconnects as f64
    }),
    ("riops_measured_seconds", "seconds", "Duration of the completed intervals.", |sums| {
        sums.seconds
    }),
];

/// Reads a value of the last interval; `None` if it was not measured.
type Value = fn(&Point) -> Option<f64>;

/// Gauges of the last interval: name, unit, meaning, and values with their further labels.
const GAUGES: [(&str, &str, &str, &[(&str, Value)]); 6] = [
    (
        "riops_interval_seconds",
        "seconds",
        "Length of the last interval.",
        &[("", |point| Some(point.seconds))],
    ),
    (
        "riops_transactions_per_second",
        "",
        "Transactions per second in the last interval.",
        &[("", |point| per_second(point, point.transactions))],
    ),
    (
        "riops_rows_per_second",
        "",
        "Rows per second in the last interval.",
        &[("", |point| per_second(point, point.rows))],
    ),
    (
        "riops_errors_per_second",
        "",
        "Errors per second in the last interval.",
        &[("", |point| per_second(point, point.errors))],
    ),
    (
        "riops_backlog_transactions",
        "",
        "Overdue starts at the end of the last interval.",
        &[("", |point| point.backlog.map(|count| count as f64))],
    ),
    (
        "riops_latency_seconds",
        "seconds",
        "Latency in the last interval: service from the send, response from the intended start.",
        &[
            (r#"kind="service",quantile="0.5""#, |point| seconds(point.p50_us)),
            (r#"kind="service",quantile="0.99""#, |point| seconds(point.p99_us)),
            (r#"kind="service",quantile="1""#, |point| seconds(point.max_us)),
            (r#"kind="response",quantile="0.5""#, |point| seconds(point.response_p50_us)),
            (r#"kind="response",quantile="0.99""#, |point| seconds(point.response_p99_us)),
            (r#"kind="response",quantile="1""#, |point| seconds(point.response_max_us)),
        ],
    ),
];

fn per_second(point: &Point, count: u64) -> Option<f64> {
    (point.seconds > 0.0).then(|| count as f64 / point.seconds)
}

fn seconds(us: Option<f64>) -> Option<f64> {
    // A division rounds correctly, so 250 µs are 0.00025 and not 0.00025000000000000001.
    us.map(|us| us / 1e6)
}

/// Returns the metrics of the runs in progress.
#[must_use]
pub fn metrics_text(runs: &[LiveRun], format: MetricsFormat) -> String {
    let mut text = Text { text: String::new(), format };
    text.runs(runs);
    for (name, unit, help, value) in COUNTERS {
        text.family(name, "counter", unit, help, |lines| {
            for (run, stage) in stages(runs) {
                lines.sample("_total", &stage_labels(run, stage), value(&stage.totals));
            }
        });
    }
    for (name, unit, help, values) in GAUGES {
        text.family(name, "gauge", unit, help, |lines| {
            // Only of the stage in progress: the last interval of an earlier one is not current.
            for (run, stage) in runs.iter().filter_map(|run| Some((run, run.stage()?))) {
                for (labels, value) in values {
                    if let Some(value) = stage.last.as_ref().and_then(value) {
                        let own = stage_labels(run, stage);
                        let more = if labels.is_empty() { "" } else { "," };
                        lines.sample("", &format!("{own}{more}{labels}"), value);
                    }
                }
            }
        });
    }
    text.steps(runs);
    if format == MetricsFormat::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

fn stages(runs: &[LiveRun]) -> impl Iterator<Item = (&LiveRun, &LiveStage)> {
    runs.iter().flat_map(|run| {
        run.stages.iter().filter(|stage| stage.statement_s.is_none()).map(move |stage| (run, stage))
    })
}

/// Returns the labels of a run.
fn run_labels(run: &LiveRun) -> String {
    let mut labels = format!("run=\"{}\",workload=\"{}\"", run.id, escaped(&run.workload));
    if let Some(label) = &run.label {
        let _ = write!(labels, ",label=\"{}\"", escaped(label));
    }
    labels
}

fn stage_labels(run: &LiveRun, stage: &LiveStage) -> String {
    format!("{},stage=\"{}\"", run_labels(run), escaped(&stage.name))
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// The text with its format.
struct Text {
    text: String,
    format: MetricsFormat,
}

/// Collects the samples of a family.
struct Lines<'a> {
    name: &'a str,
    text: String,
}

impl Lines<'_> {
    fn sample(&mut self, suffix: &str, labels: &str, value: f64) {
        let _ = writeln!(self.text, "{}{suffix}{{{labels}}} {value}", self.name);
    }
}

impl Text {
    /// Writes a metric family, unless it has no samples.
    fn family(
        &mut self,
        name: &str,
        kind: &str,
        unit: &str,
        help: &str,
        write: impl FnOnce(&mut Lines<'_>),
    ) {
        let mut lines = Lines { name, text: String::new() };
        write(&mut lines);
        if lines.text.is_empty() {
            return;
        }
        let is_open = self.format == MetricsFormat::OpenMetrics;
        // Prometheus names a counter with its suffix, OpenMetrics without.
        let suffix = if kind == "counter" && !is_open { "_total" } else { "" };
        let _ = writeln!(self.text, "# HELP {name}{suffix} {help}");
        let _ = writeln!(self.text, "# TYPE {name}{suffix} {kind}");
        if is_open && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        self.text.push_str(&lines.text);
    }

    /// Writes the facts about the runs themselves.
    fn runs(&mut self, runs: &[LiveRun]) {
        let phase = "What the run is doing; 1 for the current phase.";
        self.family("riops_run_phase", "gauge", "", phase, |lines| {
            for run in runs {
                let labels = format!("{},phase=\"{}\"", run_labels(run), run.phase.as_str());
                lines.sample("", &labels, 1.0);
            }
        });
        let info = "Title, server and client of the run.";
        self.family("riops_run_description", "gauge", "", info, |lines| {
            for run in runs {
                let [title, server, host] =
                    [&run.title, &run.server, &run.host].map(|text| escaped(text));
                let labels = run_labels(run);
                let more = format!("title=\"{title}\",server=\"{server}\",host=\"{host}\"");
                lines.sample("", &format!("{labels},{more}"), 1.0);
            }
        });
        let start = "Start of the run, in seconds since 1970.";
        self.family("riops_run_start_time_seconds", "gauge", "seconds", start, |lines| {
            for run in runs {
                lines.sample("", &run_labels(run), run.started_at.as_millisecond() as f64 / 1e3);
            }
        });
        self.family("riops_sessions", "gauge", "", "Sessions of the plan.", |lines| {
            for run in runs {
                lines.sample("", &run_labels(run), f64::from(run.sessions));
            }
        });
        let rows = "Rows of the dataset that were loaded so far.";
        self.family("riops_prepared_rows", "gauge", "", rows, |lines| {
            for run in runs.iter().filter(|run| run.phase == LivePhase::Preparing) {
                let loaded = run.prepared_rows.map_or(0, |(loaded, _)| loaded);
                lines.sample("", &run_labels(run), loaded as f64);
            }
        });
    }

    /// Writes the statements that are stages of their own.
    fn steps(&mut self, runs: &[LiveRun]) {
        let steps = || {
            let stages =
                runs.iter().flat_map(|run| run.stages.iter().map(move |stage| (run, stage)));
            stages.filter(|(_, stage)| stage.statement_s.is_some())
        };
        let duration = "Duration of a statement that runs once, so far.";
        self.family("riops_statement_seconds", "gauge", "seconds", duration, |lines| {
            for (run, stage) in steps() {
                lines.sample("", &stage_labels(run, stage), stage.statement_s.unwrap_or_default());
            }
        });
        let share = "Share of a statement that is done, 0 to 1.";
        self.family("riops_statement_progress_ratio", "gauge", "ratio", share, |lines| {
            for (run, stage) in steps() {
                if let Some(share) = stage.share {
                    lines.sample("", &stage_labels(run, stage), share);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::record::{LiveEvent, example_live_run};

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
            LiveEvent::Stage { name: "one \"quoted\"".to_owned() },
            LiveEvent::Measuring,
            LiveEvent::Point(Box::new(point())),
            LiveEvent::Stage { name: "two".to_owned() },
            LiveEvent::Point(Box::new(point())),
            LiveEvent::Point(Box::new(point())),
        ] {
            run.apply(&event);
        }
        run
    }

    #[test]
    fn the_metrics_of_a_run_in_prometheus_text() {
        insta::assert_snapshot!(metrics_text(
            &[run("night\\ly\n\"2\"")],
            MetricsFormat::Prometheus
        ));
    }

    #[test]
    fn the_metrics_of_a_run_in_open_metrics() {
        insta::assert_snapshot!(metrics_text(&[run("a")], MetricsFormat::OpenMetrics));
    }

    #[test]
    fn the_samples_of_a_family_are_together_with_several_runs() {
        let text = metrics_text(&[run("a"), run("b")], MetricsFormat::OpenMetrics);
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
    fn without_a_run_the_text_is_valid_and_empty() {
        assert_eq!(metrics_text(&[], MetricsFormat::Prometheus), "");
        assert_eq!(metrics_text(&[], MetricsFormat::OpenMetrics), "# EOF\n");
    }

    #[test]
    fn statements_that_run_once_have_a_duration_and_a_progress() {
        let mut run = example_live_run(&Plan::default());
        run.apply(&LiveEvent::Step { name: "vacuum".to_owned() });
        run.apply(&LiveEvent::StepProgress { t_s: 2.5, share: Some(0.25) });
        let text = metrics_text(&[run], MetricsFormat::Prometheus);
        assert!(text.contains("riops_statement_seconds{") && text.contains("} 2.5\n"), "{text}");
        assert!(text.contains("stage=\"vacuum\"} 0.25\n"), "{text}");
        assert!(!text.contains("riops_transactions_total"), "{text}");
    }

    #[test]
    fn open_metrics_is_used_only_if_the_client_accepts_it() {
        for (accept, expected) in [
            ("", MetricsFormat::Prometheus),
            ("text/plain", MetricsFormat::Prometheus),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                MetricsFormat::OpenMetrics,
            ),
            ("application/openmetrics-text; q=0, text/plain", MetricsFormat::Prometheus),
        ] {
            assert_eq!(MetricsFormat::accepted(accept), expected, "{accept}");
        }
    }
}
