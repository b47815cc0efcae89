//! What riops observed without generating it.

use serde::{Deserialize, Serialize};

/// A command that riops ran and observed, or a time in which it observed a server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedRecord {
    /// Exit code of the command; absent without a command, or if a signal ended it.
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// CPU time of the command and its children that ended, in seconds.
    pub command_cpu_s: Option<f64>,
    /// What the queries counted, in their order; the first one is the transactions of the stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountRecord>,
}

/// What a query counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CountRecord {
    /// Name.
    pub name: String,
    /// Difference of the values at the end and at the start.
    pub count: f64,
    /// The difference per second between the two readings.
    pub per_s: f64,
}

impl ObservedRecord {
    /// Returns the exit code that a shell would show for the command; `None` without one.
    #[must_use]
    pub fn shell_code(&self) -> Option<i32> {
        self.exit_code.or(self.signal.map(|signal| 128 + signal))
    }
}
