//! The runs of a store: a SQLite file that riops wrote.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::ImportError;
use super::imports::Imports;
use super::records::{mark, require_whole};
use super::settings::Settings;
use crate::host::Interrupt;
use crate::store::{StoreError, StoreLocation, all_runs, open_existing};

/// The first bytes of every SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Whether a file is a SQLite file.
#[must_use]
pub fn is_store(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    let is_plain = path.is_file();
    is_plain
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == SQLITE
}

/// Returns the runs of a store, oldest first. A store of an older riops is migrated, as always when it is opened.
///
/// # Errors
/// [`ImportError::Store`] if the file is no store or cannot be read, [`ImportError::Contents`] for a damaged record.
pub fn store_runs(
    path: &Path,
    settings: &Settings,
    interrupt: &Interrupt,
) -> Result<Imports, ImportError> {
    let location = StoreLocation::File(path.to_owned());
    let store = open_existing(&location, interrupt)?
        .ok_or_else(|| StoreError::Empty(location.to_string()))?;
    let name = location.to_string();
    let mut imports = Imports::default();
    for mut record in all_runs(store.as_ref())? {
        require_whole(&record).map_err(|reason| {
            ImportError::contents(&name, format!("damaged record {}: {reason}", record.id))
        })?;
        mark(&mut record, settings);
        imports.records.push(record);
    }
    if imports.records.is_empty() {
        return Err(ImportError::contents(&name, "the store has no runs"));
    }
    let experiments = store.experiments()?.len();
    if experiments > 0 {
        imports
            .notices
            .push(format!("{name}: {experiments} experiments were not imported, only their runs"));
    }
    Ok(imports)
}
