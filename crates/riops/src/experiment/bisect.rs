//! The search for the commit from which on something is slower: its path and its result.

use serde::Serialize;

use super::gate::{GateRow, GateVerdict, GateView};
use crate::stats::Outcome;

/// The result of a bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectView {
    /// The commit that is not slow, with which each other one is compared.
    pub good: String,
    /// The commit that is slow.
    pub bad: String,
    /// Number of commits after the good one, up to the bad one.
    pub commits: usize,
    /// Probability of at least one false verdict, over all steps.
    pub error: f64,
    /// The commits that were measured, in the order of the measurements.
    pub steps: Vec<BisectStep>,
    /// The first slow commit, or those among which it is, oldest first; empty if the bad commit is not slower or the search
    /// has not ended.
    pub found: Vec<BisectCommit>,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BisectCommit {
    /// Its full name.
    pub commit: String,
    /// First line of its message.
    pub subject: String,
}

/// A commit that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectStep {
    /// The commit.
    #[serde(flatten)]
    pub of: BisectCommit,
    /// Number of commits between the good one and this one.
    pub position: usize,
    /// The verdict; absent if it could not be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GateVerdict>,
    /// Why there is no verdict; empty with one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The figure that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<GateRow>,
    /// Ids of the experiments.
    pub experiments: Vec<String>,
}

impl BisectStep {
    /// Returns a commit without a result.
    #[must_use]
    pub fn new(of: BisectCommit, position: usize) -> Self {
        let (verdict, reason, figure) = (None, String::new(), None);
        Self { of, position, verdict, reason, figure, experiments: Vec::new() }
    }

    /// Returns a step with the result of a gate.
    #[must_use]
    pub fn measured(of: BisectCommit, position: usize, view: &GateView) -> Self {
        let worst = view.workloads.iter().max_by_key(|workload| workload.verdict);
        let rows = || worst.iter().flat_map(|workload| &workload.figures);
        let is_slower = |row: &&GateRow| {
            row.against.as_ref().and_then(|against| against.outcome) == Some(Outcome::Slower)
        };
        Self {
            verdict: Some(view.verdict),
            figure: rows().find(is_slower).or_else(|| rows().next()).cloned(),
            experiments: view.workloads.iter().map(|each| each.experiment.clone()).collect(),
            ..Self::new(of, position)
        }
    }
}
