//! Records that riops exported: an object, an array, or several objects one after the other.

use serde_json::{Deserializer, Value};

use super::error::ImportError;
use super::input::Input;
use super::settings::Settings;
use crate::metrics::Histogram;
use crate::plan::require_printable;
use crate::record::{Record, SCHEMA};

/// Returns the records of an input.
pub(super) fn read(input: Input, settings: &Settings) -> Result<Vec<Record>, ImportError> {
    let name = input.name.clone();
    let text = input.text()?;
    let text = text.trim_start_matches('\u{feff}');
    let mut records = Vec::new();
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let line = line_at(text, values.byte_offset());
        match values.next() {
            None => break,
            Some(Ok(Value::Array(elements))) => {
                for element in elements {
                    records.push(record(element, &name, line)?);
                }
            }
            Some(Ok(value)) => records.push(record(value, &name, line)?),
            Some(Err(error)) => {
                let line = u64::try_from(error.line()).unwrap_or(line);
                return Err(ImportError::line(&name, line, format!("invalid JSON: {error}")));
            }
        }
    }
    if records.is_empty() {
        return Err(ImportError::contents(&name, "the file has no records"));
    }
    for record in &mut records {
        if let Some(label) = &settings.label {
            record.label = Some(label.clone());
            record.plan.label = Some(label.clone());
        }
        record.tags.extend(settings.tags.clone());
        record.plan.tags.extend(settings.tags.clone());
    }
    Ok(records)
}

/// Returns the line of the next value after a byte.
fn line_at(text: &str, offset: usize) -> u64 {
    let rest = text.get(offset..).unwrap_or_default();
    let start = offset + rest.len() - rest.trim_start().len();
    let before = text.get(..start).unwrap_or_default();
    1 + before.bytes().filter(|byte| *byte == b'\n').count() as u64
}

fn record(value: Value, name: &str, line: u64) -> Result<Record, ImportError> {
    let schema = value.get("schema").and_then(Value::as_u64).ok_or_else(|| {
        ImportError::line(name, line, "not a record of riops: the field \"schema\" is missing")
    })?;
    if schema > u64::from(SCHEMA) {
        return Err(ImportError::Newer { file: name.to_owned(), line, found: schema });
    }
    let id = value.get("id").and_then(Value::as_str).unwrap_or("without id").to_owned();
    let damaged =
        |reason: String| ImportError::line(name, line, format!("damaged record {id}: {reason}"));
    let record: Record =
        serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
    require_whole(&record).map_err(damaged)?;
    Ok(record)
}

/// Checks what the types do not: reports rely on it.
fn require_whole(record: &Record) -> Result<(), String> {
    let texts = record.label.iter().chain(record.tags.keys()).chain(record.tags.values());
    require_printable(texts).map_err(|error| error.to_string())?;
    let named = record.plan.work.spec().name();
    if record.workload != named {
        return Err(format!("workload \"{}\" has the parameters of {named}", record.workload));
    }
    for stage in &record.stages {
        let each = &stage.session_loop;
        let of_operations = each.operations.iter().filter_map(|each| each.histogram.as_ref());
        let of_stage = [&each.histogram, &each.response_histogram].into_iter().flatten();
        for histogram in of_stage.chain(of_operations) {
            Histogram::from_base64(histogram).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
