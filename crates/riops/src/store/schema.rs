//! The tables of a store, which are created in one transaction: another riops, or one that is killed meanwhile, sees either
//! all of them or none.

use super::backend::{Access, Backend, Session, transact};
use super::error::StoreError;
use crate::summary::{ColumnType, STAGE_COLUMNS};

const SCHEMA: &str = include_str!("../../sql/store/schema.sql");

/// The version of the tables. Stores of earlier versions exist from the time before the first release.
pub(super) const VERSION: usize = 13;

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
        session.script(&session.dialect().fill(&script()))?;
        session.set_version(VERSION)
    })
}

/// Returns the statements, with the columns of stages.
fn script() -> String {
    let declared = |name: &str, column_type| {
        let type_name = match column_type {
            ColumnType::Text => "text",
            ColumnType::Integer => "{integer}",
            ColumnType::Real => "{real}",
            ColumnType::Boolean => "{boolean}",
            ColumnType::Time => "{time}",
        };
        format!("  {name} {type_name},\n")
    };
    let columns = STAGE_COLUMNS.iter();
    let declared = columns.clone().map(|column| declared(&column.name, column.column_type));
    let joined =
        columns.map(|column| format!("stages.{} as {}", column.name, column.joined_name()));
    SCHEMA
        .replace("{stage_columns}", &declared.collect::<String>())
        .replace("{joined_stage_columns}", &joined.collect::<Vec<_>>().join(", "))
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
