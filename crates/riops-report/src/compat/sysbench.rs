//! The report of an `oltp` run in the formats of sysbench 1.0 and 1.1, for scripts that parse it.

use std::fmt::Write as _;

use crate::form::{Extras, Form, Rendered, Stream};
use crate::sysbench::{
    events_per_transaction, histogram, latency, percentile_name, sysbench_interval,
};
use riops_model::figure::Summary;
use riops_model::plan::{OltpRun, Plan};
use riops_model::record::{Checkpoint, Execution, Fairness, LatencySummary, Point, Record};

/// Only sysbench's report, in the format of one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sysbench {
    V1_0,
    /// With the events per second, as the YugabyteDB variant has it.
    V1_1,
}

pub(crate) const V1_0: Form = Form {
    has_verdict: false,
    stream: Some(&Sysbench::V1_0),
    ..Form::new("sysbench", fits, |record, extras| {
        Ok(Rendered::Data(Sysbench::V1_0.full_report(record, extras)))
    })
};
pub(crate) const V1_1: Form = Form {
    has_verdict: false,
    stream: Some(&Sysbench::V1_1),
    ..Form::new("sysbench-1.1", fits, |record, extras| {
        Ok(Rendered::Data(Sysbench::V1_1.full_report(record, extras)))
    })
};

fn fits(plan: &Plan) -> bool {
    plan.work.get::<OltpRun>().is_some()
}

impl Sysbench {
    /// The report of a run that has ended.
    fn full_report(self, record: &Record, extras: &Extras<'_>) -> String {
        let (plan, intervals) = (&record.plan, extras.intervals);
        let mut text = self.opening(plan, intervals) + self.connected();
        for point in record.stages.first().iter().flat_map(|stage| &stage.session_loop.series) {
            text += &self.interval(point, plan, intervals);
        }
        text + &self.closing(record, extras)
    }
}

impl Stream for Sysbench {
    fn opening(&self, plan: &Plan, intervals: bool) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |line: &str| {
            let _ = writeln!(text, "{line}");
        };
        let pipelined = match plan.work.get::<OltpRun>() {
            Some(run) if run.pipeline => {
                "; NOT the round trips of sysbench: --pipeline sends all statements of a transaction at once"
            }
            _ => "",
        };
        let version = env!("CARGO_PKG_VERSION");
        let format = match self {
            Self::V1_0 => "1.0.20",
            Self::V1_1 => "1.1.0",
        };
        // Parsers look for the name and the version at the beginning.
        line(&format!("sysbench {format} (riops {version}{pipelined})\n"));
        line("Running the test with following options:");
        line(&format!("Number of threads: {}", plan.sessions));
        if let Some(per_s) = plan.schedule.per_s() {
            let rate = match events_per_transaction(plan) {
                1 => per_s,
                events => (per_s * events as f64).round(),
            };
            line(&format!("Target transaction rate: {rate}/sec"));
        }
        if intervals {
            line(&format!("Report intermediate results every {} second(s)", plan.interval_s));
        }
        if !plan.checkpoints_s.is_empty() {
            let times: Vec<_> = plan.checkpoints_s.iter().map(f64::to_string).collect();
            line(&format!("Report checkpoint(s) at {} seconds", times.join(", ")));
        }
        let source = if plan.generated_seed.0 {
            "current time\n".to_owned()
        } else {
            format!("seed ({}).\n", plan.seed)
        };
        line(&format!("Initializing random number generator from {source}"));
        line("\nInitializing worker threads...\n");
        text
    }

    fn connected(&self) -> &'static str {
        "Threads started!\n\n"
    }

    fn interval(&self, point: &Point, plan: &Plan, intervals: bool) -> String {
        let mut text = String::new();
        let is_checkpoint = plan.checkpoints_s().any(|t_s| (t_s - point.t_s).abs() < 1e-6);
        if let Some(checkpoint) = point.checkpoint.as_ref().filter(|_| is_checkpoint) {
            let _ = writeln!(text, "[ {:.0}s ] Checkpoint report:", point.t_s);
            text += &since_checkpoint(*self, checkpoint, point.t_s, plan);
        }
        // sysbench has no shorter interval at the end.
        if intervals && point.seconds > plan.interval_s - 1e-6 {
            let _ = writeln!(text, "{}", sysbench_interval(point, plan));
            if let (Some(waiting), Some(busy)) = (point.backlog, point.busy) {
                let t_s = super::super::interval::seconds(point.t_s, plan, 0);
                let _ = writeln!(text, "[ {t_s}s ] queue length: {waiting}, concurrency: {busy}");
            }
        }
        text
    }

    fn closing(&self, record: &Record, extras: &Extras<'_>) -> String {
        let plan = &record.plan;
        let Some(summary) = Summary::first_stage(record) else {
            return String::new();
        };
        let stage = summary.stage;
        let text = extras.histogram.and_then(|_| histogram(stage)).unwrap_or_default();
        let mut checkpoints =
            stage.session_loop.series.iter().rev().filter_map(|point| point.checkpoint.as_ref());
        // As in sysbench, a checkpoint has reset all counts. The end of the run is the last one.
        if let (Some(last), Some(_)) = (checkpoints.next(), checkpoints.next()) {
            return text + &since_checkpoint(*self, last, stage.seconds, plan);
        }
        let (latency, sum_s) = latency(stage).unzip();
        let latency = latency.map(LatencySummary::of_successful);
        let session_loop = &stage.session_loop;
        let latencies_of_all =
            session_loop.unfinished_histogram.as_ref().and_then(|_| session_loop.latencies());
        let of_successful =
            latencies_of_all.and_then(|all| all.observed.percentile_us(plan.percentile));
        let counts = Point {
            queries: stage.session_loop.queries,
            errors: stage.session_loop.error_count(),
            reconnects: stage.session_loop.reconnects,
            seconds: stage.seconds,
            ..Point::default()
        };
        let all = stage.transactions * events_per_transaction(plan);
        let events = &stage.session_loop.sessions_fairness;
        let per_transaction = events_per_transaction(plan) as f64;
        let (mean, stdev) = (events.mean * per_transaction, events.stdev * per_transaction);
        let execution_s = session_loop.execution_s.unwrap_or(Execution { mean: 0.0, stdev: 0.0 });
        text + &statistics(&counts, all, stage.seconds, *self)
            + &latencies(latency, of_successful.or(session_loop.percentile_us), sum_s, plan)
            + &fairness(&Fairness { mean, stdev, ..*events }, execution_s)
    }
}

