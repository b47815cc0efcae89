//! Records of earlier releases open, print and report forever.
//!
//! Each file in `records/` was written by the release that its `client.riops_version` names, against a
//! real server. They are never changed; a new release may add files.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected has to fail there")]

use std::fs;
use std::path::Path;

use riops::plan::Plan;
use riops::record::Record;
use riops::report;
use riops::store::SqliteStore;
use serde_json::Value;

/// Every stored record with the name of its file.
fn stored() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    files.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

fn opened() -> Vec<(String, Record)> {
    let open = |(file, json): (String, String)| {
        let record = serde_json::from_str(&json)
            .unwrap_or_else(|error| panic!("{file} does not open: {error}"));
        (file, record)
    };
    stored().into_iter().map(open).collect()
}

/// The first place where `new` lacks something of `old`, or has another value.
fn missing(old: &Value, new: &Value, place: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(key, value)| {
            let place = format!("{place}.{key}");
            match new.get(key) {
                Some(new) => missing(value, new, &place),
                None => Some(place),
            }
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(at, (old, new))| missing(old, new, &format!("{place}[{at}]"))),
        (Value::Number(old), Value::Number(new)) => {
            let (old, new) = (old.as_f64()?, new.as_f64()?);
            ((old - new).abs() > 1e-12 * old.abs()).then(|| format!("{place}: {old} became {new}"))
        }
        (old, new) => (old != new).then(|| format!("{place}: {old} became {new}")),
    }
}

#[test]
fn a_stored_record_opens_and_keeps_every_field() {
    for ((file, json), (_, record)) in stored().into_iter().zip(opened()) {
        let old: Value = serde_json::from_str(&json).unwrap();
        let new = serde_json::to_value(&record).unwrap();
        assert_eq!(missing(&old, &new, ""), None, "{file}");
    }
}

#[test]
fn a_stored_record_prints_its_figures() {
    for (file, record) in opened() {
        let text = report::run_text(&record, "somewhere");
        assert!(text.contains(&format!("riops run {}", record.workload)), "{file}: {text}");
        assert!(text.contains(&record.target.server_version), "{file}: {text}");
        let looped = record.stages.iter().filter(|stage| stage.kind != "statement");
        for stage in looped.filter(|stage| stage.rows > 0) {
            let rows_per_s = report::rate(stage.throughput.rows_per_s);
            let transactions_per_s = report::rate(stage.throughput.transactions_per_s);
            let shown = text.contains(&rows_per_s) || text.contains(&transactions_per_s);
            assert!(shown, "{file}: neither {rows_per_s} nor {transactions_per_s} in\n{text}");
        }
    }
}

#[test]
fn a_stored_record_is_a_page_of_the_report() {
    for (file, record) in opened() {
        let id = record.id.to_string();
        let page = report::html(&[record]).unwrap();
        assert!(page.contains(&id), "{file}");
    }
}

#[test]
fn a_stored_record_returns_from_the_store_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("runs.sqlite")).unwrap();
    for (file, record) in opened() {
        store.save(&record).unwrap();
        assert_eq!(store.find(&record.id.to_string()).unwrap(), record, "{file}");
    }
}

#[test]
fn a_stored_record_has_a_plan_that_can_be_repeated() {
    for (file, record) in opened() {
        let plan = record.repeated_plan();
        assert_eq!(plan.validate(), Ok(()), "{file}");
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::from_json(&json), Ok(plan), "{file}");
    }
}
