//! The tables of a store, which are created in one transaction: another riops, or one that is killed meanwhile, sees either
//! all of them or none.

use super::backend::{Access, Backend, Session, transact};
use super::error::StoreError;

const SCHEMA: &str = include_str!("../../sql/store/schema.sql");

/// The version of the tables. Stores of earlier versions exist from the time before the first release.
pub(super) const VERSION: usize = 11;

/// Creates the tables, if the store is new.
pub(super) fn create(backend: &dyn Backend) -> Result<(), StoreError> {
    if is_current(backend, transact(backend, Access::Read, |session| session.version())?)? {
        return Ok(());
    }
    transact(backend, Access::Write, |session| {
        session.begin_creation()?;
        // Another riops may have created the store meanwhile.
        if is_current(backend, session.version()?)? {
            return Ok(());
        }
        session.script(&session.dialect().fill(SCHEMA))?;
        session.set_version(VERSION)
    })
}

/// Fails if the store has another version: a newer riops may have changed it since it was opened.
pub(super) fn require_current(
    backend: &dyn Backend,
    session: &mut dyn Session,
) -> Result<(), StoreError> {
    is_current(backend, session.version()?).map(drop)
}

/// Whether the store has its tables.
fn is_current(backend: &dyn Backend, version: usize) -> Result<bool, StoreError> {
    match version {
        0 => Ok(false),
        VERSION => Ok(true),
        _ => Err(StoreError::Version { location: backend.location(), version, known: VERSION }),
    }
}
