//! Reporting of `oltp`, with sysbench's figures under sysbench's names.

use crate::document::{Document, Hint};
use crate::latency::latency_named;
use crate::sysbench::{latency, percentile_name};
use crate::words::common::keys_text;
use crate::words::next::Commands;
use crate::words::{DatasetWords, Words};
use riops_model::figure::Summary;
use riops_model::plan::{OltpDataset, OltpRun, OltpTest};
use riops_model::record::{Fairness, Record};
use riops_model::units::format::{bounded, count, duration_us, number_of, percent, rate};

/// Lost time is reported from this share of the session time on.
const LOST_SHARE: f64 = 0.05;

impl Words for OltpRun {
    fn work(&self) -> String {
        let keys = match self.test {
            OltpTest::BulkInsert | OltpTest::SelectOne => String::new(),
            _ => keys_text(self.distribution),
        };
        statements(self) + &keys
    }

    fn access_path(&self, expected: &str, record: &Record) -> String {
        let mut text = expected.to_owned();
        let used = record.used_dataset();
        let tables = used.as_ref().and_then(|used| used.get::<OltpDataset>());
        if tables.is_some_and(|dataset| dataset.tables > 1) {
            for name in ["sbtest", "k_", "xid_"] {
                text = without_number(&text, name);
            }
        }
        text
    }

    fn measure_name(&self) -> &'static str {
        "TPS"
    }

    fn contention(&self, document: &mut Document, summary: &Summary<'_>) {
        attempts(document, summary);
        locks(document, summary);
    }

    fn totals(&self, document: &mut Document, summary: &Summary<'_>) {
        let (stage, session_loop) = (summary.stage, &summary.stage.session_loop);
        let seconds = stage.seconds.max(f64::MIN_POSITIVE);
        let per_s = |value: u64| format!("{} ({}/s)", count(value), rate(value as f64 / seconds));
        let total = session_loop.queries.total();
        let queries = [
            session_loop.queries.read,
            session_loop.queries.write,
            session_loop.queries.other,
            total,
        ];
        let [read, write, other, all] = queries.map(count);
        let performed = format!("read {read} · write {write} · other {other} · total {all}");
        let mut lines = vec![
            ("queries performed", performed),
            ("transactions", per_s(stage.transactions)),
            ("queries", per_s(total)),
            ("ignored errors", per_s(session_loop.error_count())),
            ("retries", per_s(session_loop.retries)),
            ("reconnects", per_s(session_loop.reconnects)),
            ("total time", format!("{seconds:.4} s")),
        ];
        if let Some((latency, sum)) = latency(stage) {
            let percent = summary.record.plan.percentile;
            let percentile = session_loop.percentile_us.map_or_else(String::new, |us| {
                let value = bounded(duration_us(us), latency.is_bound(Some(percent)));
                format!(" · {} {value}", percentile_name(percent))
            });
            let [mean, max] =
                ["mean", "max"].map(|key| latency_named(latency, key).unwrap_or_default());
            let min = duration_us(latency.min);
            lines.push((
                if session_loop.response_us.is_some() { "response time" } else { "latency" },
                format!("min {min} · avg {mean} · max {max}{percentile} · sum {sum:.3} s"),
            ));
        }
        let Fairness { mean, stdev, .. } = session_loop.sessions_fairness;
        lines.push(("events per session", format!("avg {mean:.1} · stddev {stdev:.2}")));
        lines.extend(session_loop.execution_s.as_ref().map(|execution| {
            let text = format!("avg {:.4} s · stddev {:.2}", execution.mean, execution.stdev);
            ("execution time", text)
        }));
        document.pairs("totals", lines);
    }

    fn checked(&self, record: &Record) -> &'static str {
        if self.test == OltpTest::Delete {
            "every statement returned all its rows, and all expected rows are present"
        } else if record.checks.iter().any(|check| check.name.starts_with("sum of k")) {
            "every statement returned all its rows, and the tables contain all rows and the sum of k that were acknowledged"
        } else {
            "every statement returned all its rows, and the tables contain all rows"
        }
    }

    fn replies(&self) -> &'static str {
        "every statement returned all its rows"
    }

    fn variants(&self, commands: &Commands<'_>) -> Vec<Hint> {
        if self.pipeline || !self.is_explicit() {
            return Vec::new();
        }
        vec![commands.same("--pipeline", "send all statements of a transaction together")]
    }
}

impl DatasetWords for OltpDataset {
    fn text(&self) -> String {
        let adopted = if self.adopted { ", not created by riops" } else { "" };
        let key = match (self.secondary, self.create_secondary) {
            (true, true) => ", secondary indexes on id and k, no primary key",
            (true, false) => ", secondary index on id, no primary key",
            (false, true) => "",
            (false, false) => ", no index on k",
        };
        let (last, suffix) = match self.tables {
            1 => (String::new(), ""),
            tables => (format!(" to sbtest{tables}"), " each"),
        };
        let contents = if self.bulk_insert {
            "of two columns, for the test bulk-insert".to_owned()
        } else {
            format!("{} rows{suffix}{key}", count(self.table_size))
        };
        format!("{}.sbtest1{last}, {contents}{adopted}", self.schema)
    }
}

