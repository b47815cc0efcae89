//! Results of other tools, as they wrote them, become records with the same figures.
//!
//! The files in `import/` were written by pgbench 15.18, sysbench 1.0.20 and the ybio of riops. Each log of
//! pgbench has the report of the same run beside it.

#![expect(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use riops::host::Interrupt;
use riops::import::{self, Column7, Format, ImportError, Imports, Input, Settings};
use riops::plan::{ImportedRun, Protocol, Schedule};
use riops::record::{LatencyKind, Record, StartSource, Validity};
use riops::report;
use riops::report::export::{CsvRows, ExportFormat, export};
use riops::store::{self, StoreLocation};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import").join(file)
}

fn input(file: &str) -> Input {
    let opened = File::open(path(file)).unwrap();
    let modified = "2026-11-23T07:00:00Z".parse().ok();
    Input::new(file.to_owned(), modified, Box::new(BufReader::new(opened)))
}

fn text(text: &'static str) -> Input {
    Input::new("given".to_owned(), None, Box::new(text.as_bytes()))
}

fn now() -> Timestamp {
    "2026-11-23T08:00:00Z".parse().unwrap()
}

fn read_with(inputs: Vec<Input>, settings: &Settings) -> Result<Imports, ImportError> {
    import::read(inputs, settings, now())
}

fn read(files: &[&str]) -> Imports {
    read_with(files.iter().map(|file| input(file)).collect(), &Settings::default()).unwrap()
}

fn one(files: &[&str]) -> Record {
    let mut imports = read(files);
    assert_eq!(imports.records.len(), 1, "{files:?}");
    imports.records.remove(0)
}

fn refused(inputs: Vec<Input>) -> String {
    read_with(inputs, &Settings::default()).unwrap_err().to_string()
}

