//! The verdicts of stored experiments, kept in memory: each needs all records of its experiment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::Failure;
use crate::experiment::stored_study;
use crate::report::experiment::{experiment as findings, view};
use crate::report::verdict_text;
use crate::store::Store;
use crate::summary::ExperimentSummary;

/// No further experiment is evaluated for a page after this time.
const EVALUATE_MAX: Duration = Duration::from_secs(1);
/// Experiments whose verdict is kept.
const KEPT_MAX: usize = 10_000;
/// In place of a verdict for which there was no time.
const LATER: &str = "open it to see its verdict";

/// The verdicts by experiment, with the number of runs from which they follow.
#[derive(Clone, Default)]
pub(super) struct Verdicts(Arc<Mutex<HashMap<String, (u64, String)>>>);

impl Verdicts {
    /// Returns the verdicts of these experiments by id. The next request gets the verdicts for which there was no time.
    pub(super) fn read(
        &self,
        store: &Store,
        experiments: &[ExperimentSummary],
    ) -> Result<HashMap<String, String>, Failure> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > KEPT_MAX {
            known.clear();
        }
        let started = Instant::now();
        let mut verdicts = HashMap::new();
        for ExperimentSummary { id, runs, .. } in experiments {
            let id = id.to_string();
            let kept = known.get(&id).filter(|(counted, _)| counted == runs);
            let text = match kept {
                Some((_, text)) => text.clone(),
                None if started.elapsed() < EVALUATE_MAX => {
                    let text = verdict_text(&findings(&view(&stored_study(store, &id)?)));
                    known.insert(id.clone(), (*runs, text.clone()));
                    text
                }
                None => LATER.to_owned(),
            };
            verdicts.insert(id, text);
        }
        Ok(verdicts)
    }
}
