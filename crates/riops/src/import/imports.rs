//! The runs of an import, before they are stored.

use super::found::{Found, Origin, record};
use super::settings::Settings;
use crate::record::Record;

/// The contents of the files.
#[derive(Debug, Default)]
pub struct Imports {
    /// The runs.
    pub records: Vec<Record>,
    /// What the user should know about them.
    pub notices: Vec<String>,
}

impl Imports {
    pub(super) fn add(&mut self, found: Vec<Found>, origin: &Origin<'_>, settings: &Settings) {
        for found in found {
            self.notices.extend(found.notices.iter().cloned());
            self.records.push(record(found, origin, settings));
        }
    }
}
