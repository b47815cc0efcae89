//! What people write about a run or an experiment.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::{PlanError, require_printable};

/// Maximum length of a note, in characters.
const LENGTH_MAX: usize = 10_000;

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

/// Why a text is no note.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// There is nothing to store.
    #[error("the note is empty")]
    Empty,
    /// A note is no document.
    #[error("the note is longer than {LENGTH_MAX} characters")]
    Long,
    /// It cannot be shown.
    #[error(transparent)]
    Unprintable(#[from] PlanError),
}

impl Note {
    /// Returns a note of now.
    ///
    /// # Errors
    /// [`NoteError`]
    pub fn new(text: &str, author: String) -> Result<Self, NoteError> {
        let lines: Vec<String> =
            text.trim().lines().map(|line| line.trim_end().to_owned()).collect();
        require_printable(lines.iter().chain([&author]))?;
        let text = lines.join("\n");
        match text.chars().count() {
            0 => Err(NoteError::Empty),
            1..=LENGTH_MAX => Ok(Self { at: Timestamp::now(), author, text }),
            _ => Err(NoteError::Long),
        }
    }

    /// Returns the first line of the newest one.
    #[must_use]
    pub fn newest_line(notes: &[Self]) -> Option<String> {
        notes.last().and_then(|note| note.text.lines().next()).map(str::to_owned)
    }

    /// Returns the note with its date and author, in lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let head = format!("{} {}: ", self.at.strftime("%F"), self.author);
        let lines = self.text.lines().enumerate();
        lines
            .map(|(at, line)| if at == 0 { head.clone() + line } else { line.to_owned() })
            .collect()
    }
}
