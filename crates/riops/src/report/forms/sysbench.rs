//! The report of an `oltp` run in the format of sysbench 1.0, for scripts that parse it.

use std::fmt::Write as _;

use super::super::model::Summary;
use super::super::sysbench::{latency, percentile_name, sysbench_interval};
use super::form::{Extras, Form, FormError};
use crate::plan::{OltpRun, Plan};
use crate::record::Record;

/// Only sysbench's report.
pub(super) struct Sysbench;

impl Form for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn fits(&self, plan: &Plan) -> bool {
        plan.work.get::<OltpRun>().is_some()
    }

    fn has_verdict(&self) -> bool {
        false
    }

    fn print(&self, record: &Record, extras: &Extras<'_>) -> Result<String, FormError> {
        Ok(sysbench_text(record) + &extras.histogram_below(record))
    }
}

fn sysbench_text(record: &Record) -> String {
    let mut text = String::new();
    let plan = &record.plan;
    let mut line = |line: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    };
    let pipeline = plan.work.get::<OltpRun>().is_some_and(|run| run.pipeline);
    let pipelined = if pipeline {
        "; NOT the round trips of sysbench: --pipeline sends all statements of a transaction at once"
    } else {
        ""
    };
    let version = &record.client.riops_version;
    line(format!("riops {version} (in the format of sysbench 1.0{pipelined})\n"));
    line("Running the test with following options:".to_owned());
    line(format!("Number of threads: {}", plan.sessions));
    line(format!("Report intermediate results every {} second(s)", plan.interval_s));
    line(format!("Initializing random number generator from seed ({}).\n", plan.seed));
    line("\nInitializing worker threads...\n".to_owned());
    line("Threads started!\n".to_owned());
    let Some(summary) = Summary::of(record) else {
        return text;
    };
    let stage = summary.stage;
    for point in &stage.session_loop.series {
        line(sysbench_interval(point, plan));
    }
    let queries = stage.session_loop.queries;
    let seconds = stage.seconds.max(f64::MIN_POSITIVE);
    let per_s = |number: u64| number as f64 / seconds;
    line("SQL statistics:".to_owned());
    line("    queries performed:".to_owned());
    line(format!("        read:                            {}", queries.read));
    line(format!("        write:                           {}", queries.write));
    line(format!("        other:                           {}", queries.other));
    line(format!("        total:                           {}", queries.total()));
    for (name, number) in [
        ("transactions:", stage.transactions),
        ("queries:", queries.total()),
        ("ignored errors:", summary.errors()),
        ("reconnects:", stage.session_loop.reconnects),
    ] {
        line(format!("    {name:<36} {number:<6} ({:.2} per sec.)", per_s(number)));
    }
    line("\nGeneral statistics:".to_owned());
    line(format!("    total time:                          {seconds:.4}s"));
    line(format!("    total number of events:              {}\n", stage.transactions));
    line("Latency (ms):".to_owned());
    let ms = |pick: f64| pick / 1e3;
    let (latency, sum) = latency(stage).unzip();
    line(format!("         min: {:>39.2}", ms(latency.map_or(0.0, |latency| latency.min))));
    line(format!("         avg: {:>39.2}", ms(latency.map_or(0.0, |latency| latency.mean))));
    line(format!("         max: {:>39.2}", ms(latency.map_or(0.0, |latency| latency.max))));
    let name = format!("{}:", percentile_name(plan.percentile));
    line(format!(
        "        {name:>17} {:>27.2}",
        ms(stage.session_loop.percentile_us.unwrap_or(0.0))
    ));
    line(format!("         sum: {:>39.2}\n", sum.unwrap_or(0.0) * 1e3));
    line("Threads fairness:".to_owned());
    let fairness = &stage.session_loop.sessions_fairness;
    line(format!("    events (avg/stddev):           {:.4}/{:.2}", fairness.mean, fairness.stdev));
    let (mean, stdev) =
        stage.session_loop.execution_s.map_or((0.0, 0.0), |each| (each.mean, each.stdev));
    line(format!("    execution time (avg/stddev):   {mean:.4}/{stdev:.2}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{example_oltp, run_text};

    #[test]
    fn the_report_has_the_lines_of_sysbench() {
        let record = example_oltp();
        insta::assert_snapshot!(sysbench_text(&record));
    }

    #[test]
    fn with_a_rate_the_latency_starts_at_the_intended_start() {
        let mut record = example_oltp();
        let stage = &mut record.stages[0];
        let mut response = stage.session_loop.service_us.clone().unwrap();
        (response.max, response.mean) = (862_000.0, 172_000.0);
        stage.session_loop.response_us = Some(response);
        stage.session_loop.percentile_us = Some(861_950.0);
        let text = sysbench_text(&record);
        for figure in ["172.00", "862.00", "861.95", "2064000.00"] {
            assert!(text.contains(figure), "{figure}: {text}");
        }
        let text = run_text(&record, "no", usize::MAX);
        let totals = text.lines().find(|line| line.contains("95th percentile 862 ms")).unwrap();
        assert!(totals.contains("response time ") && totals.contains("max 862 ms"), "{text}");
    }
}
