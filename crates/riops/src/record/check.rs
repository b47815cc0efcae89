//! Checks of the data, thresholds and the verdict: whether a result is valid.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::plan::Threshold;
use crate::workload::check;

/// One check of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// The expected value.
    pub expected: String,
    /// The value in the database.
    pub found: String,
    /// Whether the two values agree.
    pub held: bool,
    /// Changes whose outcome remains unknown: the value may differ by up to this number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unresolved: u64,
    /// Whether nothing contradicts the value, but it cannot be verified.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(value: &bool) -> bool {
    !*value
}

from_measured!(Check from check::Check { name, expected, found, held, unresolved, unknown });

/// A threshold and the measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// Name of the stage; absent if the run has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The threshold of the plan.
    pub threshold: Threshold,
    /// The measured value, in microseconds for latencies; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// Whether the threshold was met.
    pub held: bool,
    /// Whether a breach of this threshold ended the run early.
    #[serde(default)]
    pub ended_run: bool,
}

/// Whether the result is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the result is valid.
    pub valid: bool,
    /// Why the result is not valid; empty if it is.
    pub reasons: Vec<String>,
}
