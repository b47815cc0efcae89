//! Where the table of `cbc` is made: the place, the space that it needs, and its end.

use super::super::environment::Environment;
use super::super::error::RunError;
use super::super::scene::Scene;
use super::super::settle::connect_with_retries;
use crate::dataset::database::{self, drop_leftovers, drop_own, make_database};
use crate::dataset::{DatasetError, Registry};
use crate::host::{Interrupt, machine};
use crate::plan::{CbcDataset, CbcPlace, CbcRun, DatasetPlan, Plan};
use crate::server::{Connection, Server};
use crate::workload::cbc::{self, DATABASE, NAME, Space, TABLE};
use crate::workload::tables::Dataset;

/// The database that the table is in.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) server: Server,
    /// The server as it was named.
    named: Server,
    place: CbcPlace,
    /// The run that made it.
    run: String,
    /// The generation id of the table, once it is registered.
    id: Option<String>,
}

impl Home {
    /// Makes room: what an earlier run has left is dropped, what is somebody else's stays.
    pub(super) fn make(scene: &mut Scene<'_>, place: CbcPlace) -> Result<Self, RunError> {
        let named = scene.server.clone();
        let mut server = named.clone();
        let run = scene.id.to_string();
        if place == CbcPlace::Database {
            if server.conninfo.database == DATABASE {
                return Err(RunError::Unsuitable(format!(
                    "{DATABASE} is what riops makes anew and drops: name another database of the server to start from, as postgres"
                )));
            }
            let admin = &mut scene.control;
            // The lock lasts until the connection ends: by then this run is in its database.
            database::lock(admin)?;
            drop_leftovers(admin)?;
            // Interrupted half-way, it would stay behind.
            admin.set_interrupt(&Interrupt::new());
            make_database(admin, &run)?;
            admin.set_interrupt(scene.interrupt);
            DATABASE.clone_into(&mut server.conninfo.database);
        }
        Ok(Self { server, named, place, run, id: None })
    }

    /// Registers the table that is about to be made, and drops one that an earlier run has left. The
    /// connection keeps others from it.
    pub(super) fn begin(
        &mut self,
        run: &CbcRun,
        interrupt: &Interrupt,
    ) -> Result<(Connection, CbcDataset), RunError> {
        let mut control = Connection::open(&self.server.conninfo, interrupt)?;
        control.execute(&cbc::session_sql())?;
        let settings = control.query_value("select count(*) from pg_settings")?;
        let settings_rows = settings.and_then(|text| text.parse().ok());
        let dataset = CbcDataset {
            size_gb: run.size_gb,
            settings_rows: settings_rows.ok_or_else(no_settings)?,
            copies: run.copies(),
            table_bytes: None,
            index_bytes: None,
        };
        let mut registry = Registry::new(&mut control, NAME);
        registry.lock(true)?;
        registry.ensure()?;
        if registry.owns(TABLE)? == Some(false) {
            registry.drop_registry_if_empty()?;
            return Err(DatasetError::Foreign(TABLE.to_owned()).into());
        }
        registry.drop_dataset()?;
        if let Some(index) = registry.connection().query_value(&cbc::foreign_index_sql())? {
            registry.drop_registry_if_empty()?;
            return Err(DatasetError::Foreign(index).into());
        }
        let id = registry.begin(&Dataset {
            parameters: DatasetPlan::from(dataset.clone()).parameters(),
            ..Dataset::default()
        })?;
        self.id = Some(id);
        Ok((control, dataset))
    }

    /// The generation id of the table.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Drops what this run has made and nothing else. Where the server does not answer it stays, and the next
    /// run drops it.
    pub(super) fn drop(&self, plan: &Plan) -> Result<(), RunError> {
        let mut connection = connect_with_retries(&self.named, plan)?;
        connection.execute(&cbc::session_sql())?;
        match (self.place, &self.id) {
            (CbcPlace::Database, _) => drop_own(&mut connection, &self.run)?,
            (CbcPlace::Schema, Some(id)) => {
                let mut registry = Registry::new(&mut connection, NAME);
                match registry.lock(true) {
                    // Whoever has it now has dropped this run's table first.
                    Err(DatasetError::InUse(_)) => {}
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
        "the role sees no settings in pg_settings: there is nothing to copy".to_owned(),
    )
}

/// About how many bytes one copy of the settings takes.
pub(super) fn copy_bytes(connection: &mut Connection) -> Result<u64, RunError> {
    let row = connection.query(&cbc::estimate_sql())?.into_iter().next().unwrap_or_default();
    match row.as_slice() {
        [_, Some(bytes)] => bytes.parse().map_err(|_| no_settings()),
        _ => Err(no_settings()),
    }
}

/// Fails where the server's disk has not the space that a run may take; says so where that is unknown.
pub(super) fn require_space(
    size_gb: f64,
    copy_bytes: u64,
    scene: &mut Scene<'_>,
) -> Result<(), RunError> {
    let log = "select pg_size_bytes(current_setting('max_wal_size'))";
    let log = scene.control.query_value(log)?.and_then(|text| text.parse().ok()).unwrap_or(0);
    let need = Space { copy_bytes, log_bytes: log };
    let Some(free) = scene.environment.local_data().and_then(machine::free_bytes) else {
        scene.observer.notice(&format!(
            "the free disk space of the server is unknown here: the run may take up to {}",
            need.text(size_gb)
        ));
        return Ok(());
    };
    let leftover = scene.control.query_value(&cbc::leftover_sql())?;
    let free = free + leftover.and_then(|text| text.parse().ok()).unwrap_or(0);
    if need.bytes(size_gb) <= free {
        return Ok(());
    }
    Err(RunError::Precondition(format!(
        "size {size_gb} GB may take up to {}, and {:.1} GB are free: use --size {}, or --skip-space-check",
        need.text(size_gb),
        free as f64 / 1e9,
        need.largest_size_gb(free),
    )))
}

/// Three times the memory of the server's machine, in nominal gigabytes.
pub(super) fn auto_size(copy_bytes: u64, environment: &Environment) -> Result<f64, RunError> {
    let memory_bytes = machine::memory_bytes();
    if environment.local_data().is_none() || memory_bytes == 0 {
        let text = "--size auto needs the memory of the server's machine, which is unknown here: give the size, three to four times that memory";
        return Err(RunError::Unsuitable(text.to_owned()));
    }
    Ok(cbc::size_for_memory(memory_bytes, copy_bytes))
}