/// The number after a text in a report of pgbench.
fn reported(file: &str, before: &str) -> f64 {
    let report = fs::read_to_string(path(file)).unwrap();
    let rest = report.split_once(before).unwrap().1;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

const ALL: [&str; 20] = [
    "plain.1000",
    "plain.1000.1",
    "plain.txt",
    "throttled.1000",
    "throttled.txt",
    "lag.1000",
    "failed.1000",
    "failed.1000.1",
    "tries.1000",
    "tries.1000.1",
    "aggregate.1000",
    "aggregate.1000.1",
    "aggregate.txt",
    "aggregate_rate.1000",
    "progress.txt",
    "multi.txt",
    "sysbench.txt",
    "sysbench_rate.txt",
    "sysbench_histogram.txt",
    "benchruns.csv",
];

/// Asserts that two numbers differ by at most a share.
fn assert_close(actual: f64, expected: f64, share: f64) {
    assert!((actual - expected).abs() <= share * expected, "{actual} instead of {expected}");
}

#[test]
fn a_log_of_pgbench_gives_the_figures_of_its_report() {
    let record = one(&["plain.1000", "plain.1000.1"]);
    let stage = &record.stages[0];
    assert_eq!((stage.transactions, stage.sessions), (100, 4));
    // pgbench divides by the time from the start of its threads to the end of the last one.
    assert_close(stage.throughput.transactions_per_s, reported("plain.txt", "\ntps = "), 0.1);
    let latency = stage.session_loop.service_us.as_ref().unwrap();
    assert_eq!(latency.count, 100);
    let histogram = stage.session_loop.histogram.as_ref().unwrap();
    assert_eq!(histogram.decode().unwrap().count(), 100);
    let total: u64 = stage.session_loop.series.iter().map(|point| point.transactions).sum();
    assert_eq!(total, 100);
    let seconds: f64 = stage.session_loop.series.iter().map(|point| point.seconds).sum();
    assert_close(seconds, stage.seconds, 1e-6);
    assert_eq!(record.imported.as_ref().unwrap().start, StartSource::Results);
    assert_eq!(stage.session_loop.response_us, None);
    let fairness = stage.session_loop.sessions_fairness;
    assert_eq!((fairness.min, fairness.max), (25, 25));
}

#[test]
fn with_a_rate_the_log_has_response_and_service_times() {
    let record = one(&["throttled.1000"]);
    let session_loop = &record.stages[0].session_loop;
    let response = session_loop.response_us.as_ref().unwrap();
    let service = session_loop.service_us.as_ref().unwrap();
    let milliseconds = reported("throttled.txt", "latency average = ");
    // The summary includes the skipped transactions, as lower bounds.
    let answered =
        session_loop.response_histogram.as_ref().unwrap().decode().unwrap().summary().unwrap();
    assert_eq!((response.lower_bound_from, answered.lower_bound_from), (Some(50.0), None));
    assert_close(answered.mean / 1e3, milliseconds, 0.001);
    let lag = reported("throttled.txt", "schedule lag: avg ");
    assert_close((answered.mean - service.mean) / 1e3, lag, 0.01);
    assert_eq!(response.count as f64, reported("throttled.txt", "actually processed: "));
    let skipped: u64 = session_loop.series.iter().map(|point| point.skipped).sum();
    assert_eq!(skipped as f64, reported("throttled.txt", "transactions skipped: "));
}

#[test]
fn reads_column_7_as_lag_or_retries_by_its_values_or_the_setting() {
    let imports = read(&["lag.1000"]);
    assert!(imports.notices[0].contains("delay of the start"), "{:?}", imports.notices);
    let session_loop = &imports.records[0].stages[0].session_loop;
    let mean = session_loop.response_us.as_ref().unwrap().mean;
    assert_close(mean / 1e3, reported("lag.txt", "latency average = "), 0.001);
    let imports = read(&["tries.1000", "tries.1000.1"]);
    assert!(imports.notices[0].contains("number of retries"), "{:?}", imports.notices);
    let session_loop = &imports.records[0].stages[0].session_loop;
    assert_eq!(session_loop.retries as f64, reported("tries.txt", "total number of retries: "));
    assert_eq!(session_loop.response_us, None);
    let settings = Settings { column_7: Some(Column7::Retries), ..Settings::default() };
    let imports = read_with(vec![input("lag.1000")], &settings).unwrap();
    assert!(imports.notices.is_empty());
    assert_eq!(imports.records[0].stages[0].session_loop.response_us, None);
}

#[test]
fn failed_transactions_have_their_sqlstate_and_no_latency() {
    let record = one(&["failed.1000", "failed.1000.1"]);
    let session_loop = &record.stages[0].session_loop;
    let failed = reported("failed.txt", "number of serialization failures: ");
    let outcomes = session_loop.outcomes.unwrap();
    assert_eq!((outcomes.failed as f64, outcomes.attempted), (failed, 80));
    assert_eq!((session_loop.errors[0].sqlstate.as_str(), session_loop.errors.len()), ("40001", 1));
    assert_eq!(session_loop.service_us.as_ref().unwrap().count, outcomes.succeeded);
}

#[test]
fn a_sample_or_a_truncated_log_is_refused() {
    let error = refused(vec![input("sample.1000")]);
    assert!(error.contains("--sampling-rate"), "{error}");
    let error = refused(vec![text("0 1 100 0 1795414448 499094\n0 2 100 0 17954144")]);
    assert!(error.contains("line 2") && error.contains("6 to 8 columns"), "{error}");
    let error = refused(vec![text("0 1 100 0 1795414448 499094\n0 2 fast 0 1795414448 499194\n")]);
    assert!(error.contains("line 2") && error.contains("\"fast\""), "{error}");
}

#[test]
fn a_log_whose_transactions_count_from_0_is_whole() {
    let line = |client: u32, transaction: u32| {
        format!("{client} {transaction} 100 0 1795414448 {}\n", 5000 + transaction)
    };
    let log = |numbers: &[u32]| -> String {
        numbers
            .iter()
            .flat_map(|transaction| [line(0, *transaction), line(1, *transaction)])
            .collect()
    };
    let runs = read_with(vec![generated(log(&[0, 1, 2]))], &Settings::default()).unwrap().records;
    assert_eq!(runs[0].stages[0].transactions, 6);
    let error = refused(vec![generated(log(&[0, 2]))]);
    assert!(error.contains("has 4 of at least 6 transactions"), "{error}");
    let error = refused(vec![generated(log(&[1, 1]))]);
    assert!(error.contains("some lines occur twice"), "{error}");
}

#[test]
fn reports_of_an_aborted_run_contain_the_reason_and_no_unknown_facts() {
    let report = "transaction type: x\nnumber of clients: 1\nnumber of transactions actually processed: 50\ntps = 5.0 (without initial connection time)\npgbench: error: Run was aborted; the above results are incomplete.\n";
    let runs = read_with(vec![text(report)], &Settings::default()).unwrap().records;
    let shown = riops::report::run_text(&runs[0], "", 100);
    assert!(shown.contains("Run was aborted"), "{shown}");
    let page = riops::report::markdown(&runs, None);
    assert!(page.contains("Run was aborted"), "{page}");
    for unknown in ["no errors", "another machine", "0.0 MB", "PostgreSQL "] {
        assert!(!page.contains(unknown), "{unknown}: {page}");
    }
}

/// The largest number in a file.
const MAX: u64 = u64::MAX;

fn generated(text: String) -> Input {
    Input::new("given".to_owned(), None, Box::new(std::io::Cursor::new(text)))
}

#[test]
fn numbers_that_do_not_fit_are_refused_and_never_wrap() {
    let log = |line: &str| format!("{line}\n{}\n", line.replacen("0 1 ", "1 1 ", 1));
    let aggregate = |columns: &str| format!("1795414448 {columns}\n1795414449 {columns}\n");
    let report = fs::read_to_string(path("failed.txt")).unwrap();
    let processed = reported("failed.txt", "actually processed: ");
    let sysbench = fs::read_to_string(path("sysbench_histogram.txt")).unwrap();
    let counts = sysbench.lines().find(|line| line.contains('|')).unwrap();
    let (bucket, _) = counts.rsplit_once(' ').unwrap();
    let with_read = |line: &str| {
        if line.trim().starts_with("read:") { format!("read: {MAX}") } else { line.to_owned() }
    };
    for text in [
        log("0 1 10 0 9223372036854 499094"),
        log(&format!("0 1 {MAX} 0 1795414448 499094")),
        log(&format!("0 1 10 0 1795414448 499094 {MAX}")),
        log(&format!("0 1 10 0 1795414448 499094 1 {MAX}")),
        aggregate(&format!("{MAX} 820850 1279557884 26 6979")),
        aggregate(&format!("1 820850 1279557884 26 6979 0 0 0 0 {MAX}")),
        aggregate(&format!("1 820850 1279557884 26 6979 0 0 0 0 0 0 0 {MAX}")),
        format!("{}{MAX} 1 820850 1279557884 26 6979\n", aggregate("1 820850 1279557884 26 6979")),
        report.replacen(&format!("processed: {processed}"), &format!("processed: {MAX}"), 1),
        sysbench.lines().map(with_read).collect::<Vec<_>>().join("\n"),
        sysbench.replacen(counts, &format!("{bucket} {MAX}"), 1),
    ] {
        let error = refused(vec![generated(text.clone())]);
        // The limit of a number or the limit of a sum refuses the text; both errors name the line.
        let is_refused = error.contains("out of range") || error.contains("expected a ");
        assert!(is_refused && error.starts_with("given"), "{error}: {text}");
    }
    let last = format!("0 {MAX} 10 0 1795414448 499094\n1 {MAX} 10 0 1795414448 499094\n");
    let error = refused(vec![generated(last)]);
    assert!(error.contains("expected a number as transaction"), "{error}");
    let scripts: Vec<_> =
        (0..129).map(|script| format!("0 1 10 {script} 1795414448 499094\n")).collect();
    assert!(refused(vec![generated(scripts.concat())]).contains("more than 128 scripts"));
}

#[test]
fn records_with_numbers_or_names_that_reports_cannot_show_are_refused() {
    let ping = path("../../../riops-model/tests/records/ping.json");
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(ping).unwrap()).unwrap();
    for place in [
        "/stages/0/transactions",
        "/stages/0/queries/write",
        "/stages/0/series/0/transactions",
        "/stages/0/series/0/queries/other",
    ] {
        let mut damaged = record.clone();
        *damaged.pointer_mut(place).unwrap() = MAX.into();
        let error = refused(vec![generated(damaged.to_string())]);
        assert!(error.contains("out of range"), "{error}");
    }
    for label in ["a\u{1b}[2J", "a\u{9b}2J", "abc\u{202e}fed"] {
        let mut hostile = record.clone();
        hostile["label"] = label.into();
        let error = refused(vec![generated(hostile.to_string())]);
        assert!(error.contains("control characters"), "{error}");
    }
}

