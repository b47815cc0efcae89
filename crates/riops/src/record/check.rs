//! What decides whether a result is valid: checks of the data, thresholds, the verdict.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::plan::Threshold;
use crate::workload::check;

/// One verified fact about the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was verified.
    pub name: String,
    /// The expected value.
    pub expected: String,
    /// The value in the database.
    pub found: String,
    /// Whether the two agree.
    pub held: bool,
}

from_measured!(Check from check::Check { name, expected, found, held });

/// A threshold and the measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// The stage, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The threshold of the plan.
    pub threshold: Threshold,
    /// The measured value, in microseconds for latencies; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// Whether the threshold was met.
    pub held: bool,
    /// Whether it ended the run early.
    #[serde(default)]
    pub ended_run: bool,
}

/// Whether the result is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it is.
    pub valid: bool,
    /// Why it is not.
    pub reasons: Vec<String>,
}
