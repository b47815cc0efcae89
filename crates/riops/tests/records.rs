//! Every release can read, print and report the records of all earlier releases.
//!
//! Each file in `records/` was written against a real server, by the release in its `client.riops_version`.
//! The files never change; a new release may add files.

#![expect(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use riops::comparison::{self, Group};
use riops::host::Interrupt;
use riops::plan::Plan;
use riops::record::Record;
use riops::report;
use riops::report::export::{CsvRows, ExportFormat, export};
use riops::stats;
use riops::store::{self, RunFilter, StoreLocation};
use riops::summary::Sort;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// Returns the file name and JSON text of every stored record.
fn stored() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    files.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

fn parsed() -> Vec<(String, Record)> {
    let parse = |(file, json): (String, String)| {
        let record = serde_json::from_str(&json)
            .unwrap_or_else(|error| panic!("cannot parse {file}: {error}"));
        (file, record)
    };
    stored().into_iter().map(parse).collect()
}

/// Returns the first path at which `new` lacks a value of `old` or has a different one.
fn difference(old: &Value, new: &Value, path: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match new.get(key) {
                Some(new) => difference(value, new, &path),
                None => Some(path),
            }
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(at, (old, new))| difference(old, new, &format!("{path}[{at}]"))),
        (Value::Number(old), Value::Number(new)) => {
            let (old, new) = (old.as_f64()?, new.as_f64()?);
            ((old - new).abs() > 1e-12 * old.abs()).then(|| format!("{path}: {old} became {new}"))
        }
        (old, new) => (old != new).then(|| format!("{path}: {old} became {new}")),
    }
}

#[test]
fn a_stored_record_keeps_every_field_when_read_and_written() {
    for ((file, json), (_, record)) in stored().into_iter().zip(parsed()) {
        let old: Value = serde_json::from_str(&json).unwrap();
        let new = serde_json::to_value(&record).unwrap();
        assert_eq!(difference(&old, &new, ""), None, "{file}");
    }
}

#[test]
fn a_stored_record_prints_its_rates() {
    for (file, record) in parsed() {
        let text = report::run_text(&record, "somewhere", usize::MAX);
        let title = match &record.imported {
            Some(_) => "imported from ".to_owned(),
            None => format!("riops run {}", record.workload),
        };
        assert!(text.contains(&title), "{file}: {text}");
        assert!(text.contains(&record.target.server_version), "{file}: {text}");
        let loops = record.stages.iter().filter(|stage| stage.kind.as_str() != "statement");
        for stage in loops.filter(|stage| stage.rows > 0) {
            let rows_per_s = riops::units::format::rate(stage.throughput.rows_per_s);
            let transactions_per_s =
                riops::units::format::rate(stage.throughput.transactions_per_s);
            let shown = text.contains(&rows_per_s) || text.contains(&transactions_per_s);
            assert!(shown, "{file}: neither {rows_per_s} nor {transactions_per_s} in\n{text}");
        }
    }
}

/// The widths of terminals. No text is laid out for fewer columns.
const WIDTHS: RangeInclusive<usize> = 40..=200;

/// Returns the lines that are too wide for one of the terminals. A word that is longer than a line, such as an id, is
/// alone on its line.
fn too_wide(text: impl Fn(usize) -> String) -> Vec<String> {
    let lines = |width| {
        let text = text(width);
        let is_word = |line: &str| !line.trim().contains(' ');
        let wide = text.lines().filter(|line| line.width() > width && !is_word(line));
        wide.map(|line| format!("{width}: {line}")).collect::<Vec<_>>()
    };
    WIDTHS.flat_map(lines).collect()
}

#[test]
fn no_line_of_a_stored_record_is_wider_than_the_terminal() {
    let none = [""; 0];
    for (file, record) in parsed() {
        assert_eq!(too_wide(|width| report::run_text(&record, "somewhere", width)), none, "{file}");
        let (name, records) = ("a", std::slice::from_ref(&record));
        let repeats = report::repeats_document(records, "repeat=1", "");
        assert_eq!(too_wide(|width| report::document_text(&repeats, width)), none, "{file}");
        let mut other = record.clone();
        other.id = uuid::Uuid::from_u128(record.id.as_u128() ^ 1);
        other.target.settings.insert("jit".to_owned(), "changed".to_owned());
        let (a, b) = (Group { name, records }, Group { name: "b", records: &[other] });
        let comparison = comparison::compare(a, b, &stats::Settings::default()).unwrap();
        let text = |width| report::findings_text(&report::comparison(&comparison), width);
        assert_eq!(too_wide(text), none, "{file}");
    }
}