#[test]
fn a_line_or_a_report_without_an_end_is_refused() {
    let start = "0 1 10 0 1795414448 499094\n";
    let endless = |start: &'static str| {
        let reader = std::io::Read::chain(start.as_bytes(), std::io::repeat(b'1'));
        Input::new("given".to_owned(), None, Box::new(BufReader::new(reader)))
    };
    let error = refused(vec![endless(start)]);
    assert!(error.contains("given, line 2: longer than the limit of 64 KiB"), "{error}");
    let error = refused(vec![endless("pgbench (15.18)\n")]);
    assert!(error.contains("given") && error.contains("limit of 512 MiB"), "{error}");
}

#[test]
fn a_log_without_the_files_of_all_threads_is_announced() {
    let imports = read(&["plain.1000.1"]);
    assert!(imports.notices[0].contains("client 0"), "{:?}", imports.notices);
}

#[test]
fn aggregates_have_means_and_extremes_but_no_percentiles() {
    let record = one(&["aggregate.1000", "aggregate.1000.1"]);
    let stage = &record.stages[0];
    let latency = stage.session_loop.reported_latency.as_ref().unwrap();
    assert_close(latency.mean_us.unwrap() / 1e3, reported("aggregate.txt", "average = "), 0.05);
    assert_eq!((latency.kind, latency.percentiles.len()), (LatencyKind::Service, 0));
    assert_eq!((latency.min_us, latency.max_us), (Some(25.0), Some(7384.0)));
    assert_eq!((stage.transactions, stage.session_loop.series.len()), (50_217, 5));
    // The first interval is a part of a second.
    assert_close(stage.throughput.transactions_per_s, reported("aggregate.txt", "\ntps = "), 0.02);
    assert_eq!(stage.session_loop.service_us, None);
    // Unknown, not none: the columns of failures are 0 without --failures-detailed.
    assert_eq!(stage.session_loop.outcomes, None);
    let rate = one(&["aggregate_rate.1000"]);
    let session_loop = &rate.stages[0].session_loop;
    assert_eq!(session_loop.reported_latency.as_ref().unwrap().kind, LatencyKind::Response);
    assert!(session_loop.series.iter().all(|point| point.max_us.is_none()));
    let skipped: u64 = session_loop.series.iter().map(|point| point.skipped).sum();
    assert_eq!(skipped as f64, reported("aggregate_rate.txt", "transactions skipped: "));
    let error = refused(vec![text("1795414455 1 1 1 1 1\n")]);
    assert!(error.contains("two intervals"), "{error}");
}

