//! The runs of an import, before they are stored.

use super::error::ImportError;
use super::found::{Found, ImportSource, record};
use super::settings::Settings;
use super::sums::require_sums;
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
    /// Adds the runs of another import.
    pub fn extend(&mut self, other: Self) {
        self.records.extend(other.records);
        self.notices.extend(other.notices);
    }

    pub(super) fn add(
        &mut self,
        found: Vec<Found>,
        origin: &ImportSource<'_>,
        settings: &Settings,
    ) -> Result<(), ImportError> {
        for found in found {
            self.notices.extend(found.notices.iter().cloned());
            let record = record(found, origin, settings);
            let name = origin.files.join(", ");
            require_sums(&record).map_err(|reason| ImportError::contents(&name, reason))?;
            self.records.push(record);
        }
        Ok(())
    }
}
