//! Drops the objects that riops created, and nothing else.

use super::database::{drop_leftovers, lock, unmarked};
use super::error::{DatasetError, Result};
use super::lock::OnWait;
use super::registry::{Entry, Registry};
use crate::host::Interrupt;
use crate::server::{Connection, Server};
use crate::workload::cbc;
use riops_model::plan::DatasetPlan;
use riops_model::record::dataset::Dropped;

/// Drops the dataset with this name, if it is in the given schema or none is given. Waits for other processes that use it,
/// and names them to `on_wait`.
///
/// # Errors
/// [`DatasetError`] if the dataset is in another schema or in use, or if a statement fails.
pub fn cleanup(
    name: &'static str,
    schema: Option<&str>,
    server: &Server,
    interrupt: &Interrupt,
    on_wait: OnWait<'_>,
) -> Result<Dropped> {
    server.require_dedicated_sessions(interrupt)?;
    let mut control = Connection::open(&server.conninfo, interrupt)?;
    let dataset = DatasetPlan::default_of(name);
    let mut foreign_databases = Vec::new();
    let database = if dataset.is_some_and(|dataset| dataset.traits().may_use_dedicated_database) {
        control.execute(&cbc::session_sql())?;
        lock(&mut control, on_wait)?;
        foreign_databases = unmarked(&mut control)?;
        drop_leftovers(&mut control)
    } else {
        Ok(false)
    };
    let mut registry = Registry::new(&mut control, name);
    registry.lock(true, on_wait)?;
    let entry = registry.entry()?;
    let registered = entry.as_ref().and_then(|entry| entry.parameters.get("schema")?.as_str());
    if let Some((asked, registered)) = schema.zip(registered)
        && asked != registered
    {
        return Err(DatasetError::OtherSchema {
            workload: name,
            asked: asked.to_owned(),
            registered: registered.to_owned(),
        });
    }
    let is_adopted = entry.as_ref().is_some_and(Entry::is_adopted);
    let adopted = registered.filter(|_| is_adopted).map(str::to_owned);
    let tables = registry.drop_dataset()?;
    registry.drop_registry_if_empty()?;
    // A foreign database of that name is not an error if the table in the schema was dropped.
    let database = match database {
        Err(DatasetError::ForeignDatabase) if !tables.is_empty() => {
            foreign_databases.push(cbc::DATABASE.to_owned());
            false
        }
        other => other?,
    };
    Ok(Dropped { tables, database, foreign_databases, unregistered_schema: adopted })
}
