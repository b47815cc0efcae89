//! What every store offers.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::experiment_lock::ExperimentLock;
use super::experiments::{ExperimentState, ExperimentSummary, StoredExperiment};
use super::filter::{RunFilter, Sort};
use super::summary::{RunSummary, StageSummary};
use crate::record::{DiskLimit, Note, Record};
use crate::run::History;

/// A change of notes.
pub type EditNotes<'a> = &'a dyn Fn(&mut Vec<Note>);

/// Stored runs and device limits.
///
/// A run is named by the start or the end of its id, or by `last`, wherever a parameter is called `run`.
pub trait Store: Send {
    /// Returns the path of the file, or the URL of the database without its password.
    fn location(&self) -> String;

    /// Fails if no run can be stored: before the run instead of after it. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written.
    fn require_writable(&self) -> Result<(), StoreError>;

    /// Stores a record, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if a run with this id is stored already, otherwise as for every method:
    /// [`StoreError`] if the store cannot be accessed.
    fn save(&self, record: &Record) -> Result<(), StoreError>;

    /// Returns the full id of a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Ambiguous`] or [`StoreError::Empty`] if no single run matches.
    fn id(&self, run: &str) -> Result<String, StoreError>;

    /// Returns a record.
    ///
    /// # Errors
    /// As [`Self::id`], and [`StoreError::Json`] if the record cannot be decoded.
    fn find(&self, run: &str) -> Result<Record, StoreError>;

    /// Returns the records with a label, with a tag (`key=value` or `key`), or the record of a run, oldest
    /// first. A label precedes a tag, and a tag precedes an id.
    ///
    /// # Errors
    /// As [`Self::find`].
    fn select(&self, text: &str) -> Result<Vec<Record>, StoreError>;

    /// Returns the runs that match the filter. Reads no records.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns the stages of these runs, in the order of the given full ids. Reads no records.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn stages(&self, run_ids: &[String]) -> Result<Vec<StageSummary>, StoreError>;

    /// Sets and removes tags, in the table and in the record.
    ///
    /// # Errors
    /// As [`Self::find`].
    fn tag(
        &self,
        run: &str,
        set: &BTreeMap<String, String>,
        remove: &[String],
    ) -> Result<(), StoreError>;

    /// Sets or removes the label, in the table and in the record.
    ///
    /// # Errors
    /// As [`Self::find`].
    fn set_label(&self, run: &str, label: Option<&str>) -> Result<(), StoreError>;

    /// Changes the notes of a run. The edit may be made again, if the store has to repeat its transaction.
    ///
    /// # Errors
    /// As [`Self::find`].
    fn edit_notes(&self, run: &str, edit: EditNotes<'_>) -> Result<(), StoreError>;

    /// Removes a run.
    ///
    /// # Errors
    /// As [`Self::id`].
    fn remove(&self, run: &str) -> Result<(), StoreError>;

    /// Stores the measured limits of a device of a machine; replaces older ones.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn save_disk_limit(&self, host: &str, limit: &DiskLimit) -> Result<(), StoreError>;

    /// Returns the stored limits of the device with this identity. Limits without identity, measured before
    /// it was stored or on a machine without one, are found by the names of machine and device.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn disk_limit(
        &self,
        host: &str,
        device: &str,
        identity: Option<&str>,
    ) -> Result<Option<DiskLimit>, StoreError>;

    /// Stores an experiment, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::ExperimentExists`] if an experiment with this id is stored already.
    fn save_experiment(&self, experiment: &StoredExperiment) -> Result<(), StoreError>;

    /// Replaces the state of the experiment with this full id, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::ExperimentNotFound`] if there is none.
    fn update_experiment(&self, id: &str, state: &ExperimentState) -> Result<(), StoreError>;

    /// Changes the notes of the experiment with this full id, in one transaction.
    ///
    /// # Errors
    /// As [`Self::experiment`].
    fn edit_experiment_notes(&self, id: &str, edit: EditNotes<'_>) -> Result<(), StoreError>;

    /// Removes the experiment with this full id. Its runs remain.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn remove_experiment(&self, id: &str) -> Result<(), StoreError>;

    /// Returns an experiment by its name (the newest one with this name), by the start or the end of its id, or
    /// the newest one for `last`. A name precedes an id.
    ///
    /// # Errors
    /// [`StoreError::ExperimentNotFound`], [`StoreError::AmbiguousExperiment`] or [`StoreError::NoExperiments`] if
    /// no single experiment matches.
    fn experiment(&self, part: &str) -> Result<StoredExperiment, StoreError>;

    /// Returns all experiments, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    fn experiments(&self) -> Result<Vec<ExperimentSummary>, StoreError>;

    /// Returns the right to conduct the experiment with this full id; `None` if another process conducts it. The
    /// right ends when the lock is dropped or the process ends, even if it is killed. The experiment need not be
    /// stored yet.
    ///
    /// # Errors
    /// [`StoreError`] if the lock cannot be requested.
    fn lock_experiment(&self, id: &str) -> Result<Option<ExperimentLock>, StoreError>;
}

/// Returns the records of all runs, oldest first.
///
/// # Errors
/// [`StoreError`] if the store cannot be accessed or a record cannot be decoded.
pub fn all_runs(store: &dyn Store) -> Result<Vec<Record>, StoreError> {
    let filter = RunFilter { sort: Sort::parse("started_at:asc")?, ..RunFilter::default() };
    store.list(&filter)?.iter().map(|run| store.find(&run.id)).collect()
}

impl History for Box<dyn Store> {
    fn record(&self, id: &str) -> Option<Record> {
        self.find(id).ok()
    }

    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit> {
        self.as_ref().disk_limit(host, device, identity).ok().flatten()
    }
}
