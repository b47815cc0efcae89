//! The table of experiments.
//!
//! Their JSON is text for a store: the module that defines it uses the store.

use jiff::Timestamp;

use super::backend::{Session, first, id_by_part};
use super::error::StoreError;
use super::experiment_lock::{ExperimentLock, LockKey};
use super::shared::{EditNotes, Store};
use super::value::fields;
use crate::figure::Value;
use crate::record::{ExperimentId, Note};
use crate::summary::{ExperimentSummary, Reader};

const DELETE: &str = include_str!("../../sql/store/experiment_delete.sql");
const EXPERIMENT: &str = include_str!("../../sql/store/experiment.sql");
const IDS_BY_NAME: &str = include_str!("../../sql/store/experiment_ids_by_name.sql");
const LAST: &str = include_str!("../../sql/store/experiment_last.sql");
const LIST: &str = include_str!("../../sql/store/experiments.sql");
const UPDATE: &str = include_str!("../../sql/store/experiment_update.sql");
const UPDATE_NOTES: &str = include_str!("../../sql/store/experiment_notes_update.sql");

/// An experiment as it is stored. Times have microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredExperiment {
    /// Id.
    pub id: ExperimentId,
    /// Name; several experiments can have the same one.
    pub name: String,
    /// What it searches for, for example `sweep`.
    pub kind: String,
    /// When it was defined.
    pub created_at: Timestamp,
    /// Its definition, as JSON.
    pub definition: String,
    /// The part that changes.
    pub state: ExperimentState,
    /// What people wrote about it.
    pub notes: Vec<Note>,
}

/// The part of a stored experiment that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentState {
    /// When its last run ended; absent: it is unfinished.
    pub finished_at: Option<Timestamp>,
    /// The runs that failed, as JSON.
    pub failures: String,
    /// The environment in which it started, as JSON; absent before its first run.
    pub environment: Option<String>,
}

impl Default for ExperimentState {
    fn default() -> Self {
        Self { finished_at: None, failures: "[]".to_owned(), environment: None }
    }
}

impl Store {
    /// Stores an experiment, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::ExperimentExists`] if an experiment with this id is stored already.
    pub fn save_experiment(&self, experiment: &StoredExperiment) -> Result<(), StoreError> {
        let saved = self.write(|session| insert(session, experiment));
        let exists = |session: &mut dyn Session| exists(session, &experiment.id);
        self.confirmed(saved, exists)
    }

    /// Replaces the state of the experiment with this full id, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::ExperimentNotFound`] if there is none.
    pub fn update_experiment(&self, id: &str, state: &ExperimentState) -> Result<(), StoreError> {
        let parameters = [
            id.into(),
            Value::from(state.finished_at),
            state.failures.as_str().into(),
            Value::from(state.environment.as_deref()),
        ];
        self.write(|session| {
            let sql = session.dialect().fill(UPDATE);
            if session.query(&sql, &parameters)?.is_empty() {
                return Err(StoreError::ExperimentNotFound(id.to_owned()));
            }
            Ok(())
        })
    }

