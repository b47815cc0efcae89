//! Results as they are found: cut out, quoted, several in a file, of old versions. Wrong results are worse than none.

use std::fmt::Write as _;
use std::io::Cursor;

use super::{Format, ImportError, Imports, Input, Settings, read};
use crate::plan::{ImportedRun, Schedule, Stop};
use crate::record::{Record, Status};

pub(super) fn try_texts(texts: &[(&str, &str)]) -> Result<Imports, ImportError> {
    let inputs = texts.iter().map(|(name, text)| {
        Input::new((*name).to_owned(), None, Box::new(Cursor::new(text.as_bytes().to_vec())))
    });
    let now = "2026-11-23T08:00:00Z".parse().unwrap();
    read(inputs.collect(), &Settings::default(), now)
}

pub(super) fn texts(texts: &[(&str, &str)]) -> Imports {
    try_texts(texts).unwrap()
}

pub(super) fn runs(text: &str) -> Vec<Record> {
    texts(&[("given", text)]).records
}

/// Sessions, transactions and rate of each run, without decimals.
pub(super) fn rates(records: &[Record]) -> Vec<(u32, u64, u64)> {
    let rate = |record: &Record| {
        let stage = &record.stages[0];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let per_s = stage.throughput.transactions_per_s.round() as u64;
        (stage.sessions, stage.transactions, per_s)
    };
    records.iter().map(rate).collect()
}

pub(super) fn series(record: &Record) -> Vec<u64> {
    record.stages[0].session_loop.series.iter().map(|point| point.transactions).collect()
}

pub(super) fn run(record: &Record) -> &ImportedRun {
    record.plan.work.get().unwrap()
}

/// The part of a report that follows the header, of version 13.
pub(super) fn results(clients: u32, processed: u64, tps: u64) -> String {
    format!(
        "number of clients: {clients}\nnumber of threads: 1\nduration: 10 s\nnumber of transactions actually processed: {processed}\nlatency average = 1.5 ms\ntps = {tps}.0 (including connections establishing)\ntps = {tps}.0 (excluding connections establishing)\n"
    )
}

pub(super) const HEADER: &str =
    "transaction type: <builtin: select only>\nscaling factor: 7\nquery mode: prepared\n";

#[test]
fn several_results_of_pgbench_under_one_header_are_several_runs() {
    let text = format!("{HEADER}{}{}", results(1, 1000, 100), results(4, 3000, 300));
    let records = runs(&text);
    assert_eq!(rates(&records), [(1, 1000, 100), (4, 3000, 300)]);
    let last = run(&records[1]);
    assert_eq!(last.test.as_deref(), Some("<builtin: select only>"));
    assert_eq!(last.facts["scaling factor"], "7");
    assert_ne!(records[0].id, records[1].id);
    // Only the results were repeated.
    let cut = "number of transactions actually processed: 50\ntps = 5.0 (without initial connection time)\n";
    let records = runs(&format!("{HEADER}number of clients: 2\n{cut}{}", cut.replace('5', "6")));
    assert_eq!(rates(&records), [(2, 50, 5), (2, 60, 6)]);
    // A result without its counts is not the run before.
    let text =
        format!("{HEADER}{}tps = 9.0 (including connections establishing)\n", results(1, 1, 1));
    let error = try_texts(&[("given", &text)]).unwrap_err().to_string();
    assert!(
        error.starts_with("given, line 11: ") && error.contains("actually processed"),
        "{error}"
    );
}