#[test]
fn the_record_of_a_pgbench_report_contains_only_printed_values() {
    let record = one(&["throttled.txt"]);
    let run: &ImportedRun = record.plan.work.get().unwrap();
    assert_eq!(run.version.as_deref(), Some("15.18"));
    assert_eq!(run.test.as_deref(), Some("<builtin: TPC-B (sort of)>"));
    assert!(!run.counts_rows && !run.counts_statements);
    assert_eq!(
        (record.plan.protocol, record.target.server_version.as_str()),
        (Protocol::Simple, "15.18")
    );
    let stage = &record.stages[0];
    let tps = reported("throttled.txt", "\ntps = ");
    assert_close(stage.throughput.transactions_per_s, tps, 1e-9);
    let latency = stage.session_loop.reported_latency.as_ref().unwrap();
    assert_eq!((latency.mean_us, latency.kind), (Some(1713.0), LatencyKind::Response));
    let late = stage.session_loop.late.unwrap();
    assert_eq!((late.limit_us, late.transactions, late.skipped), (Some(1000.0), Some(27), 73));
    assert_eq!(record.imported.as_ref().unwrap().start, StartSource::FileTime);
    assert!(record.started_at < "2026-11-23T07:00:00Z".parse().unwrap());
    let failed = one(&["failed.txt"]);
    // pgbench averages over failed transactions too.
    assert_eq!(failed.stages[0].session_loop.reported_latency, None);
    let series = &one(&["progress.txt"]).stages[0].session_loop.series;
    assert_eq!(
        series.iter().map(|point| point.transactions).collect::<Vec<_>>(),
        [20436, 28668, 24684, 35983]
    );
    let scripts = &one(&["multi.txt"]).stages[0].session_loop.operations;
    assert_eq!(scripts.iter().map(|script| script.transactions).collect::<Vec<_>>(), [30, 10]);
}