#[test]
fn no_line_of_a_list_of_stored_records_is_wider_than_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("runs.sqlite"));
    let store = store::open(&location, &Interrupt::new()).unwrap();
    for (_, record) in parsed() {
        store.save(&record).unwrap();
    }
    let runs = store.list(&RunFilter::default()).unwrap();
    let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    let stages = store.stages(&ids).unwrap();
    for stages in [None, Some(stages.as_slice())] {
        let lines = riops::summary::run_lines(&runs, stages, Sort::default());
        assert_eq!(too_wide(|width| report::runs_table(&lines, width)), [""; 0]);
    }
}

#[test]
fn a_stored_record_renders_as_a_page_as_markdown_and_as_images() {
    for (file, record) in parsed() {
        let id = record.id.to_string();
        let page = report::html(std::slice::from_ref(&record), None).unwrap();
        assert!(page.contains(&id), "{file}");
        assert!(page.matches("data-chart=").count() >= 3, "{file}");
        let text = report::markdown(std::slice::from_ref(&record), None);
        assert!(text.contains(&id) && text.contains("| valid |"), "{file}: {text}");
        for chart in report::charts(&record) {
            let image = report::chart_png(&chart, &file).unwrap();
            assert!(image.starts_with(b"\x89PNG"), "{file}: {}", chart.title);
        }
    }
}

#[test]
fn the_stored_records_of_all_workloads_fit_one_page() {
    let records: Vec<_> = parsed().into_iter().map(|(_, record)| record).collect();
    let page = report::html(&records, None).unwrap();
    assert_eq!(page.matches("aria-label=\"Run ").count(), records.len());
    assert!(page.contains("none: the runs are shown side by side"));
}

#[test]
fn a_stored_record_survives_the_run_store_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("runs.sqlite"));
    let store = store::open(&location, &Interrupt::new()).unwrap();
    for (file, record) in parsed() {
        store.save(&record).unwrap();
        assert_eq!(store.find(&record.id.to_string()).unwrap(), record, "{file}");
    }
}

#[test]
fn the_plan_of_a_stored_record_can_be_repeated() {
    for (file, record) in parsed() {
        let plan = record.repeated_plan();
        assert_eq!(plan.validate().is_ok(), record.imported.is_none(), "{file}");
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::from_json(&json), Ok(plan), "{file}");
    }
}

#[test]
fn stored_records_can_be_compared() {
    for (file, mut record) in parsed() {
        // For an imported run, a setting that only one side has is not a difference: both sides get one.
        record.target.settings.insert("jit".to_owned(), "on".to_owned());
        let mut other = record.clone();
        other.id = uuid::Uuid::from_u128(record.id.as_u128() ^ 1);
        other.target.settings.insert("jit".to_owned(), "changed".to_owned());
        let (a, b) = ([record], [other]);
        let group = |name, records| Group { name, records };
        let settings = stats::Settings::default();
        let comparison = comparison::compare(group("a", &a[..]), group("b", &b[..]), &settings)
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(comparison.changes.len(), 1, "{file}: {:?}", comparison.changes);
        assert!(comparison.figures().count() > 0, "{file}");
        let text = report::findings_text(&report::comparison(&comparison), usize::MAX);
        assert!(text.contains("setting: jit") && text.contains(" 0.0%"), "{file}: {text}");
    }
}

#[test]
fn a_stored_record_exports_in_every_format() {
    for (file, record) in parsed() {
        let id = record.id.to_string();
        let loops = record.stages.iter().map(|stage| &stage.session_loop);
        let points: usize = loops.clone().map(|session_loop| session_loop.series.len()).sum();
        let one = std::slice::from_ref(&record);
        let json = export(one, ExportFormat::Json).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record, "{file}");
        let rows = |rows| {
            let text = export(one, ExportFormat::Csv(rows)).unwrap();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
            assert!(rows.iter().all(|row| row.get(0) == Some(&id)), "{file}: {text}");
            rows.len()
        };
        assert_eq!(rows(CsvRows::Stages), record.stages.len(), "{file}");
        assert_eq!(rows(CsvRows::Series), points, "{file}");
        let has_latencies = loops.clone().any(|session_loop| session_loop.histogram.is_some());
        assert_eq!(rows(CsvRows::Latencies) > 0, has_latencies, "{file}");
        let metrics = export(one, ExportFormat::OpenMetrics).unwrap();
        assert!(metrics.ends_with("# EOF\n"), "{file}");
        assert_eq!(metrics.contains("riops_transactions_total"), points > 0, "{file}");
    }
}
