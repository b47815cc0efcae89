#![no_main]
//! Stored records as JSON ([`document`]). The first byte also chooses the reports.

#[path = "support/document.rs"]
mod document;
#[path = "support/reports.rs"]
mod reports;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use riops::record::Record;
use riops::report::{Scale, chart_png, charts, scatter_png};
use serde::Deserialize;
use serde_json::Value;

/// First bytes from here on choose images. They take seconds in a fuzzer.
const IMAGES: u8 = 248;

static RECORDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../crates/riops-model/tests/records/imported.json"),
        include_str!("../../crates/riops-model/tests/records/ping.json"),
        include_str!("../../crates/riops-model/tests/records/load.json"),
        include_str!("../../crates/riops-model/tests/records/point.json"),
        include_str!("../../crates/riops-model/tests/records/oltp.json"),
        include_str!("../../crates/riops-model/tests/records/rows.json"),
        include_str!("../../crates/riops-model/tests/records/script.json"),
        include_str!("../../crates/riops-model/tests/records/cbc.json"),
    ];
    let mut records = texts.map(|text| serde_json::from_str(text).expect("a record is JSON"));
    // Short lists are fast, and their values have small numbers. One record keeps its histograms.
    records.iter_mut().for_each(shorten);
    records.iter_mut().skip(1).for_each(|record| remove(record, "histogram"));
    records.into()
});

/// Sums of larger counts would overflow. riops counts what happens, and does not exceed this.
const COUNT_MAX: u64 = 1 << 40;

fn shorten(value: &mut Value) {
    match value {
        Value::Array(elements) => {
            elements.truncate(2);
            elements.iter_mut().for_each(shorten);
        }
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn remove(value: &mut Value, name: &str) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| remove(element, name)),
        Value::Object(members) => {
            members.retain(|member, _| !member.ends_with(name));
            members.values_mut().for_each(|member| remove(member, name));
        }
        _ => {}
    }
}

fn limit(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(limit),
        Value::Object(members) => members.values_mut().for_each(limit),
        Value::Number(value) => {
            if let Some(large) = value.as_u64().filter(|value| *value > COUNT_MAX) {
                *value = (large % COUNT_MAX).into();
            }
        }
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = document::document(bytes, &RECORDS);
    let value = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let Some(mut value) = value else {
        return;
    };
    limit(&mut value);
    let Ok(record) = Record::deserialize(value) else {
        return;
    };
    let json = serde_json::to_string(&record).expect("a record can be written");
    let _ = serde_json::from_str::<Record>(&json).expect("a record can be read again");
    let _ = record.repeated_plan().validate();
    let first = bytes.first().copied().unwrap_or_default();
    if first < IMAGES {
        reports::render(&record, first >> 3);
    } else {
        for chart in charts(&record) {
            let _ = chart_png(&chart, "fuzz");
        }
        for scale in [Scale::Linear, Scale::Log] {
            let _ = scatter_png(&record, scale);
        }
    }
});
