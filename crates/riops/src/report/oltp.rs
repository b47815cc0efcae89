//! The workload `oltp` in words, with sysbench's figures under sysbench's names, and its report in
//! exactly sysbench's shape.

use std::fmt::Write as _;

use super::format::{count, duration_us, percent, rate};
use super::model::Summary;
use super::terminal::{Block, asides};
use crate::metrics::{LatencySummary, Point};
use crate::plan::{OltpDataset, OltpRun, OltpTest, RunPlan, WorkPlan};
use crate::record::{Record, StageRecord};

/// From here on the time that was lost is worth a line.
const LOST_SHARE: f64 = 0.05;

/// What the sessions did.
pub(super) fn work(run: &OltpRun) -> String {
    let mut parts = Vec::new();
    let mut part = |number: u32, what: &str| {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    };
    let reads = matches!(run.test, OltpTest::ReadWrite | OltpTest::ReadOnly);
    let writes = matches!(run.test, OltpTest::ReadWrite | OltpTest::WriteOnly);
    if reads {
        part(run.point_selects, "point selects");
        if run.range_selects {
            part(run.simple_ranges, "simple");
            part(run.sum_ranges, "sum");
            part(run.order_ranges, "order");
            part(run.distinct_ranges, "distinct ranges");
        }
    }
    if writes {
        part(run.index_updates, "index updates");
        part(run.non_index_updates, "non-index updates");
        part(run.delete_inserts, "delete/inserts");
    }
    match run.test {
        OltpTest::MultiInsert => part(run.num_rows_in_insert, "inserts"),
        OltpTest::MultiValueInsert => part(run.batch_insert_count, "rows in one insert"),
        OltpTest::RandomPoints => part(run.random_points, "values of k"),
        OltpTest::RandomRanges => part(run.number_of_ranges, "ranges of k"),
        OltpTest::SequentialScan
        | OltpTest::PrimarykeyScan
        | OltpTest::IndexScan
        | OltpTest::SumScan
        | OltpTest::Join => part(run.range_size, "rows"),
        _ => {}
    }
    let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let trips = match (run.reads() + run.writes() > 1, run.pipeline, run.skip_trx) {
        (false, ..) => "",
        (_, true, _) => "; all statements of a transaction sent together (--pipeline)",
        (_, _, true) => "; one round trip and one commit a statement",
        _ => "; one round trip a statement",
    };
    format!("{}{list}{trips}", run.test)
}

/// What was prepared.
pub(super) fn dataset(dataset: &OltpDataset) -> String {
    let adopted = if dataset.adopted { ", made by somebody else" } else { "" };
    let key = match (dataset.secondary, dataset.create_secondary) {
        (true, true) => ", indexes on id and k, no primary key",
        (true, false) => ", index on id, no primary key",
        (false, true) => "",
        (false, false) => ", no index k_N",
    };
    let plural = if dataset.tables == 1 { "" } else { "s" };
    format!(
        "{} table{plural} sbtest in schema {} × {} rows{key}{adopted}",
        dataset.tables,
        dataset.schema,
        count(dataset.table_size)
    )
}

