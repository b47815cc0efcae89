//! Stores imported records: all of them or none.

use super::error::ImportError;
use crate::record::{Record, StageRecord};
use crate::store::{Store, StoreError};

/// What an import stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Ids of the new runs.
    pub ids: Vec<String>,
    /// Ids of the runs that were stored already, with the same results.
    pub known: Vec<String>,
}

/// Stores the records. Runs that are stored already are skipped.
///
/// # Errors
/// [`ImportError::Conflict`] if another run with the same id is stored, [`ImportError::Store`] if the store cannot
/// be accessed. Then no run was added.
pub fn store(store: &Store, records: &[Record]) -> Result<Stored, ImportError> {
    let mut stored = Stored::default();
    let mut new: Vec<&Record> = Vec::new();
    for record in records {
        let id = record.id.to_string();
        let in_files = new.iter().find(|other| is_same_id(record, other));
        let in_files = in_files.map(|other| (*other).clone());
        match in_files.map_or_else(|| existing(store, record), |other| Ok(Some(other)))? {
            None => {
                new.push(record);
                stored.ids.push(id);
            }
            Some(other) if is_same(record, &other) => stored.known.push(other.id.to_string()),
            Some(_) => return Err(ImportError::Conflict(id)),
        }
    }
    for (position, record) in new.iter().enumerate() {
        if let Err(error) = store.save(record) {
            for saved in new.iter().take(position) {
                // The first error is reported; a store that cannot be written cannot be cleaned up either.
                let _ = store.remove(&saved.id.to_string());
            }
            return Err(error.into());
        }
    }
    Ok(stored)
}

/// Characters of an id that do not depend on the time of the run: the last two groups of a UUID.
const HASH_CHARS: usize = 17;

/// The part of an id that a second import of the same results finds again.
fn lasting<'a>(id: &'a str, record: &Record) -> &'a str {
    match &record.imported {
        Some(_) => id.get(id.len().saturating_sub(HASH_CHARS)..).unwrap_or(id),
        None => id,
    }
}

fn is_same_id(record: &Record, other: &Record) -> bool {
    let id = record.id.to_string();
    other.id.to_string().ends_with(lasting(&id, record))
}

/// Returns the stored run with the same id. The id of a run of another tool may contain the time of the file; the rest of
/// the id is a hash of the results.
fn existing(store: &Store, record: &Record) -> Result<Option<Record>, StoreError> {
    let id = record.id.to_string();
    match store.find(lasting(&id, record)) {
        Ok(stored) => Ok(Some(stored)),
        Err(StoreError::NotFound(_) | StoreError::Empty(_) | StoreError::NoMatch { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether two records have the same results. Label and tags may have been changed since. For other tools, only the
/// results count: a file and a database may contain the same ones.
fn is_same(one: &Record, other: &Record) -> bool {
    if one.imported.is_some() && other.imported.is_some() {
        let stages = |record: &Record| {
            let stages = record.stages.iter().cloned();
            stages.map(|stage| StageRecord { started_at: None, ..stage }).collect::<Vec<_>>()
        };
        return one.plan.work == other.plan.work && stages(one) == stages(other);
    }
    let unlabeled = |record: &Record| {
        let mut record = record.clone();
        (record.label, record.plan.label) = (None, None);
        record.tags.clear();
        record.plan.tags.clear();
        record
    };
    unlabeled(one) == unlabeled(other)
}
