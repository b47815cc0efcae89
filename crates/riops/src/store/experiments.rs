//! The table of experiments.
//!
//! Their JSON is text for a store: the module that defines it uses the store.

use jiff::Timestamp;
use serde::Serialize;

use super::backend::{Session, first, id_by_part};
use super::error::StoreError;
use super::value::{Reader, columns, fields, time_text};
use crate::record::Note;

const EXPERIMENT: &str = include_str!("../../sql/store/experiment.sql");
const IDS_BY_NAME: &str = include_str!("../../sql/store/experiment_ids_by_name.sql");
const LAST: &str = include_str!("../../sql/store/experiment_last.sql");

/// An experiment as it is stored. Times have microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredExperiment {
    /// Id, a UUID.
    pub id: String,
    /// Name; several experiments can have the same one.
    pub name: String,
    /// What it searches for, for example `sweep`.
    pub kind: String,
    /// When it was defined.
    pub created_at: Timestamp,
    /// Its definition, as JSON.
    pub definition: String,
    /// What is known since.
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

columns! {
    /// One experiment in a list.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    pub struct ExperimentSummary {
        /// Id.
        pub id: String,
        /// Name.
        pub name: String,
        /// What it searches for.
        pub kind: String,
        /// When it was defined.
        pub created_at: Timestamp,
        /// When its last run ended; absent: it is unfinished.
        pub finished_at: Option<Timestamp>,
        /// Number of its stored runs.
        pub runs: u64,
        /// What people wrote about it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub notes: Vec<Note>,
    }
}

/// Returns the full id of an experiment.
pub(super) fn id_in(
    session: &mut dyn Session,
    location: &str,
    part: &str,
) -> Result<String, StoreError> {
    if part == "last" {
        let found = session.query(LAST, &[])?;
        return first(found).ok_or_else(|| StoreError::NoExperiments(location.to_owned()));
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
pub(super) fn exists(session: &mut dyn Session, id: &str) -> Result<bool, StoreError> {
    Ok(!session.query(EXPERIMENT, &[id.into()])?.is_empty())
}

pub(super) fn insert(
    session: &mut dyn Session,
    experiment: &StoredExperiment,
) -> Result<(), StoreError> {
    if exists(session, &experiment.id)? {
        return Err(StoreError::ExperimentExists(experiment.id.clone()));
    }
    let StoredExperiment { id, name, kind, created_at, definition, state, notes: _ } = experiment;
    let row = fields! {
        id: id,
        name: name,
        kind: kind,
        created_at: time_text(*created_at),
        finished_at: state.finished_at.map(time_text),
        definition: definition;
        state => { failures, environment }
    };
    session.insert("experiments", &[row])
}

/// Returns the experiment with this full id.
pub(super) fn find(
    session: &mut dyn Session,
    location: &str,
    id: &str,
) -> Result<StoredExperiment, StoreError> {
    let row = session.query(EXPERIMENT, &[id.into()])?.into_iter().next();
    let row = row.ok_or_else(|| StoreError::ExperimentNotFound(id.to_owned()))?;
    let mut row = Reader::new(location, row);
    // Rust evaluates them in this order, which is that of the columns.
    let (id, name, kind, created_at) = (row.read()?, row.read()?, row.read()?, row.read()?);
    let (finished_at, definition) = (row.read()?, row.read()?);
    let state = ExperimentState { finished_at, failures: row.read()?, environment: row.read()? };
    let notes = row.read()?;
    Ok(StoredExperiment { id, name, kind, created_at, definition, state, notes })
}