#[test]
fn progress_lines_without_a_banner_belong_to_the_next_report() {
    let progress = |tps: u64| {
        format!(
            "starting vacuum...end.\nprogress: 5.0 s, {tps}.0 tps, lat 1 ms stddev 1\nprogress: 10.0 s, {tps}.0 tps, lat 1 ms stddev 1\n"
        )
    };
    // The banner too follows them, if standard output was written at the end.
    let banner = "pgbench (18.1, server 15.2)\n";
    let records = runs(&format!("{}{banner}{HEADER}{}", progress(100), results(1, 1000, 100)));
    assert_eq!((rates(&records), series(&records[0])), (vec![(1, 1000, 100)], vec![500; 2]));
    assert_eq!(records[0].target.server_version, "15.2");
    let interrupted = "progress: 5.0 s, 7.0 tps, lat 1 ms stddev 1\n";
    let text = format!("{interrupted}{banner}{}{HEADER}{}", progress(300), results(4, 3000, 300));
    let imports = texts(&[("given", &text)]);
    assert_eq!(series(&imports.records[0]), [1500; 2]);
    assert_eq!(imports.records[0].target.server_version, "15.2");
    let expected = "given, line 1: a run of pgbench without a report was not imported";
    assert_eq!(imports.notices, [expected]);
    assert!(!serde_json::to_string(&imports.records).unwrap().contains("\"late\""));
    let first = format!("{}{HEADER}{}", progress(100), results(1, 1000, 100));
    let second = format!("{}{HEADER}{}", progress(300), results(4, 3000, 300));
    let records = runs(&format!("{first}{second}"));
    assert_eq!(rates(&records), [(1, 1000, 100), (4, 3000, 300)]);
    assert_eq!((series(&records[0]), series(&records[1])), (vec![500; 2], vec![1500; 2]));
    assert_eq!(records[1].stages[0].session_loop.series[1].t_s, 10.0);
    let imports = texts(&[("given", &format!("{first}{interrupted}{second}"))]);
    assert_eq!(series(&imports.records[1]), [1500; 2]);
    let expected = "given, line 14: a run of pgbench without a report was not imported";
    assert_eq!(imports.notices, [expected]);
}

#[test]
fn ignores_lines_of_other_programs_that_resemble_lines_of_a_report() {
    let report = format!("{HEADER}{}", results(1, 1000, 100));
    let log = "2024-05-01 10:00:00.123 UTC [77] LOG:  duration: 12.345 ms  statement: SELECT 1\n";
    for (position, _) in report.match_indices('\n') {
        let (before, after) = report.split_at(position + 1);
        let records = runs(&format!("{before}{log}{after}"));
        assert_eq!(rates(&records), [(1, 1000, 100)], "{before}");
        assert_eq!(records[0].plan.stop, Stop::DurationS(10.0), "{before}");
    }
    let sysbench = include_str!("../../tests/import/sysbench.txt");
    for line in ["duration: 60s", "tps = n/a", "query mode: default", "number of clients: many"] {
        assert_eq!(runs(&format!("{line}\n{sysbench}")).len(), 1, "{line}");
        assert_eq!(rates(&runs(&format!("{line}\n{report}"))), [(1, 1000, 100)], "{line}");
    }
}

#[test]
fn a_rate_that_was_cut_off_is_no_rate() {
    let report = format!("{HEADER}{}", results(1, 1000, 100));
    let cut = report.split_once("tps = 100").unwrap().0;
    for impossible in ["nan", "inf", "-5.0"] {
        let error =
            try_texts(&[("given", &report.replace("tps = 100.0", &format!("tps = {impossible}")))]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("contradicts 1000 transactions"), "{error}");
    }
    for (rate, is_read) in [("tps = 1", false), ("tps = 10", false), ("tps = 100.0", true)] {
        let result = try_texts(&[("given", &format!("{cut}{rate}"))]);
        assert_eq!(result.is_ok(), is_read, "{rate}");
    }
}

#[test]
fn errors_that_were_retried_are_not_counted_by_sqlstate() {
    let report = format!("{HEADER}{}", results(1, 1000, 100));
    let failures = "number of failed transactions: 406 (28.9%)\nnumber of serialization failures: 406 (28.9%)\n";
    let text =
        |tail: &str| report.replace("latency average", &format!("{failures}{tail}latency average"));
    let [with, without] =
        ["total number of retries: 4978\n", "total number of retries: 0\n"].map(|tail| {
            let record = runs(&text(tail)).remove(0);
            assert_eq!(run(&record).facts["number of serialization failures"], "406 (28.9%)");
            assert_eq!(record.stages[0].session_loop.outcomes.unwrap().failed, 406);
            record.stages[0].session_loop.clone()
        });
    assert_eq!((with.retries, with.errors.len()), (4978, 0));
    assert_eq!((without.errors[0].sqlstate.as_str(), without.errors[0].count), ("40001", 406));
}

