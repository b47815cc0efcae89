//! Opens the store of `--store`.

use anyhow::Result;
use riops::record::Record;
use riops::store::{self, Store, StoreError, StoreLocation};

use crate::args::StoreOptions;
use crate::password::ask_if_missing;
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
