//! Drops what riops made, and nothing else.

use super::database::{drop_leftovers, lock};
use super::error::DatasetError;
use super::registry::Registry;
use crate::host::Interrupt;
use crate::plan::DatasetPlan;
use crate::server::{Connection, Server};
use crate::workload::cbc;

/// What was dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The names of the tables.
    pub tables: Vec<String>,
    /// Whether a database of riops's own was dropped.
    pub database: bool,
    /// A database that has the name of riops's own, was made by somebody else, and stays.
    pub foreign_database: Option<&'static str>,
    /// The schema whose tables are forgotten: somebody else made them, and they stay.
    pub forgotten: Option<String>,
}

/// Drops the dataset of this name.
///
/// # Errors
/// [`DatasetError`]
pub fn cleanup(
    name: &'static str,
    server: &Server,
    interrupt: &Interrupt,
) -> Result<Dropped, DatasetError> {
    server.require_own_sessions(interrupt)?;
    let mut control = Connection::open(&server.conninfo, interrupt)?;
    let dataset = DatasetPlan::default_of(name);
    let database = if dataset.is_some_and(|dataset| dataset.spec().may_have_a_database()) {
        control.execute(&cbc::session_sql())?;
        lock(&mut control)?;
        drop_leftovers(&mut control)
    } else {
        Ok(false)
    };
    let mut registry = Registry::new(&mut control, name);
    registry.lock(true)?;
    let adopted = registry.entry()?.and_then(|entry| {
        let of_others = entry.parameters.get("adopted") == Some(&true.into());
        let schema = entry.parameters.get("schema").and_then(|name| name.as_str());
        schema.filter(|_| of_others).map(str::to_owned)
    });
    let tables = registry.drop_dataset()?;
    registry.drop_registry_if_empty()?;
    // Somebody else's database does not keep the table in the schema from being dropped.
    let (database, foreign_database) = match database {
        Err(DatasetError::ForeignDatabase(name)) if !tables.is_empty() => (false, Some(name)),
        other => (other?, None),
    };
    Ok(Dropped { tables, database, foreign_database, forgotten: adopted })
}
