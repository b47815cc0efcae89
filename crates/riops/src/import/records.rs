//! Records of riops: exported records (an object, an array, or several objects one after the other), and the records of a
//! store, which is a SQLite file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::error::ImportError;
use super::format::Settings;
use super::input::Input;
use super::objects::Objects;
use super::results::{Imports, require_sums};
use crate::host::Interrupt;
use crate::plan::{pairs, require_public};
use crate::record::{Record, SCHEMA};
use crate::store::{StoreError, StoreLocation, all_runs, open_existing};

/// Returns the records of an input.
pub(super) fn read(input: Input, settings: &Settings) -> Result<Vec<Record>, ImportError> {
    let name = input.name.clone();
    let mut objects = Objects::new(input.into_reader(), name.clone());
    let mut records = Vec::new();
    while let Some((line, object)) = objects.next()? {
        records.push(record(&object, &name, line)?);
    }
    if records.is_empty() {
        return Err(ImportError::contents(&name, "the file has no records"));
    }
    for record in &mut records {
        mark(record, settings);
    }
    Ok(records)
}

/// Sets the label and the tags.
fn mark(record: &mut Record, settings: &Settings) {
    if let Some(label) = &settings.label {
        record.label = Some(label.clone());
        record.plan.label = Some(label.clone());
    }
    record.tags.extend(settings.tags.clone());
    record.plan.tags.extend(settings.tags.clone());
}

/// The fields that are read first: the rest may have another form in a newer version.
#[derive(Deserialize)]
struct Head {
    schema: Option<u64>,
    id: Option<String>,
}

fn record(object: &[u8], name: &str, line: u64) -> Result<Record, ImportError> {
    let line_of = |error: &serde_json::Error| line + (error.line() as u64).saturating_sub(1);
    let head: Head = serde_json::from_slice(object).map_err(|error| {
        ImportError::line(name, line_of(&error), format!("invalid JSON: {error}"))
    })?;
    let schema = head.schema.ok_or_else(|| {
        ImportError::line(name, line, "not a record of riops: the field \"schema\" is missing (if results of another tool follow, use --from)")
    })?;
    if schema > u64::from(SCHEMA) {
        return Err(ImportError::Newer { file: name.to_owned(), line, schema });
    }
    let id = head.id.unwrap_or_else(|| "without id".to_owned());
    let damaged = |line: u64, reason: String| {
        ImportError::line(name, line, format!("damaged record {id}: {reason}"))
    };
    let text = str::from_utf8(object).map_err(|error| damaged(line, error.to_string()))?;
    let record: Record =
        serde_json::from_str(text).map_err(|error| damaged(line_of(&error), error.to_string()))?;
    require_whole(&record).map_err(|reason| damaged(line, reason))?;
    Ok(record)
}

/// Checks what the types do not: reports rely on it.
fn require_whole(record: &Record) -> Result<(), String> {
    let texts = record.label.iter().cloned().chain(pairs(&record.tags));
    require_public(texts).map_err(|error| error.to_string())?;
    let named = record.plan.work.traits().name;
    if record.workload != named {
        return Err(format!("workload \"{}\" has the parameters of {named}", record.workload));
    }
    require_sums(record)?;
    for stage in &record.stages {
        let session_loop = &stage.session_loop;
        let of_operations =
            session_loop.operations.iter().filter_map(|operation| operation.histogram.as_ref());
        let of_stage =
            [&session_loop.histogram, &session_loop.response_histogram].into_iter().flatten();
        for histogram in of_stage.chain(of_operations) {
            histogram.decode().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The first bytes of every SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Whether a file is a SQLite file.
pub fn is_store(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == SQLITE
}

/// Returns the runs of a store, oldest first.
///
/// # Errors
/// [`ImportError::Store`] if the file is not a store or cannot be read, [`ImportError::Contents`] for a damaged record.
pub fn store_runs(
    path: &Path,
    settings: &Settings,
    interrupt: &Interrupt,
) -> Result<Imports, ImportError> {
    let location = StoreLocation::File(path.to_owned());
    let store = open_existing(&location, interrupt)?
        .ok_or_else(|| StoreError::Empty(location.to_string()))?;
    let name = location.to_string();
    let mut imports = Imports::default();
    for mut record in all_runs(&store)? {
        require_whole(&record).map_err(|reason| {
            ImportError::contents(&name, format!("damaged record {}: {reason}", record.id))
        })?;
        mark(&mut record, settings);
        imports.records.push(record);
    }
    if imports.records.is_empty() {
        return Err(ImportError::contents(&name, "the store has no runs"));
    }
    let experiments = store.experiments()?.len();
    if experiments > 0 {
        imports
            .notices
            .push(format!("{name}: {experiments} experiments were not imported, only their runs"));
    }
    Ok(imports)
}
