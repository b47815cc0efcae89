//! Results of several tools and sources in one file, with what terminals, containers and logs add. Nothing may be lost
//! without a notice, and the order of the file stays.

use std::fmt::Write as _;
use std::io::Cursor;

use super::tests::{
    HEADER, SYSBENCH, rates, results, run, runs, series, sysbench, texts, try_texts,
};
use super::{Format, Imports, Input, Settings, read};
use crate::comparison::changes;
use crate::record::{Record, StartSource};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../tests/import/", $name))
    };
}

const THREE: &str = file!("three_reports.txt");
const COMPOSE: &str = file!("compose.log");

/// The report of the file without the prefix of its lines.
fn report() -> String {
    COMPOSE.replace("pgbench-1  | ", "")
}

fn prefixed(prefix: &str, text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{prefix}{line}");
        all
    })
}

/// Reads a file that was modified at 07:00.
fn dated(text: &str) -> Imports {
    let modified = "2026-11-23T07:00:00Z".parse().ok();
    let input = Input::new("given".to_owned(), modified, Box::new(Cursor::new(text.to_owned())));
    let now = "2026-11-23T08:00:00Z".parse().unwrap();
    read(vec![input], &Settings::default(), now).unwrap()
}

fn formats(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.imported.as_ref().unwrap().format.as_str()).collect()
}

#[test]
fn reports_of_several_tools_are_runs_in_their_order() {
    let imports = texts(&[("given", THREE)]);
    assert_eq!(formats(&imports.records), ["pgbench", "sysbench", "pgbench"]);
    let expected = [(8, 12_000, 401), (4, 10_000, 1000), (8, 12_000, 500)];
    assert_eq!((rates(&imports.records), imports.notices.len()), (expected.to_vec(), 0));
    let (_, rest) = THREE.split_once("sysbench 1.0.20").unwrap();
    let two = runs(&format!("sysbench 1.0.20{rest}"));
    assert_eq!(rates(&two), expected[1..]);
    // A run of one tool between the lines of the other one.
    let text = format!("{SYSBENCH}Number of threads: 2\n{}{}", report(), sysbench(100, 1));
    assert_eq!(formats(&runs(&text)), ["sysbench", "pgbench"]);
}