#[test]
fn an_incomplete_report_is_refused_with_the_missing_line() {
    let error = refused(vec![text("pgbench (15.18)\ntransaction type: x\nnumber of clients: 2\n")]);
    assert!(error.contains("actually processed") && error.contains("given"), "{error}");
    let error = refused(vec![text("transaction type: x\nnumber of clients: two\n")]);
    assert!(error.contains("line 2") && error.contains("\"two\""), "{error}");
    let error = refused(vec![text("sysbench 1.0.20\nNumber of threads: 1\nGeneral statistics:\n")]);
    assert!(error.contains("SQL statistics"), "{error}");
}

#[test]
fn several_reports_in_a_file_are_several_runs() {
    let twice = fs::read_to_string(path("plain.txt")).unwrap()
        + &fs::read_to_string(path("lag.txt")).unwrap();
    let inputs = vec![Input::new("twice".to_owned(), None, Box::new(std::io::Cursor::new(twice)))];
    let records = read_with(inputs, &Settings::default()).unwrap().records;
    assert_eq!(records.len(), 2);
    assert_ne!(records[0].id, records[1].id);
}

#[test]
fn the_report_of_sysbench_with_its_histogram_gives_percentiles() {
    let record = one(&["sysbench_histogram.txt"]);
    let stage = &record.stages[0];
    assert_eq!((stage.transactions, stage.statements, stage.sessions), (3282, 66_068, 4));
    let latency = stage.session_loop.service_us.as_ref().unwrap();
    assert_eq!((latency.count, latency.mean, latency.max), (3282, 6100.0, 1_009_950.0));
    // The same percentile as sysbench printed.
    assert_close(latency.p95, 5_990.0, 0.02);
    assert_eq!(stage.session_loop.series.len(), 5);
    assert_eq!(stage.session_loop.series[1].transactions, 56);
    assert_eq!(stage.session_loop.queries.write, 13_140);
    assert_eq!(stage.session_loop.retries, 24);
}

#[test]
fn with_a_rate_the_latency_of_sysbench_is_the_response_time() {
    let record = one(&["sysbench_rate.txt"]);
    assert_eq!(record.plan.schedule, Schedule::Poisson { per_s: 300.0 });
    let latency = record.stages[0].session_loop.reported_latency.as_ref().unwrap();
    assert_eq!((latency.kind, latency.percentile_us(99.0)), (LatencyKind::Response, Some(290.0)));
    assert_eq!(latency.percentile_us(95.0), None);
    assert_eq!(record.stages[0].session_loop.series[0].backlog, Some(0));
}

#[test]
fn the_table_of_ybio_is_the_same_run_in_each_format() {
    let csv = read(&["benchruns.csv"]).records;
    assert_eq!(csv.len(), 2);
    let stage = &csv[0].stages[0];
    assert_eq!((stage.rows, stage.transactions, stage.sessions), (5_485_700, 54_857, 1));
    assert_close(stage.throughput.rows_per_s, 5_485_700.0 / 2.000_009, 1e-9);
    assert_eq!(csv[0].started_at.to_string(), "2026-11-23T06:14:48.823164Z");
    assert_eq!(
        stage.session_loop.reported_latency.as_ref().unwrap().percentile_us(99.0),
        Some(67.0)
    );
    let settings = Settings { format: Some(Format::Ybio), ..Settings::default() };
    for file in ["benchruns.tsv", "benchruns.txt"] {
        let other = read_with(vec![input(file)], &settings).unwrap().records;
        let ids = |records: &[Record]| records.iter().map(|record| record.id).collect::<Vec<_>>();
        assert_eq!(ids(&other), ids(&csv), "{file}");
    }
    let error = refused(vec![text("job_id,start_time,num_rows\n1,2,3\n")]);
    assert!(error.contains("no column \"end_time\""), "{error}");
    let error = refused(vec![text(
        "job_id,start_time,end_time,num_batches,num_rows\n1,2026-11-23 06:14:48,23.11.2026 6:14,1,1\n",
    )]);
    assert!(error.contains("line 2") && error.contains("datestyle"), "{error}");
}