#[test]
fn a_pgbench_that_failed_leaves_nothing_to_the_next_run() {
    let failed = "pgbench (14.1)\npgbench: error: connection to server failed\n";
    let text = format!("{failed}pgbench (15.2, server 16.1)\n{HEADER}{}", results(1, 1000, 100));
    let imports = texts(&[("given", &text)]);
    assert_eq!(imports.notices.len(), 1);
    assert_eq!(imports.records[0].target.server_version, "16.1");
    assert_eq!(imports.records[0].status, Status::Done);
    let version = format!("pgbench (PostgreSQL) 13.4\n{HEADER}{}", results(1, 1000, 100));
    let imports = texts(&[("given", &version)]);
    assert_eq!(run(&imports.records[0]).version.as_deref(), Some("13.4"));
    assert!(imports.notices.is_empty() && imports.records[0].target.server_version.is_empty());
}

#[test]
fn the_time_of_connections_for_each_transaction_is_a_part_of_the_run() {
    let excluding = "tps = 300.0 (excluding";
    let text = format!("{HEADER}{}", results(4, 3000, 300));
    let records = runs(&text.replace(excluding, "tps = 90000.0 (excluding"));
    assert_eq!(rates(&records), [(4, 3000, 300)]);
    assert_eq!(run(&records[0]).facts["tps"], "90000.0 (excluding connections establishing)");
    let near = text.replace(excluding, "tps = 310.0 (excluding");
    assert_eq!(rates(&runs(&near)), [(4, 3000, 310)]);
    // The command line says that the run connected for each transaction.
    for command in ["$ pgbench -c 4 -C -T 10 bench", "# /usr/bin/pgbench --connect -T 10"] {
        let both = format!("{command}\n{near}$ pgbench -c 4 -T 10\n{near}");
        assert_eq!(rates(&runs(&both)), [(4, 3000, 300), (4, 3000, 310)], "{command}");
    }
}

#[test]
fn an_aborted_run_fails_and_its_notice_and_verdict_give_the_reason() {
    let text = format!(
        "{HEADER}{}pgbench: error: Run was aborted; the above results are incomplete.\n",
        results(1, 1000, 100)
    );
    let imports = texts(&[("given", &text)]);
    assert_eq!(imports.notices, ["given, line 1: pgbench: Run was aborted"]);
    let record = &imports.records[0];
    assert_eq!(record.status, Status::Failed);
    assert_eq!(record.verdict.reasons[0], "pgbench: Run was aborted");
}

#[test]
fn lines_that_were_cut_out_leave_a_gap_in_the_series() {
    let progress =
        "progress: 6.0 s, 10.0 tps\nprogress: 12.0 s, 10.0 tps\n...\nprogress: 594.0 s, 20.0 tps\n";
    let imports = texts(&[("given", &format!("{progress}{HEADER}{}", results(1, 1000, 100)))]);
    assert_eq!(series(&imports.records[0]), [60, 60, 120]);
    let gaps = "lines of intervals are missing: the series has gaps";
    assert_eq!(imports.notices, [format!("given, line 1: {gaps}")]);
    let line = |at: u32| {
        format!(
            "[{at:4}s] threads: 32, tps: 10.00, reads/s: 138.00, writes/s: 2.00, response time: 1.25ms (95%)\n"
        )
    };
    let text = format!("{}[  20s]\n{}{}", line(10), line(30), sysbench(300, 30));
    let point = |record: &Record| record.stages[0].session_loop.series[1].clone();
    let after_gap = point(&runs(&text)[0]);
    assert_eq!((after_gap.seconds, after_gap.transactions), (20.0, 200));
    // `reads` is not the end of `threads`.
    assert_eq!((after_gap.queries.read, after_gap.queries.write), (2760, 40));
}

