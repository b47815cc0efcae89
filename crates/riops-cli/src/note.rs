//! Notes of people on runs and experiments.

use riops::record::{Note, NoteError};

use crate::failure::UsageError;

/// Returns a note of now.
///
/// # Errors
/// If it is empty or too long, or cannot be shown.
pub(crate) fn note_of(text: &str, author: Option<&str>) -> Result<Note, UsageError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let author =
        author.map(str::to_owned).or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
    let author = author.unwrap_or_else(|| "unknown".to_owned());
    Note::new(text, author).map_err(|error: NoteError| UsageError(error.to_string()))
}