#[test]
fn a_row_of_ybio_that_has_not_ended_is_no_run() {
    let inputs = vec![text(
        "job_id,start_time,end_time,num_batches,num_rows\n1,2026-11-23 06:14:48+02,,,\n2,2026-11-23 06:14:48+02,2026-11-23 06:14:49+02,1,5\n",
    )];
    let records = read_with(inputs, &Settings::default()).unwrap().records;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].started_at.to_string(), "2026-11-23T04:14:48Z");
}

#[test]
fn every_imported_run_is_reported_in_every_form_and_never_as_valid() {
    let imports = read(&ALL);
    assert_eq!(imports.records.len(), 17);
    for record in imports.records {
        let file = record.imported.as_ref().unwrap().files.join(", ");
        assert_eq!(record.validity(), Validity::NotVerified, "{file}");
        let text = report::run_text(&record, "somewhere", 80);
        assert!(
            text.contains("not verified: imported from") && !text.contains("bottleneck  "),
            "{file}: {text}"
        );
        assert!(!text.contains("no errors") && !text.contains("try next"), "{file}: {text}");
        for form in report::forms_for(&record.plan) {
            let form = report::form(form, &record.plan).unwrap();
            (form.print)(&record, &report::Extras::new("somewhere", 80)).unwrap();
        }
        for rows in [CsvRows::Stages, CsvRows::Series, CsvRows::Latencies] {
            export(std::slice::from_ref(&record), ExportFormat::Csv(rows)).unwrap();
        }
        export(std::slice::from_ref(&record), ExportFormat::OpenMetrics).unwrap();
        let csv =
            export(std::slice::from_ref(&record), ExportFormat::Csv(CsvRows::Stages)).unwrap();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().unwrap().clone();
        let row = reader.records().next().unwrap().unwrap();
        let cell =
            |name: &str| row[header.iter().position(|column| column == name).unwrap()].to_owned();
        assert_eq!((cell("valid"), cell("bottleneck"), cell("seed")), Default::default(), "{file}");
        let counts_rows = !record.plan.work.traits().has_no_rows;
        assert_eq!(cell("rows_per_s").is_empty(), !counts_rows, "{file}");
        assert!(report::html(&[record], None).unwrap().contains("not verified"), "{file}");
    }
}

#[test]
fn numbers_that_no_run_has_are_refused() {
    const LARGE: &str = "18446744073709551615";
    let aggregate = format!("1795414455 {LARGE} 1 1 1 1\n1795414456 {LARGE} 1 1 1 1\n");
    let log = |line: &str| format!("0 1 4097 0 1795414448 499094\n{line}\n");
    let with = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(path(file)).unwrap();
        assert!(text.contains(from), "{file}");
        text.replacen(from, to, 1)
    };
    for contents in [
        aggregate,
        log(&format!("1 {LARGE} 4097 0 1795414448 499094")),
        log(&format!("1 1 {LARGE} 0 1795414448 499094")),
        log("1 1 4097 0 9223372036854 499094"),
        log("1 1 4097 0 1795414448 1000000"),
        log("1 1 4097 128 1795414448 499094"),
        with("plain.txt", "actually processed: 100/", &format!("actually processed: {LARGE}/")),
        with("sysbench.txt", "write:  ", &format!("write: {LARGE} ")),
        with("sysbench.txt", "total time:  ", "total time: 1e99s "),
        with("benchruns.csv", ",5485700,", &format!(",{LARGE},")),
    ] {
        let input = Input::new("given".to_owned(), None, Box::new(std::io::Cursor::new(contents)));
        let error = refused(vec![input]);
        assert!(error.starts_with("given, line "), "{error}");
    }
    let tps = with("sysbench_histogram.txt", "tps: ", "tps: 1e29 ");
    let input = Input::new("given".to_owned(), None, Box::new(std::io::Cursor::new(tps)));
    let record = read_with(vec![input], &Settings::default()).unwrap().records.remove(0);
    assert!(record.stages[0].session_loop.series.iter().all(|point| point.transactions <= 1 << 40));
}

