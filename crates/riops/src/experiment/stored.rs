//! Experiments in a store: their definition, and their runs.

use super::definition::Experiment;
use super::task::{Study, tag};
use crate::record::Record;
use crate::store::{Store, StoreError, StoredExperiment};

impl Experiment {
    /// Returns the definition of a stored experiment, with its notes.
    ///
    /// # Errors
    /// [`StoreError::Json`] if it cannot be decoded.
    pub fn of_stored(stored: &StoredExperiment) -> Result<Self, StoreError> {
        let experiment: Self = decoded(&stored.id, &stored.definition)?;
        Ok(Self { notes: stored.notes.clone(), ..experiment })
    }

    /// Returns the stored runs, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be accessed.
    pub fn runs_in(&self, store: &Store) -> Result<Vec<Record>, StoreError> {
        match store.select(&format!("{}={}", tag::EXPERIMENT, self.id)) {
            // Killed before its first run ended.
            Err(StoreError::NoMatch(_) | StoreError::Empty(_)) => Ok(Vec::new()),
            found => found,
        }
    }
}

impl Study {
    /// Returns a stored experiment with its runs.
    ///
    /// # Errors
    /// As [`Store::experiment`], and [`StoreError::Json`] if it cannot be decoded.
    pub fn stored(store: &Store, part: &str) -> Result<Self, StoreError> {
        let found = store.experiment(part)?;
        let experiment = Experiment::of_stored(&found)?;
        let records = experiment.runs_in(store)?;
        Ok(Self::load(experiment, records, decoded(&found.id, &found.state.failures)?))
    }
}

fn decoded<T: serde::de::DeserializeOwned>(id: &str, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|source| StoreError::Json { id: id.to_owned(), source })
}
