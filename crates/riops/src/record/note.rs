//! What people write about a run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A note: a hypothesis, what was changed, a conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was written.
    pub at: Timestamp,
    /// Who wrote it.
    pub author: String,
    /// Lines of plain text.
    pub text: String,
}
