//! Records whose strings contain what a terminal obeys, in every form: nothing of it reaches the output, and no value
//! starts another line.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test panics at the first unexpected value"
)]

use std::path::Path;

use riops::comparison::{self, Group};
use riops::record::Record;
use riops::report::export::{CsvRows, ExportFormat, export};
use riops::report::{self, Extras, Form, Repetition};
use riops::stats::Settings;
use riops::units::text::{is_unprintable, lines};
use serde_json::Value;

const FORGED: &str = "FORGED";
const HOSTILE: &str = "x\u{1b}[2J\u{9b}1m\u{7f}\u{202e}\u{2066}\u{200f}\r\nFORGED\u{2028}";
/// Strings that have a form of their own, which a record must keep.
const ENCODED: [&str; 4] = ["histogram", "response_histogram", "points", "id"];

/// Appends the text to each string with which the record can still be read. Returns how many these are.
fn poison(record: &mut Value, pointer: &str) -> usize {
    let keys: Vec<String> = match record.pointer(pointer).unwrap() {
        Value::Object(fields) => fields.keys().cloned().collect(),
        Value::Array(values) => (0..values.len()).map(|index| index.to_string()).collect(),
        Value::String(text) => {
            let text = text.clone();
            *record.pointer_mut(pointer).unwrap() = format!("{text}{HOSTILE}").into();
            if serde_json::from_value::<Record>(record.clone()).is_ok() {
                return 1;
            }
            *record.pointer_mut(pointer).unwrap() = text.into();
            return 0;
        }
        _ => return 0,
    };
    let keys = keys.iter().filter(|key| !ENCODED.contains(&key.as_str()));
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    keys.map(|key| poison(record, &format!("{pointer}/{}", escaped(key)))).sum()
}

fn records() -> Vec<(String, Record)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let poisoned = |file: std::path::PathBuf| {
        let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        record["label"] = "label".into();
        record["tags"] = serde_json::json!({ format!("key{HOSTILE}"): "value" });
        // The series has no strings, and would be copied with each of them.
        for stage in record["stages"].as_array_mut().unwrap() {
            stage["session_loop"]["series"] = Value::Array(Vec::new());
        }
        let strings = poison(&mut record, "");
        assert!(strings > 12, "{}: only {strings} strings", file.display());
        (file.display().to_string(), serde_json::from_value(record).unwrap())
    };
    files.map(poisoned).collect()
}

fn assert_harmless(name: &str, text: &str) {
    let raw =
        text.replace("\r\n", "\n").chars().find(|&c| is_unprintable(c) && !"\n\t".contains(c));
    assert_eq!(raw, None, "{name}: {text}");
}

fn assert_own_lines(name: &str, text: &str) {
    assert_harmless(name, &lines(text));
    let forged = text.lines().find(|line| line.starts_with(FORGED));
    assert_eq!(forged, None, "{name}: {text}");
}

#[test]
fn no_form_contains_control_characters_or_lets_a_value_start_a_line() {
    for (name, record) in records() {
        // The test of exports below has the forms for programs. A browser shows pages.
        let others = ["png", "csv", "openmetrics", "html"];
        let fits = |form: &&Form| (form.fits)(&record.plan) && !others.contains(&form.name);
        for form in report::FORMS.iter().filter(fits) {
            let name = format!("{name} as {}", form.name);
            let text = (form.print)(&record, &Extras::new("nowhere", 100)).unwrap().into_text();
            assert_own_lines(&name, &text);
            if form.name == "json" {
                assert_harmless(&name, &text);
                assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record, "{name}");
            }
            let histogram = Some((report::Scale::Log, 5));
            let extras = Extras::new("nowhere", 60).with_histogram(histogram);
            assert_own_lines(&name, &(form.print)(&record, &extras).unwrap().into_text());
        }
        assert_own_lines(&name, &report::markdown(std::slice::from_ref(&record), None));
        let first = Repetition { ordinal: 1, count: 2 };
        assert_own_lines(&name, &report::repeat_line(&record, first, &Extras::new("", 80)));
    }
}

#[test]
fn no_export_contains_control_characters() {
    for (name, record) in records() {
        for rows in [CsvRows::Stages, CsvRows::Series, CsvRows::Latencies] {
            let text = export(std::slice::from_ref(&record), ExportFormat::Csv(rows)).unwrap();
            assert_harmless(&name, &text);
        }
        let both = [record.clone(), record.clone()];
        let text = export(&both, ExportFormat::Json).unwrap();
        assert_own_lines(&name, &text);
        assert_harmless(&name, &text);
        let text = export(&both[..1], ExportFormat::OpenMetrics).unwrap();
        assert_own_lines(&name, &text);
        assert_harmless(&name, &text);
    }
}

#[test]
fn no_comparison_contains_control_characters() {
    for (name, a) in records() {
        let mut b = a.clone();
        b.id = "01890000-0000-7000-8000-0000000000bb".parse().unwrap();
        b.target.settings.insert("extra".to_owned(), HOSTILE.to_owned());
        b.target.database = "another".to_owned();
        let (a, b) = ([a], [b]);
        let group = |records| Group { name: HOSTILE, records };
        let Ok(comparison) = comparison::compare(group(&a), group(&b), &Settings::default()) else {
            continue;
        };
        assert_own_lines(&name, &report::findings_text(&report::comparison(&comparison), 100));
        assert_own_lines(&name, &report::findings_markdown(&report::comparison(&comparison)));
    }
}