/// The report of the time since the previous checkpoint, `total_s` after the start. How evenly the sessions ran in
/// that time is not known.
fn since_checkpoint(
    format: Sysbench,
    checkpoint: &Checkpoint,
    total_s: f64,
    plan: &Plan,
) -> String {
    let Checkpoint { point, latency } = checkpoint;
    let latency = latency.as_ref();
    let sessions = f64::from(plan.sessions.max(1));
    let busy_s = latency.map_or(0.0, |latency| latency.mean * latency.count as f64 / 1e6);
    let events = point.transactions * events_per_transaction(plan);
    let mean = events as f64 / sessions;
    let of_sessions = Fairness { mean, stdev: f64::NAN, ..Fairness::default() };
    statistics(point, events, total_s, format)
        + &latencies(latency, point.percentile_us, None, plan)
        + &fairness(&of_sessions, Execution { mean: busy_s / sessions, stdev: f64::NAN })
}

/// Mean and standard deviation of the events and of the execution times of the sessions.
fn fairness(events: &Fairness, execution_s: Execution) -> String {
    let deviation =
        |value: f64| if value.is_nan() { "nan".to_owned() } else { format!("{value:.2}") };
    format!(
        "Threads fairness:\n    events (avg/stddev):           {:.4}/{}\n    execution time (avg/stddev):   {:.4}/{}\n\n",
        events.mean,
        deviation(events.stdev),
        execution_s.mean,
        deviation(execution_s.stdev)
    )
}