/// The test and its statements.
fn statements(run: &OltpRun) -> String {
    let mut parts = Vec::new();
    let mut part = |value: u32, noun: &str| {
        if value > 0 {
            parts.push(number_of(value.into(), noun));
        }
    };
    let reads = matches!(run.test, OltpTest::ReadWrite | OltpTest::ReadOnly);
    let writes = matches!(run.test, OltpTest::ReadWrite | OltpTest::WriteOnly);
    if reads {
        part(run.point_selects, "point select");
        if run.range_selects {
            part(run.simple_ranges, "simple range");
            part(run.sum_ranges, "SUM range");
            part(run.order_ranges, "ORDER BY range");
            part(run.distinct_ranges, "DISTINCT range");
        }
    }
    if writes {
        part(run.index_updates, "index update");
        part(run.non_index_updates, "non-index update");
        part(run.delete_inserts, "delete/insert");
    }
    match run.test {
        OltpTest::MultiInsert => part(run.num_rows_in_insert, "INSERT"),
        OltpTest::MultiValueInsert | OltpTest::BulkInsert => part(run.batch_insert_count, "row"),
        OltpTest::SimpleRanges => part(run.simple_ranges, "simple range"),
        OltpTest::RandomPoints => part(run.random_points, "point"),
        OltpTest::RandomRanges => part(run.number_of_ranges, "range"),
        OltpTest::SequentialScan
        | OltpTest::PrimarykeyScan
        | OltpTest::IndexScan
        | OltpTest::SumScan
        | OltpTest::Join => part(run.range_size, "row"),
        _ => {}
    }
    let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let trips = match (run.reads() + run.writes() > 1, run.pipeline, run.skip_trx) {
        (false, ..) => "",
        (_, true, _) => "; all statements of a transaction sent together (--pipeline)",
        (_, _, true) => "; one round trip and one commit per statement",
        _ => "; one round trip per statement",
    };
    format!("{}{list}{trips}", run.test)
}

/// Replaces the digits after each occurrence of `name` by `N`.
fn without_number(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let placeholder = if rest.len() < part.len() { "N" } else { "" };
        text + name + placeholder + rest
    })
}

/// The cost of failed attempts, if there were any.
fn attempts(document: &mut Document, summary: &Summary<'_>) {
    let (stage, session_loop) = (summary.stage, &summary.stage.session_loop);
    let session_s = stage.seconds * f64::from(stage.sessions);
    if let Some(attempt) = &session_loop.attempt_us {
        let [p50, p99, max] = [attempt.p50, attempt.p99, attempt.max].map(duration_us);
        let retries = number_of(session_loop.retries, "retry");
        let text = format!(
            "p50 {p50} · p99 {p99} · max {max} each; {retries}; the latency above includes all attempts and backoff"
        );
        document.line("attempts", text);
    }
    let lost_s: f64 = session_loop.errors.iter().map(|error| error.attempts_s).sum();
    if lost_s >= LOST_SHARE * session_s && session_s > 0.0 {
        let share = percent(lost_s / session_s);
        let text = format!(
            "{share} of the session time was spent on failed attempts ({lost_s:.1} of {session_s:.1} s)"
        );
        document.line("", text);
    }
}

/// The cost of locks.
fn locks(document: &mut Document, summary: &Summary<'_>) {
    let (stage, session_loop) = (summary.stage, &summary.stage.session_loop);
    if let Some((share, waits)) = stage.lock_share().zip(session_loop.lock_waits)
        && share >= LOST_SHARE
    {
        let (share, samples) = (percent(share), number_of(waits.samples, "sample"));
        let text = format!(
            "{share} of the session time was spent waiting for locks ({samples} of pg_stat_activity)"
        );
        document.line("locks", text);
    }
    let deadlocks = session_loop.errors.iter().filter(|error| error.sqlstate == "40P01");
    let deadlocks: u64 = deadlocks.map(|error| error.count).sum();
    if deadlocks > 0 {
        let timeout = summary.record.target.settings.get("deadlock_timeout");
        let timeout = timeout.map_or_else(String::new, |timeout| {
            format!(", each detected after the server's deadlock_timeout ({timeout})")
        });
        let per_s = rate(deadlocks as f64 / stage.seconds.max(f64::MIN_POSITIVE));
        let counted = number_of(deadlocks, "deadlock");
        let text = format!(
            "{counted} ({per_s}/s){timeout}: transactions that update rows in random order block each other"
        );
        document.line("deadlocks", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    use crate::{example_oltp, run_text};

    #[test]
    fn warns_if_one_node_does_all_the_work() {
        let mut record = example_oltp();
        for (node, transactions) in
            record.stages[0].session_loop.nodes.iter_mut().zip([12_000, 0, 0])
        {
            node.transactions = transactions;
            node.share = transactions as f64 / 12_000.0;
        }
        let text = run_text(&record, "no", usize::MAX);
        assert!(
            text.contains("WARNING: 127.0.0.1:5433 executed 100% of the transactions"),
            "{text}"
        );
        // No warning if the other nodes are down.
        for node in &mut record.stages[0].session_loop.nodes[1..] {
            node.down = true;
        }
        let text = run_text(&record, "no", usize::MAX);
        assert!(!text.contains("WARNING") && text.contains("DOWN at the end"), "{text}");
    }

    #[test]
    fn every_test_is_described() {
        let mut lines = String::new();
        for name in [
            "read-write",
            "read-only",
            "write-only",
            "point-select",
            "insert",
            "multi-insert",
            "multi-value-insert",
            "bulk-insert",
            "random-points",
            "random-ranges",
            "join",
        ] {
            let run = OltpRun { test: name.parse().unwrap(), ..OltpRun::default() };
            let _ = writeln!(lines, "{}", run.work());
        }
        let skip = OltpRun { skip_trx: true, range_selects: false, ..OltpRun::default() };
        let pipeline = OltpRun { pipeline: true, ..OltpRun::default() };
        let _ = writeln!(lines, "{}\n{}", skip.work(), pipeline.work());
        insta::assert_snapshot!(lines);
    }
}
