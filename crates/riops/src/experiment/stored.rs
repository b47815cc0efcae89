//! Experiments as they are stored.

use crate::record::Record;
use crate::store::{Store, StoreError, StoredExperiment};
use crate::study::{Experiment, Study, tag};

/// Returns the definition of a stored experiment, with its notes.
///
/// # Errors
/// [`StoreError::Json`] if it cannot be decoded, or a number is outside its limits.
pub fn stored_definition(stored: &StoredExperiment) -> Result<Experiment, StoreError> {
    let experiment: Experiment = decoded(&stored.id, &stored.definition)?;
    experiment.require_limits().map_err(|error| StoreError::Json {
        id: stored.id.to_string(),
        source: serde::de::Error::custom(error),
    })?;
    // Its files, databases and runs have the id under which the experiment is stored.
    Ok(Experiment { id: stored.id.clone(), notes: stored.notes.clone(), ..experiment })
}

/// Returns the stored runs of an experiment, oldest first.
///
/// # Errors
/// [`StoreError`] if the store cannot be accessed.
pub fn stored_runs(experiment: &Experiment, store: &Store) -> Result<Vec<Record>, StoreError> {
    match store.select(&format!("{}={}", tag::EXPERIMENT, experiment.id)) {
        // Killed before its first run ended.
        Err(StoreError::NoMatch { .. } | StoreError::Empty(_)) => Ok(Vec::new()),
        selected => selected,
    }
}

/// Returns a stored experiment with its runs, by its id, a part of it, or its name.
///
/// # Errors
/// As [`Store::experiment`], and [`StoreError::Json`] if it cannot be decoded.
pub fn stored_study(store: &Store, part: &str) -> Result<Study, StoreError> {
    let stored = store.experiment(part)?;
    let experiment = stored_definition(&stored)?;
    let records = stored_runs(&experiment, store)?;
    Ok(Study::load(experiment, records, decoded(&stored.id, &stored.state.failures)?))
}

fn decoded<T: serde::de::DeserializeOwned>(id: &str, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|source| StoreError::Json { id: id.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::example;

    #[test]
    fn a_stored_experiment_with_too_many_runs_is_not_read() {
        let stored = |experiment: &Experiment| StoredExperiment {
            id: experiment.id.clone(),
            name: experiment.name.clone(),
            kind: experiment.goal.name().to_owned(),
            created_at: experiment.created_at,
            definition: serde_json::to_string(experiment).unwrap(),
            state: crate::store::ExperimentState::default(),
            notes: Vec::new(),
        };
        let experiment = example::sweep(2);
        assert!(stored_definition(&stored(&experiment)).is_ok());
        let many = Experiment { repeats: 4_000_000_000, ..experiment };
        let error = stored_definition(&stored(&many)).unwrap_err().to_string();
        assert!(error.contains("repeat must be between 1 and 1000, not 4000000000"), "{error}");
    }
}
