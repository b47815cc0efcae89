//! Opens a store by its location.

use super::error::StoreError;
use super::interface::Store;
use super::location::StoreLocation;
use super::postgresql::Postgresql;
use super::shared::SharedStore;
use super::sqlite::Sqlite;
use crate::host::Interrupt;

/// Opens the store; creates or migrates it if necessary. Of all directories, only that of [`default_path`](super::default_path) is
/// created: any other one may be a typing error.
///
/// # Errors
/// [`StoreError`] if the store cannot be accessed, or was written by a newer riops.
pub fn open(location: &StoreLocation, interrupt: &Interrupt) -> Result<Box<dyn Store>, StoreError> {
    match location {
        StoreLocation::File(path) => {
            Ok(Box::new(SharedStore::open(Sqlite::open(path, interrupt)?)?))
        }
        StoreLocation::Postgresql(conninfo) => {
            Ok(Box::new(SharedStore::open(Postgresql::open(conninfo, interrupt)?)?))
        }
    }
}

/// Opens the store as [`open`] does; returns `None` instead of creating one.
///
/// # Errors
/// As [`open`].
pub fn open_existing(
    location: &StoreLocation,
    interrupt: &Interrupt,
) -> Result<Option<Box<dyn Store>>, StoreError> {
    match location {
        StoreLocation::File(path) if !path.exists() => Ok(None),
        StoreLocation::File(_) => open(location, interrupt).map(Some),
        StoreLocation::Postgresql(conninfo) => {
            let backend = Postgresql::open(conninfo, interrupt)?;
            if backend.exists()? {
                Ok(Some(Box::new(SharedStore::open(backend)?)))
            } else {
                Ok(None)
            }
        }
    }
}
