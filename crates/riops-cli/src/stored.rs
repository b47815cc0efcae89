//! Opens the store of `--store`, and makes what is stored: runs and notes.

use anyhow::Result;
use riops::record::{Note, NoteError};
use riops::store::{self, Store, StoreError, StoreLocation};

use crate::args::StoreOptions;
use crate::failure::UsageError;
use crate::terminal::ask_if_missing;
use crate::ui::Ui;

/// Returns where the store is. Prompts for the password of a database if it is missing.
pub(crate) fn location(options: &StoreOptions, ui: Ui) -> Result<StoreLocation> {
    let mut location = options.location()?;
    if let StoreLocation::Postgresql(conninfo) = &mut location {
        for warning in &conninfo.warnings {
            ui.notice(&format!("warning: {warning}"));
        }
        ask_if_missing(conninfo, ui.interrupt)?;
    }
    Ok(location)
}

/// Opens the store; creates it if necessary.
pub(crate) fn open(options: &StoreOptions, ui: Ui) -> Result<Store> {
    Ok(store::open(&location(options, ui)?, ui.interrupt)?)
}

/// Opens the store; returns `None` if there is none yet.
pub(crate) fn open_if_present(options: &StoreOptions, ui: Ui) -> Result<Option<Store>> {
    Ok(store::open_existing(&location(options, ui)?, ui.interrupt)?)
}

/// Opens the store. Fails if there is none.
pub(crate) fn open_existing(options: &StoreOptions, ui: Ui) -> Result<Store> {
    let location = location(options, ui)?;
    let store = store::open_existing(&location, ui.interrupt)?;
    Ok(store.ok_or_else(|| StoreError::Empty(location.to_string()))?)
}

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