/// The counts of a run, or of a part of it, `total_s` after the start of the measurement.
fn statistics(counts: &Point, events: u64, total_s: f64, format: Sysbench) -> String {
    let mut text = String::new();
    let queries = counts.queries;
    let _ = writeln!(text, "SQL statistics:\n    queries performed:");
    for (kind, count) in [
        ("read:", queries.read),
        ("write:", queries.write),
        ("other:", queries.other),
        ("total:", queries.total()),
    ] {
        let _ = writeln!(text, "        {kind:<32} {count}");
    }
    let seconds = counts.seconds.max(f64::MIN_POSITIVE);
    for (name, count) in [
        ("transactions:", events),
        ("queries:", queries.total()),
        ("ignored errors:", counts.errors),
        ("reconnects:", counts.reconnects),
    ] {
        let per_s = count as f64 / seconds;
        let _ = writeln!(text, "    {name:<36} {count:<6} ({per_s:.2} per sec.)");
    }
    let (heading, time) = match format {
        Sysbench::V1_0 => ("General statistics:".to_owned(), "total time:"),
        Sysbench::V1_1 => {
            let per_s = events as f64 / seconds;
            let eps = format!("Throughput:\n    events/s (eps):                      {per_s:.4}");
            (eps, "time elapsed:")
        }
    };
    let _ = writeln!(text, "\n{heading}\n    {time:<36} {total_s:.4}s");
    let _ = writeln!(text, "    total number of events:              {events}\n");
    text
}

