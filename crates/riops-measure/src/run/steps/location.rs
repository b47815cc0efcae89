//! The location of the table of `cbc`: creates and drops it, and checks its disk space.

use super::super::active::{ActiveRun, connect_with_retries};
use super::super::environment::Environment;
use super::super::error::RunError;
use crate::dataset::database::{self, create_database, drop_leftovers, drop_own};
use crate::dataset::{DatasetError, Registry};
use crate::host::{Interrupt, machine};
use crate::server::{Connection, Server};
use crate::workload::cbc::{self, DATABASE, NAME, Space, TABLE};
use crate::workload::fill;
use crate::workload::tables::Dataset;
use riops_model::plan::{CbcDataset, CbcPlace, CbcRun, DatasetPlan, Plan, copies};

/// The database and schema of the table.
#[derive(Clone)]
pub(super) struct TableLocation {
    pub(super) server: Server,
    /// Server with the database given by the user.
    given: Server,
    place: CbcPlace,
    /// Id of the run that created it.
    run: String,
    /// Dataset generation id of the table, once it is registered.
    id: Option<String>,
}

impl TableLocation {
    /// Creates the location, after dropping the database of an earlier run. A database that was not created
    /// by riops is an error.
    pub(super) fn create(active: &mut ActiveRun<'_>, place: CbcPlace) -> Result<Self, RunError> {
        let given = active.server.clone();
        let mut server = given.clone();
        let run = active.id.to_string();
        if place == CbcPlace::Database {
            if server.conninfo.database == DATABASE {
                return Err(RunError::Unsuitable(format!(
                    "cannot run in database \"{DATABASE}\", which riops drops and creates again: connect to another database, for example postgres"
                )));
            }
            let admin = &mut active.control;
            // The lock is held until this connection is closed. By then the run is connected to its database.
            database::lock(admin, &mut |text| active.hooks.notice(text))?;
            if drop_leftovers(admin)? {
                let text = format!("dropped database \"{DATABASE}\" of an earlier run");
                active.hooks.notice(&text);
            }
            let admin = &mut active.control;
            // Not interruptible, because an interrupt could leave the database behind.
            admin.set_interrupt(&Interrupt::new());
            create_database(admin, &run)?;
            admin.set_interrupt(active.interrupt);
            DATABASE.clone_into(&mut server.conninfo.database);
        }
        Ok(Self { server, given, place, run, id: None })
    }

    /// Registers the table before it is created, and drops the table of an earlier run. The returned connection holds
    /// the lock on the dataset.
    pub(super) fn register_table(
        &mut self,
        run: &CbcRun,
        active: &mut ActiveRun<'_>,
    ) -> Result<(Connection, CbcDataset), RunError> {
        let mut control = Connection::open(&self.server.conninfo, active.interrupt)?;
        control.execute(&cbc::session_sql())?;
        let settings = control.query_value("select count(*) from pg_settings")?;
        let settings_rows = settings.and_then(|text| text.parse().ok());
        let dataset = CbcDataset {
            size_gb: run.size_gb,
            settings_rows: settings_rows.ok_or_else(no_settings)?,
            copies: copies(run.size_gb),
            table_bytes: None,
            index_bytes: None,
        };
        let mut registry = Registry::new(&mut control, NAME);
        registry.lock(true, &mut |_| {})?;
        registry.ensure()?;
        if registry.owns(TABLE)? == Some(false) {
            registry.drop_registry_if_empty()?;
            return Err(DatasetError::Foreign(TABLE.to_owned()).into());
        }
        for table in registry.drop_dataset()? {
            active.hooks.notice(&format!("dropped table \"{table}\" of an earlier run"));
        }
        if let Some(index) = registry.connection().query_value(cbc::FOREIGN_INDEX)? {
            registry.drop_registry_if_empty()?;
            return Err(DatasetError::Foreign(index).into());
        }
        let id = uuid::Uuid::now_v7().to_string();
        let parameters = DatasetPlan::from(dataset.clone()).parameters();
        registry.begin(&id, &Dataset { parameters, ..Dataset::default() })?;
        self.id = Some(id);
        Ok((control, dataset))
    }

    /// Returns the dataset generation id of the table.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Drops the objects created by this run, and nothing else. If the server is not available they remain,
    /// and the next run drops them.
    pub(super) fn drop(&self, plan: &Plan) -> Result<(), RunError> {
        let mut connection = connect_with_retries(&self.given, plan)?;
        connection.execute(&cbc::session_sql())?;
        match (self.place, &self.id) {
            (CbcPlace::Database, _) => drop_own(&mut connection, &self.run)?,
            (CbcPlace::Schema, Some(id)) => {
                let mut registry = Registry::new(&mut connection, NAME);
                match registry.lock(true, &mut |_| {}) {
                    // The session that holds the lock has dropped the table of this run first.
                    Err(DatasetError::InUse { .. }) => {}
                    locked => {
                        locked?;
                        registry.drop_unfinished(id)?;
                    }
                }
            }
            (CbcPlace::Schema, None) => {}
        }
        Ok(())
    }
}

fn no_settings() -> RunError {
    RunError::Precondition(
        "pg_settings has no rows that are visible to the role: the table would be empty".to_owned(),
    )
}

/// Returns the approximate size of one copy of the settings, in bytes.
pub(super) fn copy_bytes(connection: &mut Connection) -> Result<u64, RunError> {
    let row = connection.query(&fill(cbc::ESTIMATE, &[]))?.into_iter().next().unwrap_or_default();
    match row.as_slice() {
        [_, Some(bytes)] => bytes.parse().map_err(|_| no_settings()),
        _ => Err(no_settings()),
    }
}

/// Fails if the free disk space of the server is less than a run may need. If it is unknown, sends a notice.
pub(super) fn require_space(
    size_gb: f64,
    copy_bytes: u64,
    active: &mut ActiveRun<'_>,
) -> Result<(), RunError> {
    let wal = "select pg_size_bytes(current_setting('max_wal_size'))";
    let wal_bytes =
        active.control.query_value(wal)?.and_then(|text| text.parse().ok()).unwrap_or(0);
    let need = Space { copy_bytes, log_bytes: wal_bytes };
    let Some(free) = active.environment.local_data().and_then(machine::free_bytes) else {
        active.hooks.notice(&format!(
            "the free disk space of the server is unknown: the run may need up to {}",
            need.text(size_gb)
        ));
        return Ok(());
    };
    let leftover = active.control.query_value(&fill(cbc::LEFTOVER, &[]))?;
    let free = free + leftover.and_then(|text| text.parse().ok()).unwrap_or(0);
    if need.bytes(size_gb) <= free {
        return Ok(());
    }
    let largest_gb = need.largest_size_gb(free);
    let smaller = if largest_gb > 0.0 { format!("--size {largest_gb} or ") } else { String::new() };
    Err(RunError::Precondition(format!(
        "--size {size_gb}GB may need up to {}, but only {:.1} GB are free: use {smaller}--skip-space-check",
        need.text(size_gb),
        free as f64 / 1e9,
    )))
}

/// Returns three times the memory of the server host, in nominal gigabytes.
pub(super) fn auto_size(copy_bytes: u64, environment: &Environment) -> Result<f64, RunError> {
    let memory_bytes = machine::memory_bytes();
    if environment.local_data().is_none() || memory_bytes == 0 {
        let text = "--size auto requires the memory size of the server host, which is unknown: specify a size of three to four times that memory";
        return Err(RunError::Unsuitable(text.to_owned()));
    }
    Ok(cbc::size_for_memory(memory_bytes, copy_bytes))
}