/// The figures in sysbench's words.
pub(super) fn totals(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let seconds = stage.seconds.max(f64::MIN_POSITIVE);
    let per_s = |number: u64| format!("{} ({}/s)", count(number), rate(number as f64 / seconds));
    let queries = stage.queries;
    let mut lines = vec![
        (
            "queries performed".to_owned(),
            format!(
                "read {} · write {} · other {} · total {}",
                count(queries.read),
                count(queries.write),
                count(queries.other),
                count(queries.total())
            ),
        ),
        ("transactions".to_owned(), per_s(stage.transactions)),
        ("queries".to_owned(), per_s(queries.total())),
        ("ignored errors".to_owned(), per_s(summary.errors())),
        ("retries".to_owned(), per_s(stage.retries)),
        ("reconnects".to_owned(), per_s(stage.reconnects)),
        ("total time".to_owned(), format!("{seconds:.4} s")),
    ];
    if let Some((latency, sum)) = latency(stage) {
        lines.push((
            "latency".to_owned(),
            format!(
                "min {} · avg {} · max {} · {} {} · sum {sum:.3} s",
                duration_us(latency.min),
                duration_us(latency.mean),
                duration_us(latency.max),
                percentile_name(summary.record.plan.percentile),
                duration_us(stage.percentile_us.unwrap_or(0.0))
            ),
        ));
    }
    let fairness = &stage.sessions_fairness;
    lines.push((
        "events of a session".to_owned(),
        format!("avg {:.1} · stddev {:.2}", fairness.mean, fairness.stdev),
    ));
    if let Some(execution) = &stage.execution_s {
        lines.push((
            "execution time".to_owned(),
            format!("avg {:.4} s · stddev {:.2}", execution.mean, execution.stdev),
        ));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (position, (name, value)) in lines.iter().enumerate() {
        let label = if position == 0 { "result" } else { "" };
        block.line(label, &format!("{name:<width$}  {value}"));
    }
}

/// What sysbench calls latency, and its sum in seconds: with a rate from the intended start, since
/// sysbench counts the time in its queue too.
fn latency(stage: &StageRecord) -> Option<(&LatencySummary, f64)> {
    match (&stage.response_us, &stage.service_us) {
        (Some(response), _) => Some((response, response.mean * response.count as f64 / 1e6)),
        (None, Some(service)) => Some((service, stage.database_s.unwrap_or(0.0))),
        (None, None) => None,
    }
}

/// `95th percentile`.
fn percentile_name(percentile: f64) -> String {
    format!("{percentile}th percentile")
}

/// What errors and locks have cost: only where there is something to say.
pub(super) fn contention(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let session_s = stage.seconds * f64::from(stage.sessions);
    if let Some(attempt) = &stage.attempt_us {
        block.line(
            "",
            &format!(
                "an attempt alone: p50 {} · p99 {} · max {} ({} transactions sent again; the latency above has all attempts and pauses)",
                duration_us(attempt.p50),
                duration_us(attempt.p99),
                duration_us(attempt.max),
                count(stage.retries)
            ),
        );
    }
    let lost_s: f64 = stage.errors.iter().map(|error| error.attempts_s).sum();
    if lost_s >= LOST_SHARE * session_s && session_s > 0.0 {
        block.line(
            "",
            &format!(
                "{} of the sessions' time went into attempts that failed ({lost_s:.1} of {session_s:.1} s)",
                percent(lost_s / session_s)
            ),
        );
    }
    if let Some((share, waits)) = summary.lock_share().zip(stage.lock_waits)
        && share >= LOST_SHARE
    {
        block.line(
            "locks",
            &format!(
                "{} of the sessions' time was waiting for locks of other sessions ({} looks at pg_stat_activity)",
                percent(share),
                count(waits.samples)
            ),
        );
    }
    let deadlocks: u64 = stage
        .errors
        .iter()
        .filter(|error| error.sqlstate == "40P01")
        .map(|error| error.count)
        .sum();
    if deadlocks > 0 {
        let timeout = summary.record.target.settings.get("deadlock_timeout");
        let timeout = timeout.map_or_else(String::new, |timeout| {
            format!(", and each took the server's deadlock_timeout ({timeout}) to be found")
        });
        block.line(
            "locks",
            &format!(
                "{} deadlocks ({}/s){timeout}: transactions that update rows in random order wait for each other in a circle",
                count(deadlocks),
                rate(deadlocks as f64 / stage.seconds.max(f64::MIN_POSITIVE))
            ),
        );
    }
}

/// One interval in sysbench's words, and riops's tail.
#[must_use]
pub fn oltp_interval_line(point: &Point, plan: &RunPlan) -> String {
    let line = sysbench_interval(point, plan);
    let asides = asides(&[
        (point.retries, "retries"),
        (point.late, "late"),
        (point.skipped, "skipped"),
        (point.backlog.unwrap_or(0), "waiting"),
    ]);
    format!("{line}{asides}")
}

fn sysbench_interval(point: &Point, plan: &RunPlan) -> String {
    let per_s = |number: u64| number as f64 / point.seconds;
    let queries = point.queries;
    format!(
        "[ {}s ] thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{}%): {:.2} err/s: {:.2} reconn/s: {:.2}",
        seconds(point.t_s, plan),
        plan.sessions,
        per_s(point.transactions),
        per_s(queries.total()),
        per_s(queries.read),
        per_s(queries.write),
        per_s(queries.other),
        plan.percentile,
        point.percentile_us.unwrap_or(0.0) / 1e3,
        per_s(point.errors),
        per_s(point.reconnects)
    )
}

/// Whole seconds, as sysbench has them; tenths where intervals are shorter.
fn seconds(t_s: f64, plan: &RunPlan) -> String {
    if plan.interval_s.fract() == 0.0 { format!("{t_s:.0}") } else { format!("{t_s:.1}") }
}

/// The report of a run of `oltp` in the shape of sysbench 1.0, for scripts that read it.
#[must_use]
pub fn sysbench_text(record: &Record) -> String {
    let mut text = String::new();
    let plan = &record.plan;
    let mut line = |line: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    };
    let together = match &plan.work {
        WorkPlan::Oltp(run) if run.pipeline => {
            "; NOT sysbench's round trips: all statements of a transaction sent together (--pipeline)"
        }
        _ => "",
    };
    let version = &record.client.riops_version;
    line(format!("riops {version} (in the shape of sysbench 1.0{together})\n"));
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
    for point in &stage.series {
        line(sysbench_interval(point, plan));
    }
    let queries = stage.queries;
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
        ("reconnects:", stage.reconnects),
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
    line(format!("        {name:>17} {:>27.2}", ms(stage.percentile_us.unwrap_or(0.0))));
    line(format!("         sum: {:>39.2}\n", sum.unwrap_or(0.0) * 1e3));
    line("Threads fairness:".to_owned());
    let fairness = &stage.sessions_fairness;
    line(format!("    events (avg/stddev):           {:.4}/{:.2}", fairness.mean, fairness.stdev));
    let (mean, stdev) = stage.execution_s.map_or((0.0, 0.0), |each| (each.mean, each.stdev));
    line(format!("    execution time (avg/stddev):   {mean:.4}/{stdev:.2}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WorkPlan;
    use crate::report::{example_oltp, run_text};

    #[test]
    fn the_closing_text_of_transactions_on_several_nodes() {
        insta::assert_snapshot!(run_text(&example_oltp(), "no (--no-store)"));
    }

    #[test]
    fn sysbench_s_report_and_interval_line() {
        let record = example_oltp();
        insta::assert_snapshot!(sysbench_text(&record));
        let point = &record.stages[0].series[0];
        assert_eq!(
            oltp_interval_line(point, &record.plan),
            "[ 1s ] thds: 2 tps: 1200.00 qps: 24000.00 (r/w/o: 16800.00/4800.00/2400.00) lat (ms,95%): 2.30 err/s: 2.00 reconn/s: 0.00 · 1 retries"
        );
    }

    #[test]
    fn with_a_rate_sysbench_s_latency_is_from_the_intended_start() {
        let mut record = example_oltp();
        let stage = &mut record.stages[0];
        let mut response = stage.service_us.clone().unwrap();
        (response.max, response.mean) = (862_000.0, 172_000.0);
        stage.response_us = Some(response);
        stage.percentile_us = Some(861_950.0);
        let text = sysbench_text(&record);
        for figure in ["172.00", "862.00", "861.95", "2064000.00"] {
            assert!(text.contains(figure), "{figure}: {text}");
        }
        assert!(run_text(&record, "no").contains("max 862 ms · 95th percentile 862 ms"));
    }

    #[test]
    fn one_node_that_does_all_the_work_is_warned_of() {
        let mut record = example_oltp();
        for (node, transactions) in record.stages[0].nodes.iter_mut().zip([12_000, 0, 0]) {
            node.transactions = transactions;
            node.share = transactions as f64 / 12_000.0;
        }
        let text = run_text(&record, "no");
        assert!(text.contains("WARNING: 127.0.0.1:5433 does 100 % of the work"), "{text}");
        // Not where the others are down.
        for node in &mut record.stages[0].nodes[1..] {
            node.down = true;
        }
        let text = run_text(&record, "no");
        assert!(!text.contains("WARNING") && text.contains("DOWN at the end"), "{text}");
    }

    #[test]
    fn every_test_is_told_in_words() {
        let mut lines = String::new();
        for name in [
            "read-write",
            "read-only",
            "write-only",
            "point-select",
            "insert",
            "multi-insert",
            "multi-value-insert",
            "random-points",
            "random-ranges",
            "join",
        ] {
            let run = OltpRun { test: name.parse().unwrap(), ..OltpRun::default() };
            let _ = writeln!(lines, "{}", work(&run));
        }
        let skip = OltpRun { skip_trx: true, range_selects: false, ..OltpRun::default() };
        let pipeline = OltpRun { pipeline: true, ..OltpRun::default() };
        let _ = writeln!(lines, "{}\n{}", work(&skip), work(&pipeline));
        insta::assert_snapshot!(lines);
        let WorkPlan::Oltp(_) = example_oltp().plan.work else { panic!("the example is oltp") };
    }
}