#[test]
fn with_a_given_tool_a_notice_shows_the_other_one() {
    let settings = Settings { format: Some(Format::Pgbench), ..Settings::default() };
    let input = Input::new("given".to_owned(), None, Box::new(THREE.as_bytes()));
    let imports = read(vec![input], &settings, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(formats(&imports.records), ["pgbench", "pgbench"]);
    assert_eq!(imports.notices, ["given, line 13: reports of sysbench were not imported (--from)"]);
}

#[test]
fn results_in_other_formats_beside_a_report_have_a_notice() {
    let others = "0 1 4097 0 1795414448 499094\n{\"schema\": 9}\n job_id | start_time | num_rows \n1795414455 2303 820850 1279557884 26 6979\n";
    let imports = texts(&[("given", &format!("{}{others}", report()))]);
    assert_eq!(imports.records.len(), 1);
    for (format, line) in
        [("pgbench-log", 15), ("json", 16), ("ybio", 17), ("pgbench-aggregate", 18)]
    {
        let start = format!("given, line {line}: results in the format {format} were not imported");
        assert!(imports.notices.iter().any(|notice| notice.starts_with(&start)), "{format}");
    }
}

#[test]
fn a_prompt_does_not_decide_the_format() {
    assert_eq!(rates(&runs(file!("prompt.txt"))), [(8, 12_000, 401)]);
    assert_eq!(rates(&runs(file!("prompt_sysbench.txt"))), [(4, 10_000, 1000)]);
    for first in
        ["{", "<html>", "[", "a,b,c", "job_id of num_rows", "{ echo; } && pgbench", "[INFO] start"]
    {
        assert_eq!(rates(&runs(&format!("{first}\n{}", report()))), [(8, 12_000, 401)], "{first}");
    }
    // The command line still says that each transaction had a connection.
    let near = format!("{HEADER}{}", results(4, 3000, 300)).replace("300.0 (excl", "310.0 (excl");
    let prompt = |options: &str| format!("[a@db1 ~]$ pgbench {options} bench\n{near}");
    assert_eq!(rates(&runs(&(prompt("-C") + &prompt("-c 4")))), [(4, 3000, 300), (4, 3000, 310)]);
    // The results begin after more text than the format is recognized from.
    let build = "Compiling\n".repeat(20_000);
    assert_eq!(rates(&runs(&format!("{build}{}", report()))), [(8, 12_000, 401)]);
    let error = try_texts(&[("notes.txt", "hello\n")]).unwrap_err().to_string();
    assert!(error.contains("notes.txt") && error.contains("--from"), "{error}");
}

#[test]
fn removes_all_text_before_the_lines() {
    for text in [COMPOSE, file!("actions.log")] {
        assert_eq!(rates(&runs(text)), [(8, 12_000, 401)]);
    }
    let both = format!("{}{}", report(), sysbench(100, 1));
    for prefix in [
        "2024-05-01T10:00:00.123456Z 01O ",
        "Nov 28 04:00:01 db1 pgbench[123]: ",
        "pgbench-x2x pgbench ",
        "\u{1b}[33mpgbench-1  |\u{1b}[0m ",
        "[2024-05-01T10:00:00.123Z] > ",
        "node7: ",
        "bench (pg 17)\tRun pgbench\t2024-05-01T10:00:00.1234567Z ",
        "-c8\t",
    ] {
        let records = runs(&prefixed(prefix, &both).replace('\n', "\r\n"));
        assert_eq!(rates(&records), [(8, 12_000, 401), (2, 100, 100)], "{prefix}");
        assert_eq!(records[0].target.server_version, "15.3", "{prefix}");
    }
    let object = |line: &str| serde_json::json!({"log": format!("{line}\n")}).to_string();
    let objects = report().lines().map(object).collect::<Vec<_>>().join("\n");
    assert_eq!(rates(&runs(&objects)), [(8, 12_000, 401)]);
    // Several prefixes in one file.
    let mixed = [
        prefixed("Nov 28 04:00:01 db1 pgbench[123]: ", &report()),
        prefixed("2024-05-01T10:00:00Z ", &report().replace("400.5", "500.6")),
        report().replace("400.5", "600.6"),
    ];
    let expected = [(8, 12_000, 401), (8, 12_000, 501), (8, 12_000, 601)];
    assert_eq!(rates(&runs(&mixed.concat())), expected);
    // A prefix that looks like a sentence is named.
    let error = try_texts(&[("given", "we saw transaction type: x\n")]).unwrap_err().to_string();
    assert!(error.contains("after \"we saw \""), "{error}");
}

#[test]
fn lines_of_several_processes_are_told_apart() {
    let (one, other) = (report(), report().replace("400.5", "500.6").replace("12000", "15000"));
    let sysbench = format!("{SYSBENCH}Number of threads: 2\n{}", sysbench(100, 1));
    let texts = [("pgbench-1", one), ("pgbench-2", other), ("sysbench-1", sysbench)];
    for separator in ["  | ", "\t"] {
        let mut sources = texts.each_ref().map(|(name, text)| (name, text.lines()));
        let mut text = String::new();
        loop {
            let before = text.len();
            for (name, lines) in &mut sources {
                for line in lines.take(1) {
                    let _ = writeln!(text, "{name}{separator}{line}");
                }
            }
            if text.len() == before {
                break;
            }
        }
        let mut sorted = rates(&runs(&text));
        sorted.sort_unstable();
        assert_eq!(sorted, [(2, 100, 100), (8, 12_000, 401), (8, 15_000, 501)], "{separator:?}");
    }
}

#[test]
fn several_reports_follow_each_other_in_time() {
    let records = dated(file!("several.txt")).records;
    let sessions: Vec<u32> = records.iter().map(|record| record.stages[0].sessions).collect();
    assert_eq!(sessions, [1, 2, 4, 8, 16]);
    let mut next: jiff::Timestamp = "2026-11-23T07:00:00Z".parse().unwrap();
    for record in records.iter().rev() {
        let seconds = next.duration_since(record.started_at).as_secs_f64();
        assert!((seconds - record.stages[0].seconds).abs() < 1e-6, "{seconds}");
        assert_eq!(record.imported.as_ref().unwrap().start, StartSource::FileTime);
        next = record.started_at;
    }
    // Without the time of a file, and with tools whose runs have no length.
    let empty = "number of transactions actually processed: 0\n".repeat(3);
    for imports in [texts(&[("given", THREE)]), texts(&[("given", &empty)]), dated(&empty)] {
        assert!(imports.records.is_sorted_by(|one, next| one.started_at < next.started_at));
    }
}

#[test]
fn progress_lines_have_failures_retries_and_latencies() {
    let record = runs(file!("progress_failed.txt")).remove(0);
    let points = &record.stages[0].session_loop.series;
    let values =
        |pick: fn(&crate::record::Point) -> u64| points.iter().map(pick).collect::<Vec<_>>();
    assert_eq!(values(|point| point.failed), [7, 8, 10]);
    assert_eq!(values(|point| point.errors), [7, 8, 10]);
    assert_eq!(values(|point| point.retries), [5, 5, 6]);
    let means: Vec<_> = points.iter().map(|point| point.mean_us).collect();
    assert_eq!(means, [20_000.0, 30_000.0, 10_000.0].map(Some));
    let skipped =
        "progress: 1.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed, lag 5.000 ms, 12 skipped\n";
    let record = runs(&format!("{skipped}{HEADER}{}", results(1, 1000, 100))).remove(0);
    let point = &record.stages[0].session_loop.series[0];
    assert_eq!((series(&record), point.skipped, point.mean_us), (vec![0], 12, None));
    // The report counts late transactions, the progress lines do not.
    let late = "number of transactions above the 5.0 ms latency limit: 7/1000 (0.700 %)\n";
    let text = format!("{skipped}{HEADER}{}{late}", results(1, 1000, 100));
    let stage = &runs(&text)[0].stages[0];
    assert_eq!(stage.session_loop.late.unwrap().transactions, Some(7));
    assert_eq!(stage.session_loop.series[0].late, None);
    let point = serde_json::to_value(&stage.session_loop.series[0]).unwrap();
    assert_eq!((point.get("late"), point["skipped"].as_u64()), (None, Some(12)));
}

#[test]
fn skipped_starts_make_percentiles_lower_bounds() {
    let imports = texts(&[("log.1000", file!("skipped.1000"))]);
    let session_loop = &imports.records[0].stages[0].session_loop;
    let late = session_loop.late.unwrap();
    assert_eq!((late.skipped, late.limit_us, late.transactions), (100, None, None));
    let response = session_loop.response_us.as_ref().unwrap();
    assert_eq!(response.lower_bound_from, Some(50.0));
    assert!(response.is_bound(Some(50.0)) && response.p90 >= 59_700.0, "{response:?}");
    assert_eq!(session_loop.service_us.as_ref().unwrap().lower_bound_from, None);
    assert_eq!(session_loop.skipped_starts(), Some(100));
    let rows = crate::report::export::ExportFormat::Csv(crate::report::export::CsvRows::Stages);
    let csv = crate::report::export::export(&imports.records, rows).unwrap();
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let at = rows.headers().unwrap().iter().position(|name| name == "skipped_starts").unwrap();
    assert_eq!(rows.records().next().unwrap().unwrap().get(at), Some("100"));
}

#[test]
fn unreported_values_are_no_difference() {
    let [before, after] =
        [file!("cut_before.txt"), file!("cut_after.txt")].map(|text| runs(text).remove(0));
    assert_eq!(before.imported.as_ref().unwrap().unreported.len(), 6);
    assert_eq!(changes(&[&before], &[&after]), []);
    // One of them has the lines.
    let complete = runs(&format!("{HEADER}{}", results(4, 3000, 300))).remove(0);
    assert_eq!(run(&complete).tool, "pgbench");
    assert_eq!(changes(&[&before], &[&complete]), []);
    assert_eq!(changes(&[&before, &complete], &[&complete]), []);
    let longer = complete_with("duration: 20 s");
    let differences = changes(&[&complete], &[&longer]);
    assert_eq!((differences.len(), differences[0].name.as_str()), (1, "stop.duration_s"));
}

fn complete_with(duration: &str) -> Record {
    runs(&format!("{HEADER}{}", results(4, 3000, 300)).replace("duration: 10 s", duration))
        .remove(0)
}