#[test]
fn quoted_and_indented_reports_are_read() {
    let report = format!("{HEADER}{}", results(4, 3000, 300));
    let with = |mark: &str| {
        report.lines().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{mark}{line}  ");
            text
        })
    };
    assert_eq!(rates(&runs(&report.replace('\n', "<br>\n"))), [(4, 3000, 300)]);
    assert_eq!(rates(&runs(&results(4, 3000, 300))), [(4, 3000, 300)]);
    for mark in ["> ", ">> ", "    ", "- ", "\t"] {
        assert_eq!(
            rates(&runs(&format!("# Results\n\n{}", with(mark)))),
            [(4, 3000, 300)],
            "{mark}"
        );
    }
    // Lists within the report of several scripts are not such marks.
    let scripts = "SQL script 1: a.sql\n - weight: 1 (targets 50.0% of total)\n - 2000 transactions (66.7% of total, tps = 200.0)\n - latency average = 0.9 ms\n";
    let records = runs(&format!("{report}{scripts}"));
    let session_loop = &records[0].stages[0].session_loop;
    assert_eq!((records.len(), session_loop.operations[0].transactions), (1, 2000));
    assert_eq!(session_loop.reported_latency.as_ref().unwrap().mean_us, Some(1500.0));
}

#[test]
fn percentiles_of_newer_pgbench_are_read() {
    let lines = "latency percentile 50 = 1.250 ms\nlatency percentile 99.9 = 7.500 ms\ntps";
    let report = format!("{HEADER}{}", results(4, 3000, 300).replacen("tps", lines, 1));
    let records = runs(&report);
    let reported = records[0].stages[0].session_loop.reported_latency.as_ref().unwrap();
    assert_eq!(
        [50.0, 99.9].map(|percent| reported.percentile_us(percent)),
        [Some(1_250.0), Some(7_500.0)]
    );
}

#[test]
fn bytes_of_other_encodings_are_replaced_with_a_notice() {
    let mut bytes = b"psql: Verbindungsfehler f\xfcr x\n".to_vec();
    bytes.extend(format!("{HEADER}{}", results(4, 3000, 300)).bytes());
    let input = Input::new("given".to_owned(), None, Box::new(Cursor::new(bytes)));
    let now = "2026-11-23T08:00:00Z".parse().unwrap();
    let imports = read(vec![input], &Settings::default(), now).unwrap();
    assert_eq!(rates(&imports.records), [(4, 3000, 300)]);
    assert_eq!(imports.notices, ["given: bytes that are not UTF-8 were replaced"]);
}

/// A log of intervals of a second, with these counts.
fn aggregate(start_s: u64, counts: &[u64]) -> String {
    let lines = (start_s..).zip(counts);
    lines.fold(String::new(), |mut text, (second, count)| {
        let _ = writeln!(text, "{second} {count} {} 1000000 500 1500", count * 1000);
        text
    })
}

#[test]
fn partial_intervals_of_an_aggregate_log_do_not_change_the_rate() {
    let text = aggregate(1_795_414_455, &[80, 203, 197, 200, 200, 20]);
    let imports = texts(&[("log.1", &text)]);
    assert_eq!(rates(&imports.records), [(0, 900, 200)]);
    let stage = &imports.records[0].stages[0];
    assert_eq!((stage.seconds, series(&imports.records[0]).len()), (4.5, 6));
    let facts = &run(&imports.records[0]).facts;
    assert_eq!(facts["first interval"], "0.400 s (estimated from the rate)");
    assert_eq!(facts["last interval"], "0.100 s (estimated from the rate)");
    // The first interval is at most a second shorter; a smaller last count may be chance.
    let minutes = "1795414440 3000 1 1 1 1\n1795414500 12000 1 1 1 1\n1795414560 12000 1 1 1 1\n1795414620 11900 1 1 1 1\n";
    assert_eq!(runs(minutes)[0].stages[0].seconds, 239.0);
}