    /// Changes the notes of the experiment with this full id, in one transaction.
    ///
    /// # Errors
    /// As [`Self::experiment`].
    pub fn edit_experiment_notes(&self, id: &str, edit: EditNotes<'_>) -> Result<(), StoreError> {
        let location = self.location();
        let json = |notes: &Vec<Note>| {
            let json = serde_json::to_string(notes);
            json.map_err(|source| StoreError::Json { id: id.to_owned(), source })
        };
        // Another process may change them between reading and writing.
        loop {
            let is_done = self.write(|session| {
                let mut notes = find(session, &location, id)?.notes;
                let before = json(&notes)?;
                edit(&mut notes);
                let parameters = [id.into(), json(&notes)?.into(), before.into()];
                Ok(!session.query(UPDATE_NOTES, &parameters)?.is_empty())
            })?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Removes the experiment with this full id. Its runs remain.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn remove_experiment(&self, id: &str) -> Result<(), StoreError> {
        self.write(|session| session.query(DELETE, &[id.into()]).map(drop))
    }

    /// Returns an experiment by its name (the newest one with this name), by the start or the end of its id, or
    /// the newest one for `last`. A name precedes an id.
    ///
    /// # Errors
    /// [`StoreError::ExperimentNotFound`], [`StoreError::AmbiguousExperiment`] or [`StoreError::NoExperiments`] if
    /// no single experiment matches.
    pub fn experiment(&self, part: &str) -> Result<StoredExperiment, StoreError> {
        let location = self.location();
        self.read(|session| {
            let id = id_in(session, &location, part)?;
            find(session, &location, &id)
        })
    }

    /// Returns all experiments, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn experiments(&self) -> Result<Vec<ExperimentSummary>, StoreError> {
        let location = self.location();
        let sql = LIST.replace("{columns}", &ExperimentSummary::columns());
        let rows = self.read(|session| session.query(&sql, &[]))?.into_iter();
        rows.map(|row| Ok(ExperimentSummary::read(&mut Reader::new(&location, row))?)).collect()
    }

    /// Returns the right to conduct the experiment with this full id; `None` if another process conducts it. The
    /// right ends when the lock is dropped or the process ends, even if it is killed. The experiment need not be
    /// stored yet.
    ///
    /// # Errors
    /// [`StoreError`] if the lock cannot be requested.
    pub fn lock_experiment(&self, id: &ExperimentId) -> Result<Option<ExperimentLock>, StoreError> {
        self.backend.lock(LockKey::Experiment(id))
    }

    /// Returns the right to conduct experiments in the fleet with this name, in the same way.
    ///
    /// # Errors
    /// As [`Self::lock_experiment`].
    pub fn lock_fleet(&self, name: &str) -> Result<Option<ExperimentLock>, StoreError> {
        self.backend.lock(LockKey::Fleet(name))
    }
}

/// Returns the full id of an experiment.
fn id_in(session: &mut dyn Session, location: &str, part: &str) -> Result<String, StoreError> {
    if part == "last" {
        let rows = session.query(LAST, &[])?;
        return first(rows).ok_or_else(|| StoreError::NoExperiments(location.to_owned()));
    }
    if let Some(id) = first(session.query(IDS_BY_NAME, &[part.into()])?) {
        return Ok(id);
    }
    id_by_part(session, "experiments", part)?.map_err(|count| match count {
        0 => StoreError::ExperimentNotFound(part.to_owned()),
        count => StoreError::AmbiguousExperiment { prefix: part.to_owned(), count },
    })
}

/// Returns whether an experiment has this full id.
fn exists(session: &mut dyn Session, id: &str) -> Result<bool, StoreError> {
    Ok(!session.query(EXPERIMENT, &[id.into()])?.is_empty())
}

fn insert(session: &mut dyn Session, experiment: &StoredExperiment) -> Result<(), StoreError> {
    if exists(session, &experiment.id)? {
        return Err(StoreError::ExperimentExists(experiment.id.to_string()));
    }
    let StoredExperiment { id, name, kind, created_at, definition, state, notes: _ } = experiment;
    let row = fields! {
        id: &**id,
        name: name,
        kind: kind,
        created_at: created_at,
        finished_at: state.finished_at,
        definition: definition;
        state => { failures, environment }
    };
    session.insert("experiments", &[row])
}

/// Returns the experiment with this full id.
fn find(
    session: &mut dyn Session,
    location: &str,
    id: &str,
) -> Result<StoredExperiment, StoreError> {
    let row = session.query(EXPERIMENT, &[id.into()])?.into_iter().next();
    let row = row.ok_or_else(|| StoreError::ExperimentNotFound(id.to_owned()))?;
    let mut row = Reader::new(location, row);
    // Rust evaluates the calls in this order, which is the order of the columns.
    let (id, name, kind, created_at) = (row.read()?, row.read()?, row.read()?, row.read()?);
    let (finished_at, definition) = (row.read()?, row.read()?);
    let state = ExperimentState { finished_at, failures: row.read()?, environment: row.read()? };
    let notes = row.read()?;
    Ok(StoredExperiment { id, name, kind, created_at, definition, state, notes })
}
