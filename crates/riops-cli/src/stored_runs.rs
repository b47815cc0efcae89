//! The store of a run, which is also the history of earlier runs.

use std::cell::OnceCell;

use anyhow::Result;
use riops::host::Interrupt;
use riops::record::{DiskLimit, Note, Record};
use riops::run::{History, NoHistory};
use riops::store::live::sink_of;
use riops::store::{self, Store, StoreLocation};

use crate::args::ResultOptions;
use crate::fleet::Membership;
use crate::live::OpenFeed;
use crate::note::note_of;
use crate::ui::Ui;
use crate::{stored, unstored};

/// The store of a run, which also provides the history of earlier runs.
pub(crate) struct StoredRuns<'a> {
    /// Store that the run is saved to; `None` with `--no-store`.
    store: Option<Store>,
    /// Where the run is saved to.
    location: Option<StoreLocation>,
    /// Store for the history with `--no-store`, if it exists; opened on first use.
    history_only: OnceCell<Option<Store>>,
    options: &'a ResultOptions,
    /// That of `--note`.
    note: Option<Note>,
    ui: Ui,
}

impl<'a> StoredRuns<'a> {
    /// Opens the store, unless the run is not stored.
    pub(crate) fn open(
        options: &'a ResultOptions,
        membership: Option<&Membership>,
        ui: Ui,
    ) -> Result<Self> {
        let note = options.note.as_deref().map(|text| note_of(text, None)).transpose()?;
        let (mut store, mut location) = (None, None);
        if let Some(own) = membership {
            // Of many agents, only one saves a run.
            location = Some(own.location());
        } else if !options.no_store {
            let found = location.insert(stored::location(&options.store, ui)?);
            store.insert(store::open(found, ui.interrupt)?).require_writable()?;
        }
        Ok(Self { store, location, history_only: OnceCell::new(), options, note, ui })
    }

    /// Whether the run is stored.
    pub(crate) fn is_open(&self) -> bool {
        self.location.is_some()
    }

    /// Where the run is published while it is in progress; `None` if it is not stored.
    pub(crate) fn feed(&self) -> Option<OpenFeed> {
        let location = self.location.clone()?;
        Some(Box::new(move || sink_of(&location)))
    }

    /// Saves the record. Returns a text for the output, the location or the error, and the result.
    pub(crate) fn save(&self, record: &Record) -> (String, Result<()>) {
        let Some(location) = &self.location else {
            return ("no (--no-store)".to_owned(), Ok(()));
        };
        let opened = match &self.store {
            Some(_) => Ok(None),
            // An interrupt has ended the run, which is stored.
            None => store::open(location, &Interrupt::new()).map(Some),
        };
        let mut record = record.clone();
        record.notes.extend(self.note.clone());
        let record = &record;
        let save = |opened: Option<Store>| {
            let Some(store) = self.store.as_ref().or(opened.as_ref()) else {
                return Ok(location.to_string());
            };
            stored::save(store, record)?;
            Ok(store.location())
        };
        match opened.and_then(save) {
            Ok(location) => (format!("{} in {location}", record.id), Ok(())),
            // A failed save must not prevent the result from being printed.
            Err(error) => {
                let error = unstored::keep(record, &error);
                (self.ui.given().complete(&format!("NO: {error}")), Err(error))
            }
        }
    }

    fn history(&self) -> &dyn History {
        if self.options.fleet.fleet.is_some() {
            return &NoHistory;
        }
        let existing = || stored::open_if_present(&self.options.store, self.ui).ok().flatten();
        match self.store.as_ref().or_else(|| self.history_only.get_or_init(existing).as_ref()) {
            Some(store) => store,
            None => &NoHistory,
        }
    }
}

impl History for StoredRuns<'_> {
    fn record(&self, id: &str) -> Option<Record> {
        self.history().record(id)
    }

    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit> {
        self.history().disk_limit(host, device, identity)
    }
}