#[test]
fn threads_that_start_or_end_in_other_seconds_are_added_up() {
    let first = aggregate(1_795_414_455, &[1, 100, 100, 100, 100]);
    let second = aggregate(1_795_414_456, &[98, 100, 100]);
    let imports = texts(&[("log.1", &first), ("log.1.1", &second)]);
    let stage = &imports.records[0].stages[0];
    assert_eq!((stage.transactions, stage.throughput.transactions_per_s.round()), (599, 200.0));
    assert!(imports.notices[0].contains("100 transactions at the end"), "{:?}", imports.notices);
    // Intervals of 10 s that begin in two seconds are the same ones.
    let aggregate_log = |start_s: u64| {
        (0..4).fold(String::new(), |mut text, at| {
            let _ = writeln!(text, "{} 1000 1 1 1 1", start_s + 10 * at);
            text
        })
    };
    let both = [("log.2", aggregate_log(1_795_414_449)), ("log.2.1", aggregate_log(1_795_414_450))];
    let imports = texts(&[("log.2", &both[0].1), ("log.2.1", &both[1].1)]);
    assert_eq!((imports.records.len(), series(&imports.records[0])), (1, vec![2000; 4]));
    let far = texts_of_two_runs(&aggregate_log(1_795_414_449), &aggregate_log(1_795_414_454));
    assert!(far.contains("different lengths"), "{far}");
}

fn texts_of_two_runs(one: &str, other: &str) -> String {
    try_texts(&[("log.3", one), ("log.3.1", other)]).unwrap_err().to_string()
}

#[test]
fn the_threads_of_a_log_whose_prefix_ends_with_a_number_are_one_run() {
    let log = aggregate(1_795_414_455, &[80, 200, 200]);
    let files = ["run.1.70", "run.1.70.1", "run.2.71", "run.2.71.1"];
    let imports = texts(&files.map(|name| (name, log.as_str())));
    assert_eq!(imports.records.len(), 2);
    assert!(imports.records.iter().all(|record| record.stages[0].transactions == 960));
}

#[test]
fn skipped_transactions_are_not_counted_in_logs_before_version_15() {
    let line = |second: u64| format!("{second} 250 200000 1 500 1500 1 1 1 1 50\n");
    let text: String = (1_795_414_455..1_795_414_459).map(line).collect();
    let record = &runs(&text)[0];
    let session_loop = &record.stages[0].session_loop;
    assert_eq!((record.stages[0].transactions, session_loop.series[0].skipped), (800, 50));
    assert_eq!(session_loop.reported_latency.as_ref().unwrap().mean_us, Some(1000.0));
}

pub(super) const SYSBENCH: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\n";

pub(super) fn sysbench(transactions: u64, seconds: u64) -> String {
    format!(
        "SQL statistics:\n    queries performed:\n        read: {}\n        write: 0\n        other: 0\n    transactions: {transactions} (1.00 per sec.)\n    ignored errors: 2 (0.00 per sec.)\n\nGeneral statistics:\n    total time: {seconds}.0s\n    total number of events: {transactions}\n\nLatency (ms):\n         min: 0.{seconds}\n         avg: 1.00\n         max: {seconds}.5\n         95th percentile: 2.00\n         sum: {transactions}.00\n\nThreads fairness:\n    events (avg/stddev): {}.0000/1.50\n    execution time (avg/stddev): 1.0000/0.00\n\n",
        transactions * 2,
        transactions / 2
    )
}

#[test]
fn several_results_of_sysbench_under_one_header_are_several_runs() {
    let text = format!("{SYSBENCH}Number of threads: 2\n{}{}", sysbench(100, 1), sysbench(600, 2));
    let records = runs(&text);
    assert_eq!(rates(&records), [(2, 100, 100), (2, 600, 300)]);
    assert_eq!(run(&records[1]).version.as_deref(), Some("1.0.20"));
    let text = format!("{text}Number of threads: 4\n{}", sysbench(800, 2));
    assert_eq!(rates(&runs(&text))[2], (4, 800, 400));
    // Without a header, the number of threads comes from the mean of the events.
    assert_eq!(rates(&runs(&sysbench(100, 1))), [(2, 100, 100)]);
}

