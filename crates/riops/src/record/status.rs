//! How a run ended.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As planned.
    Done,
    /// With an error; the record has the measurements up to it.
    Failed,
    /// Interrupted by the user; the record has the measurements up to the interrupt.
    Interrupted,
}

impl Status {
    /// Returns the spelling in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}
