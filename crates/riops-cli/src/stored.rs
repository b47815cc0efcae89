//! Opens the store of `--store`, and makes what is stored: runs and notes.

use anyhow::Result;
use riops::host::OutputFile;
use riops::record::{Note, NoteError, Record};
use riops::store::{self, Store, StoreError, StoreLocation};
use riops::units::text::json_text;

use crate::args::StoreOptions;
use crate::failure::UsageError;
use crate::hints::quoted;
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

/// Stores a run.
pub(crate) fn save(store: &Store, record: &Record) -> Result<(), StoreError> {
    match store.save(record) {
        // That of a fleet: by an agent that has ended since.
        Err(StoreError::Exists(_)) if !record.agents.is_empty() => Ok(()),
        saved => saved,
    }
}

/// Opens the store; creates or migrates it if necessary.
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

/// Keeps the record of a run that cannot be stored: the disk is full, or the connection to the store was lost. Writes it to
/// a file in the current directory, otherwise in the directory for temporary files. Returns the
/// error with the path of the file and the command that stores it later.
pub(crate) fn keep(record: &Record, error: &dyn std::error::Error) -> anyhow::Error {
    let name = format!("riops-run-{}.json", record.id);
    let folders = [std::env::current_dir().ok(), Some(std::env::temp_dir())];
    let mut failures = Vec::new();
    for path in folders.into_iter().flatten().map(|folder| folder.join(&name)) {
        let text = json_text(record).map_err(std::io::Error::from);
        match text.and_then(|text| OutputFile::write(&path, text.as_bytes())) {
            Ok(()) => {
                let command = format!("riops runs import {}", quoted(&path.display().to_string()));
                return anyhow::anyhow!(
                    "{error}; the record is in {}: store it with `{command}`",
                    path.display()
                );
            }
            Err(failure) => failures.push(format!("cannot write {}: {failure}", path.display())),
        }
    }
    anyhow::anyhow!("{error}; the record is lost: {}", failures.join("; "))
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
