//! Where the table of `cbc` is made: the place, the room that it needs, and its end.

use anyhow::Result;
use riops::dataset::database::{self, drop_leftovers, drop_own, make_database};
use riops::dataset::{DatasetError, Registry};
use riops::host::{Interrupt, machine};
use riops::plan::{CbcDataset, CbcPlace, CbcRun, RunPlan};
use riops::server::{ConnInfo, Connection};
use riops::workload::cbc::{self, DATABASE, NAME, TABLE};
use riops::workload::tables::Dataset;

use super::super::super::settle::open_patiently;
use super::super::{Ground, Setting};
use crate::failure::UsageError;
use crate::target::Target;
use crate::ui::Ui;

/// The database that the table is in.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) conninfo: ConnInfo,
    place: CbcPlace,
    /// The run that made it.
    run: String,
    /// Of this making of the table, where it came to that.
    id: Option<String>,
}

impl Home {
    /// Makes room: what an earlier run has left goes, what is somebody else's stays.
    pub(super) fn make(
        setting: &Setting<'_>,
        place: CbcPlace,
        admin: &mut Connection,
    ) -> Result<Self> {
        let mut conninfo = setting.target.conninfo.clone();
        let run = setting.id.to_string();
        if place == CbcPlace::Database {
            if conninfo.database == DATABASE {
                let text = format!(
                    "{DATABASE} is what riops makes anew and drops: name another database of the server to start from, as postgres"
                );
                return Err(UsageError(text).into());
            }
            // The lock lasts until the connection ends: by then this run is in its database.
            database::lock(admin)?;
            drop_leftovers(admin)?;
            // Given up half-way, it would stay behind.
            admin.heed(&Interrupt::new());
            make_database(admin, &run)?;
            admin.heed(setting.interrupt);
            DATABASE.clone_into(&mut conninfo.database);
        }
        Ok(Self { conninfo, place, run, id: None })
    }

    /// Registers the table that is about to be made, and drops one that an earlier run has left. The
    /// connection keeps others from it.
    pub(super) fn begin(
        &mut self,
        setting: &Setting<'_>,
        run: &CbcRun,
    ) -> Result<(Connection, CbcDataset)> {
        let mut control = Connection::open(&self.conninfo, setting.interrupt)?;
        control.execute(&cbc::session_sql())?;
        let settings = control.query_value("select count(*) from pg_settings")?;
        let dataset = CbcDataset {
            size_gb: run.size_gb,
            settings_rows: settings.unwrap_or_default().parse()?,
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
            parameters: serde_json::to_value(&dataset)?,
            probes: Vec::new(),
            settings: Vec::new(),
            tables: Vec::new(),
        })?;
        self.id = Some(id);
        Ok((control, dataset))
    }

    /// Of this making of the table.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Drops what this run has made and nothing else. A server that does not answer keeps it; the next run
    /// drops it then.
    pub(super) fn drop(&self, target: &Target, plan: &RunPlan) {
        let dropped = open_patiently(target, plan).and_then(|mut connection| {
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
        });
        if let Err(error) = dropped {
            // Also where nobody wants notices: something was left behind.
            crate::ui::error(&format!(
                "what was made could not be dropped: {error:#}; drop it with: riops cleanup cbc"
            ));
        }
    }
}

/// Fails where the server's disk has not the space that a run may take; says so where that cannot be seen.
pub(super) fn require_space(
    size_gb: f64,
    copy_bytes: u64,
    ground: &Ground,
    ui: Ui,
    connection: &mut Connection,
) -> Result<()> {
    let log = "select pg_size_bytes(current_setting('max_wal_size'))";
    let log = connection.query_value(log)?.and_then(|text| text.parse().ok()).unwrap_or(0);
    let need = cbc::Space { copy_bytes, log_bytes: log };
    let Some(free) = ground.local_data().and_then(machine::free_bytes) else {
        ui.notice(&format!(
            "the free disk space of the server cannot be seen from here: it may take up to {}",
            need.text(size_gb)
        ));
        return Ok(());
    };
    let leftover = connection.query_value(&cbc::leftover_sql())?;
    let free = free + leftover.and_then(|text| text.parse().ok()).unwrap_or(0);
    if need.bytes(size_gb) <= free {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "size {size_gb} GB may take up to {}, and {:.1} GB are free: use --size {}, or --skip-space-check",
        need.text(size_gb),
        free as f64 / 1e9,
        need.largest_size_gb(free),
    ))
}

/// Three times the memory of the server's machine, in nominal gigabytes.
pub(super) fn auto_size(copy_bytes: u64, ground: &Ground) -> Result<f64> {
    let memory_bytes = machine::memory_bytes();
    if ground.local_data().is_none() || memory_bytes == 0 {
        let text = "--size auto needs the memory of the server's machine, which cannot be seen from here: give the size, three to four times that memory";
        return Err(UsageError(text.to_owned()).into());
    }
    Ok(cbc::size_for_memory(memory_bytes, copy_bytes))
}