#[test]
fn a_sysbench_that_crashed_leaves_nothing_to_the_next_run() {
    let crashed = format!(
        "{SYSBENCH}Number of threads: 8\nTarget transaction rate: 50/sec\n[ 1s ] thds: 8 tps: 50.00 qps: 50.00 (r/w/o: 50.00/0.00/0.00) lat (ms,99%): 1.00 err/s: 0.00 reconn/s: 0.00\nFATAL: Connection to database failed\n"
    );
    let text = format!("{crashed}{SYSBENCH}Number of threads: 2\n{}", sysbench(100, 1));
    let imports = texts(&[("given", &text)]);
    let record = &imports.records[0];
    assert_eq!((rates(&imports.records), record.status), (vec![(2, 100, 100)], Status::Done));
    assert_eq!((record.plan.schedule.clone(), series(record)), (Schedule::Closed, Vec::new()));
    let expected = "given, line 1: a run of sysbench without a report was not imported";
    assert_eq!(imports.notices, [expected]);
    let imports = texts(&[("given", &format!("{crashed}{text}"))]);
    let expected =
        "given: 2 runs of sysbench without a report were not imported, the first one in line 1";
    assert_eq!((imports.records.len(), imports.notices), (1, vec![expected.to_owned()]));
    let error = try_texts(&[("given", &crashed)]).unwrap_err().to_string();
    assert!(error.contains("SQL statistics"), "{error}");
}

#[test]
fn the_parts_between_checkpoints_are_one_run() {
    let interval = |s: u64| {
        format!(
            "[ {s}s ] thds: 2 tps: 100.00 qps: 100.00 (r/w/o: 100.00/0.00/0.00) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00\n"
        )
    };
    let part = |s: u64, transactions| {
        format!("[ {s}s ] Checkpoint report:\n{}{}", sysbench(transactions, s), interval(s))
    };
    let header = format!("{SYSBENCH}Number of threads: 2\n");
    let parts = format!("{}{}", part(1, 100), part(3, 400));
    let text = format!("{header}{parts}{}{}", interval(4), sysbench(300, 4));
    let records = runs(&text);
    assert_eq!(rates(&records), [(2, 800, 200)]);
    let session_loop = &records[0].stages[0].session_loop;
    assert_eq!(
        (session_loop.queries.read, session_loop.retries, session_loop.execution_s),
        (1600, 6, None)
    );
    let latency = session_loop.reported_latency.as_ref().unwrap();
    assert_eq!((latency.min_us, latency.max_us), (Some(100.0), Some(4500.0)));
    assert_eq!((latency.mean_us, latency.percentiles.len()), (Some(1000.0), 0));
    // riops has no deviation in the parts, and sysbench no histogram of the whole run.
    let histogram = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n       0.500 |**** 300\n";
    let text = format!("{header}{parts}{histogram}{}", sysbench(300, 4))
        .replace("1.0000/0.00", "1.0000/nan");
    let records = runs(&text);
    assert_eq!(rates(&records), [(2, 800, 200)]);
    assert_eq!(records[0].stages[0].session_loop.histogram, None);
    let unfinished = runs(&format!("{header}{parts}"));
    assert_eq!((rates(&unfinished), unfinished[0].status), (vec![(2, 500, 167)], Status::Failed));
    let twice = runs(&format!("{text}{text}"));
    assert_eq!(rates(&twice), [(2, 800, 200); 2]);
    // If the latencies of one part were cut off, the sum of all parts is unknown.
    let complete = format!("{header}{parts}{}{}", interval(4), sysbench(300, 4));
    let cut = runs(complete.rsplit_once("Latency (ms):").unwrap().0);
    assert_eq!(rates(&cut), [(2, 800, 200)]);
    assert_eq!(cut[0].stages[0].session_loop.reported_latency, None);
}