/// Returns the latencies and their sum: `total_s`, or the sum of the summary if it is `None`.
fn latencies(
    latency: Option<&LatencySummary>,
    percentile_us: Option<f64>,
    total_s: Option<f64>,
    plan: &Plan,
) -> String {
    let mut text = "Latency (ms):\n".to_owned();
    let ms = |pick: fn(&LatencySummary) -> f64| latency.map_or(0.0, pick) / 1e3;
    let _ = writeln!(text, "         min: {:>39.2}", ms(|latency| latency.min));
    let _ = writeln!(text, "         avg: {:>39.2}", ms(|latency| latency.mean));
    let _ = writeln!(text, "         max: {:>39.2}", ms(|latency| latency.max));
    if plan.percentile == 0.0 {
        let _ = writeln!(text, "         percentile stats:               disabled");
    } else {
        let name = format!("{}:", percentile_name(plan.percentile));
        let _ = writeln!(text, "        {name:>17} {:>27.2}", percentile_us.unwrap_or(0.0) / 1e3);
    }
    let sum_ms =
        total_s.map_or_else(|| ms(|latency| latency.mean * latency.count as f64), |s| s * 1e3);
    let _ = writeln!(text, "         sum: {sum_ms:>39.2}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scale, example_oltp, run_text};
    use riops_model::plan::{Quantity, Schedule};
    use riops_model::record::Histogram;
    use riops_model::units::Nanos;

    fn printed(record: &Record) -> String {
        Sysbench::V1_0.full_report(record, &Extras::new("", 80))
    }

    #[test]
    fn a_rate_adds_the_target_and_the_queue() {
        let mut record = example_oltp();
        record.plan.schedule = Schedule::Poisson { per_s: 250.0 };
        for point in &mut record.stages[0].session_loop.series {
            (point.backlog, point.busy) = (Some(3), Some(2));
        }
        let text = printed(&record);
        assert!(text.contains("\nTarget transaction rate: 250/sec\n"), "{text}");
        assert!(text.contains("s ] queue length: 3, concurrency: 2\n"), "{text}");
    }

    #[test]
    fn the_seed_comes_from_the_command_line_or_the_current_time() {
        let mut record = example_oltp();
        record.plan.seed = 42;
        let text = printed(&record);
        assert!(
            text.contains("\nInitializing random number generator from seed (42).\n\n"),
            "{text}"
        );
        record.plan.generated_seed.0 = true;
        let text = printed(&record);
        let line =
            "\nInitializing random number generator from current time\n\n\nInitializing worker";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn checkpoints_reset_the_counts() {
        let mut record = example_oltp();
        let series = &mut record.stages[0].session_loop.series;
        let checkpoint = |transactions: u64, seconds: f64| {
            let point = Point { t_s: 1.0, transactions, seconds, ..Point::default() };
            let latency = Some(LatencySummary::for_test(1_000.0, 2_000.0));
            Some(Box::new(Checkpoint { point, latency }))
        };
        let last = Point { t_s: 3.0, ..series[0].clone() };
        series[0].t_s = 1.0;
        series.push(last);
        series[0].checkpoint = checkpoint(17, 1.0);
        series.last_mut().unwrap().checkpoint = checkpoint(4, 2.0);
        record.plan.checkpoints_s = vec![1.0];
        let text = printed(&record);
        assert!(text.contains("Report checkpoint(s) at 1 seconds\n"), "{text}");
        let (first, last) = text.split_once("[ 1s ] Checkpoint report:\n").unwrap();
        assert!(!first.contains("SQL statistics") && last.contains("17     (17.00 per sec.)"));
        assert!(last.contains("transactions:                        4      (2.00 per sec.)"));
        assert_eq!(text.matches("SQL statistics").count(), 2);
        assert!(last.contains("    events (avg/stddev):           2.0000/nan\n"), "{text}");
    }

    #[test]
    fn the_histogram_has_the_buckets_of_sysbench() {
        let mut record = example_oltp();
        let mut histogram = Histogram::new().unwrap();
        for (us, count) in [(1_000, 40), (1_010, 40), (5_000, 20)] {
            histogram.record_many(Nanos(us * 1_000), count);
        }
        record.stages[0].session_loop.histogram = Some(histogram.stored().unwrap());
        let extras = Extras::new("", 80).with_histogram(Some((Scale::Log, 20)));
        insta::assert_snapshot!(Sysbench::V1_0.full_report(&record, &extras));
        let none = Plan { percentile: 0.0, ..record.plan };
        let text = latencies(None, None, None, &none);
        assert!(text.contains("percentile stats:               disabled"), "{text}");
    }

    #[test]
    fn the_report_has_the_lines_of_sysbench() {
        let record = example_oltp();
        insta::assert_snapshot!(printed(&record));
    }

    #[test]
    fn version_1_1_prints_the_events_per_second() {
        let record = example_oltp();
        let text = Sysbench::V1_1.full_report(&record, &Extras::new("", 80));
        assert!(text.starts_with("sysbench 1.1.0 (riops "), "{text}");
        let old = printed(&record);
        let tps = old.split_once("transactions: ").and_then(|(_, rest)| {
            rest.split_once('(').and_then(|(_, rest)| rest.split_once(" per sec."))
        });
        let (tps, _) = tps.unwrap();
        let eps = format!("\n\nThroughput:\n    events/s (eps):                      {tps}");
        assert!(text.contains(&eps), "{eps}: {text}");
        assert!(text.contains("\n    time elapsed:                        "), "{text}");
        assert!(!text.contains("General statistics"), "{text}");
        assert!(old.starts_with("sysbench 1.0.20 (riops ") && !old.contains("eps"), "{old}");
    }

    #[test]
    fn with_a_rate_the_latency_starts_at_the_intended_start() {
        let mut record = example_oltp();
        let stage = &mut record.stages[0];
        let mut response = stage.session_loop.service_us.clone().unwrap();
        (response.max, response.mean) = (862_000.0, 172_000.0);
        stage.session_loop.response_us = Some(response);
        stage.session_loop.percentile_us = Some(861_950.0);
        let text = printed(&record);
        for figure in ["172.00", "862.00", "861.95", "2064000.00"] {
            assert!(text.contains(figure), "{figure}: {text}");
        }
        let text = run_text(&record, "no", usize::MAX);
        let totals = text.lines().find(|line| line.contains("95th percentile 862 ms")).unwrap();
        assert!(totals.contains("response time ") && totals.contains("max 862 ms"), "{text}");
    }

    #[test]
    fn starts_that_waited_until_the_end_are_no_events() {
        let mut record = example_oltp();
        let session_loop = &mut record.stages[0].session_loop;
        let histogram = |ms: u64| {
            let mut histogram = Histogram::new().unwrap();
            histogram.record_many(Nanos(ms * 1_000_000), 100);
            Some(histogram.stored().unwrap())
        };
        (session_loop.response_histogram, session_loop.unfinished_histogram) =
            (histogram(70), histogram(5_000));
        let all = session_loop.latencies().unwrap();
        session_loop.percentile_us =
            all.figure(Quantity::Percentile(95.0)).unwrap().map(|at| at.value);
        session_loop.response_us = all.summary().unwrap();
        let text = printed(&record);
        let (_, latency) = text.split_once("Latency (ms):").unwrap();
        assert_eq!(latency.matches(" 70.06\n").count(), 3, "{text}");
        assert!(latency.contains(" 69.99\n") && latency.contains(" 7005.80\n"), "{text}");
        let own = run_text(&record, "no", usize::MAX);
        assert!(own.contains("95th percentile ≥ 5.00 s"), "{own}");
    }
}
