//! Notes of people on runs.

use anyhow::Result;
use jiff::Timestamp;
use riops::plan::require_printable;
use riops::record::Note;

use crate::failure::refuse;

/// Maximum length of a note, in characters.
const NOTE_MAX: usize = 10_000;

/// Returns a note of now.
///
/// # Errors
/// If it is empty or too long, or cannot be shown.
pub(crate) fn note_of(text: &str, author: Option<&str>) -> Result<Note> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let author =
        author.map(str::to_owned).or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
    let author = author.unwrap_or_else(|| "unknown".to_owned());
    let shown: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    require_printable(shown.iter().chain([&author]))?;
    let text = lines.join("\n");
    if text.is_empty() {
        return refuse("the note is empty");
    }
    if text.chars().count() > NOTE_MAX {
        return refuse(format!("the note is longer than {NOTE_MAX} characters"));
    }
    Ok(Note { at: Timestamp::now(), author, text })
}