#[test]
fn reports_of_old_versions_and_forks_of_sysbench_are_read() {
    let v05 = "sysbench 0.5:  multi-threaded system evaluation benchmark\n\nRunning the test with following options:\nNumber of threads: 4\n\n[   1s] threads: 4, tps: 90.00, reads: 900.00, writes: 30.00, response time: 2.50ms (99%), errors: 3.00, reconnects:  0.00\n[   2s] threads: 4, tps: 110.00, reads: 1100.00, writes: 50.00, response time: 3.50ms (99%), errors: 0.00, reconnects:  0.00\nOLTP test statistics:\n    queries performed:\n        read:                            2000\n        write:                           80\n        other:                           400\n    transactions:                        200    (100.00 per sec.)\n    read/write requests:                 2080   (1040.00 per sec.)\n    ignored errors:                      3      (1.50 per sec.)\n    reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n    total time:                          2.0000s\n    total number of events:              200\n    total time taken by event execution: 8.0000s\n    response time:\n         min:                                  1.36ms\n         avg:                                  1.65ms\n         max:                                 15.83ms\n         approx.  99 percentile:               1.82ms\n\nThreads fairness:\n    events (avg/stddev):           50.0000/1.16\n    execution time (avg/stddev):   2.0000/0.00\n";
    let v04 = v05
        .replace("0.5:", "0.4.12:")
        .replace("General statistics:", "Test execution summary:")
        .replace("response time:\n", "per-request statistics:\n")
        .replace("ignored errors:", "deadlocks:");
    for (text, version) in [(v05, "0.5"), (v04.as_str(), "0.4.12")] {
        let records = runs(text);
        assert_eq!((rates(&records), series(&records[0])), (vec![(4, 200, 100)], vec![90, 110]));
        let stage = &records[0].stages[0];
        let latency = stage.session_loop.reported_latency.as_ref().unwrap();
        assert_eq!((latency.mean_us, latency.percentile_us(99.0)), (Some(1650.0), Some(1820.0)));
        assert_eq!((stage.database_s, stage.session_loop.retries), (Some(8.0), 3));
        let point = &stage.session_loop.series[0];
        assert_eq!((point.queries.write, point.errors, point.percentile_us), (30, 3, Some(2500.0)));
        assert_eq!(run(&records[0]).version.as_deref(), Some(version));
    }
    // Early versions 1.0 have no colon, and forks no number.
    let interval = "[ 10s ] thds: 2 tps: 10.00 qps: 30.00 (r/w/o: 10.00/10.00/10.00) lat (ms,95%): 2.00 err/s 1.20 reconn/s: N/A\n";
    let record =
        runs(&format!("{SYSBENCH}Number of threads: 2\n{interval}{}", sysbench(100, 10))).remove(0);
    let point = &record.stages[0].session_loop.series[0];
    assert_eq!((point.errors, point.reconnects, point.transactions), (12, 0, 100));
    // Several percentiles, one of them in tenths, below a command line.
    let text = sysbench(100, 10)
        .replace("95th percentile: 2.00", "95th percentile: 2.00\n        999th percentile: 9.00");
    let record = runs(&format!("sysbench ./a.lua --time=10 run\n{text}")).remove(0);
    let session_loop = &record.stages[0].session_loop;
    let latency = session_loop.reported_latency.as_ref().unwrap();
    assert_eq!(
        (latency.percentile_us(99.9), session_loop.percentile_us),
        (Some(9000.0), Some(2000.0))
    );
    assert_eq!((record.plan.percentile, run(&record).version.as_deref()), (95.0, None));
    let cpu = "[ 1s ] thds: 2 eps: 10.00 lat (ms,95%): 2.00\n";
    let error = try_texts(&[("given", &format!("{SYSBENCH}{cpu}"))]).unwrap_err().to_string();
    assert!(error.contains("only results of database tests"), "{error}");
}

#[test]
fn the_table_of_ybio_needs_no_header() {
    let cells = [
        "1",
        "2026-11-23 06:14:48.8",
        "2026-11-23 06:14:50.8",
        "100",
        "10000",
        "0",
        "20000",
        "t",
        "f",
        "20000",
        "100",
        "bench0001",
        "",
        "",
        "a|b",
    ];
    let null = cells.map(|cell| if cell.is_empty() { "\\N" } else { cell }).join("\t");
    let piped = cells.join("|").replace("a|b", "ab");
    let spaced = format!(" {}", cells.join(" | ").replace("a|b", "ab"));
    for text in [null, cells.join(","), piped, spaced] {
        assert_eq!(Format::from_head(&text), Some(Format::Ybio), "{text}");
        let records = runs(&format!("{text}\n{}\n", text.replacen('1', "2", 1)));
        assert_eq!(records.len(), 2, "{text}");
        assert_eq!(records[0].stages[0].throughput.rows_per_s, 5000.0, "{text}");
        assert_eq!(run(&records[1]).facts["job_id"], "2", "{text}");
    }
}