#[test]
fn the_same_results_are_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("runs.sqlite"));
    let store = store::open(&location, &Interrupt::new()).unwrap();
    let stored = import::store(&store, &read(&ALL).records).unwrap();
    assert_eq!((stored.ids.len(), stored.known.len()), (17, 0));
    // A copied file has another time.
    let mut copy = input("plain.txt");
    copy.modified = Some(now());
    let copied = read_with(vec![copy], &Settings::default()).unwrap();
    assert_eq!(import::store(&store, &copied.records).unwrap().known.len(), 1);
    let settings = Settings { label: Some("again".to_owned()), ..Settings::default() };
    let inputs = ALL.iter().map(|file| input(file)).collect();
    let again = read_with(inputs, &settings).unwrap();
    let stored = import::store(&store, &again.records).unwrap();
    assert_eq!((stored.ids.len(), stored.known.len()), (0, 17));
}

#[test]
fn exported_records_are_identical_in_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let location = StoreLocation::File(folder.path().join(name));
        store::open(&location, &Interrupt::new()).unwrap()
    };
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let mut records: Vec<Record> = fs::read_dir(frozen)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .map(|json| serde_json::from_str(&json).unwrap())
        .collect();
    records.sort_by_key(|record| record.started_at);
    let lines = export(&records, ExportFormat::Json).unwrap();
    let array = serde_json::to_string_pretty(&records).unwrap();
    for (name, text) in [("lines", lines), ("array", array)] {
        let store = open(name);
        let input = Input::new(name.to_owned(), None, Box::new(std::io::Cursor::new(text.clone())));
        let read = read_with(vec![input], &Settings::default()).unwrap();
        import::store(&store, &read.records).unwrap();
        for record in &records {
            assert_eq!(store.find(&record.id.to_string()).unwrap(), *record);
        }
    }
}

#[test]
fn a_damaged_file_imports_nothing_and_a_newer_record_is_refused() {
    let record = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records/ping.json"),
    )
    .unwrap();
    let read_text = |text: String| {
        let input = Input::new("runs.json".to_owned(), None, Box::new(std::io::Cursor::new(text)));
        read_with(vec![input], &Settings::default()).map(|imports| imports.records.len())
    };
    let lines = record.lines().count() as u64;
    assert_eq!(read_text(record.clone()).unwrap(), 1);
    let error = read_text(format!("{record}{}", &record[..record.len() / 2])).unwrap_err();
    assert!(matches!(&error, ImportError::Line { line, .. } if *line > lines), "{error}");
    let newer = record.replacen("\"schema\": 1", "\"schema\": 2", 1);
    let error = read_text(format!("{record}\n{newer}")).unwrap_err();
    assert!(
        matches!(error, ImportError::Newer { schema: 2, line, .. } if line == lines + 2),
        "{error}"
    );
    let error =
        read_text(record.replacen("\"ping\": {", "\"pong\": {", 1)).unwrap_err().to_string();
    assert!(error.contains("damaged record"), "{error}");
    let error =
        read_text(record.replacen("\"histogram\": \"", "\"histogram\": \"x", 1)).unwrap_err();
    assert!(error.to_string().contains("histogram"), "{error}");
    let error = read_text("{\"a\": 1}".to_owned()).unwrap_err().to_string();
    assert!(error.contains("\"schema\""), "{error}");
}

#[test]
fn another_run_with_the_same_id_is_refused_and_nothing_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("runs.sqlite"));
    let store = store::open(&location, &Interrupt::new()).unwrap();
    let mut records = read(&["plain.txt", "benchruns.csv"]).records;
    store.save(&records[2]).unwrap();
    records[2].stages[0].rows += 1;
    let error = import::store(&store, &records).unwrap_err();
    assert!(matches!(error, ImportError::Conflict(_)), "{error}");
    assert!(store.find(&records[0].id.to_string()).is_err());
}

#[test]
fn a_start_from_the_user_needs_a_run_without_one() {
    let started_at = "2026-11-20T10:00:00Z".parse().ok();
    let settings = Settings { started_at, ..Settings::default() };
    let read =
        |files: &[&str]| read_with(files.iter().map(|file| input(file)).collect(), &settings);
    let record = read(&["plain.txt"]).unwrap().records.remove(0);
    assert_eq!((Some(record.started_at), record.stages[0].started_at), (started_at, started_at));
    assert!(matches!(read(&["plain.txt", "lag.txt"]), Err(ImportError::SeveralRuns(2))));
    assert!(matches!(read(&["plain.1000", "plain.1000.1"]), Err(ImportError::StartIsKnown)));
}
