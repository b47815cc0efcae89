//! Preparation of a dataset: tables, parallel load, indexes, verification, and only then the state
//! "complete" in the registry.
//!
//! After an interruption the state is still "loading", and the next preparation starts from the beginning.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::catalog::{change, unless_refused};
use super::error::{DatasetError, Result};
use super::lock::OnWait;
use super::parallel::{in_parallel, nth_job};
use super::registry::{Entry, Registry, State, create, row_of_numbers};
use super::space::Place;
use crate::host::Interrupt;
use crate::server::connection::TextRow;
use crate::server::{ConnInfo, Connection, ConnectionError, Dialect, Feature};
use crate::workload::Workload;
use crate::workload::check::Ledger;
use crate::workload::tables::{Dataset, Job, TABLES_PER_TRANSACTION, Table, Zero};
use riops_model::plan::{DatasetPlan, Parameters};
use riops_model::record::{Check, Events, Prepared, RunEvent};

/// With a table for each connection, parallel processes for each index would only compete.
const ONE_PROCESS_PER_INDEX: &str = "set max_parallel_maintenance_workers = 0";
/// The registry's last commit waits until all rows and catalogs are on the device too.
const COMMIT_WITHOUT_WAIT: &str = "set synchronous_commit = off";

/// Number of connections up to which one connection loads a single table as fast: its rows are frozen and in the order of
/// their keys, which saves the vacuum half of its work and the index its sort. Measured with 5,000,000 rows on 2 cores.
const FROZEN_CONNECTIONS: u32 = 2;

/// Number of groups of tables for each connection, so that all connections end at about the same time.
const PIECES_PER_CONNECTION: usize = 4;

/// Writes all dirty pages, if the role may do that.
fn checkpoint(connection: &mut Connection) -> Result<(), ConnectionError> {
    unless_refused(connection.execute("checkpoint")).map(drop)
}

/// The input of a preparation.
pub struct Preparation<'a> {
    /// Connection settings of the database.
    pub target: &'a ConnInfo,
    /// Workload that describes the dataset.
    pub workload: &'a dyn Workload,
    /// Name of the dataset.
    pub name: &'static str,
    /// Parameters that an existing dataset must match, by their names in the registry.
    pub compared: &'a Parameters,
    /// Whether an existing dataset is dropped first.
    pub recreate: bool,
    /// Number of parallel connections.
    pub connections: u32,
    /// Whether the free space of the server is not checked.
    pub skip_space_check: bool,
    /// Interrupt by the user.
    pub interrupt: &'a Interrupt,
    /// Receives the progress.
    pub events: &'a Events,
}

/// Checks that the dataset with this name has all of the `wanted` parameters.
///
/// # Errors
/// [`DatasetError::Differs`] with the first parameter that differs.
pub fn same_parameters(name: &'static str, entry: &Entry, wanted: &Parameters) -> Result<()> {
    // Older versions of riops wrote fewer parameters: missing ones have their defaults.
    let existing = match DatasetPlan::of_parameters(name, entry.parameters.clone()) {
        Ok(dataset) => dataset.parameters(),
        Err(_) => entry.parameters.clone(),
    };
    let Some((option, existing, wanted)) = difference(&existing, wanted) else {
        return Ok(());
    };
    let advice = String::new();
    Err(DatasetError::Differs { workload: name, option, existing, wanted, advice })
}

/// Checks that the server has the features of all options in use.
///
/// # Errors
/// [`DatasetError::Unsupported`].
pub fn require_supported(workload: &dyn Workload, dialect: Dialect) -> Result<()> {
    workload.unsupported(dialect).map_or(Ok(()), |option| {
        Err(DatasetError::Unsupported { option, flavor: dialect.flavor() })
    })
}

/// Returns the first parameter that differs, as an option, with the existing and the wanted value.
fn difference(
    recorded: &serde_json::Value,
    wanted: &Parameters,
) -> Option<(String, String, String)> {
    wanted.iter().find_map(|(name, value)| {
        let existing = recorded.get(name).unwrap_or(&serde_json::Value::Null);
        (existing != value)
            .then(|| (format!("--{}", name.replace('_', "-")), plain(existing), plain(value)))
    })
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Preparation<'_> {
    /// Creates the dataset, or keeps an existing one with the same parameters. `notice` receives notices: for
    /// whom the preparation waits, and that the free space is unknown.
    ///
    /// # Errors
    /// [`DatasetError`]. The tables are then dropped if the server is still available; otherwise they remain
    /// registered as "loading", never as complete.
    pub fn run(&self, notice: OnWait<'_>) -> Result<Prepared> {
        let start = Instant::now();
        let mut connection = Connection::open(self.target, self.interrupt)?;
        let dialect = connection.dialect();
        require_supported(self.workload, dialect)?;
        let dataset = self.workload.dataset(dialect);
        let mut registry = Registry::new(&mut connection, self.name);
        let sufficient = |entry: &Entry| {
            !self.recreate && same_parameters(self.name, entry, self.compared).is_ok()
        };
        if !registry.lock_to_prepare(sufficient, self.interrupt, notice)? {
            return Ok(Prepared::Unchanged);
        }
        registry.ensure()?;
        match registry.entry()? {
            // Adopted tables are only registered. A refused preparation keeps the registration.
            Some(entry) if entry.is_adopted() => Self::require_free(&mut registry, &dataset)?,
            Some(entry) if entry.state == State::Complete && !self.recreate => {
                same_parameters(self.name, &entry, self.compared)?;
                // If another program has dropped all tables, nothing is left to keep.
                if Self::require_free(&mut registry, &dataset).is_err() {
                    registry.require(&self.workload.table_names(), entry.is_adopted())?;
                    return Ok(Prepared::Unchanged);
                }
            }
            _ => {}
        }
        if let Err(error) = self.require_possible(&mut registry, &dataset, notice) {
            registry.drop_registry_if_empty()?;
            return Err(error);
        }
        registry.drop_dataset()?;
        if let Err(error) = Self::require_free(&mut registry, &dataset) {
            registry.drop_registry_if_empty()?;
            return Err(error);
        }
        let id = uuid::Uuid::now_v7().to_string();
        let begun = registry.begin(&id, &dataset);
        match begun.and_then(|()| self.fill(&mut registry, &dataset, &id)) {
            Ok(loading) => Ok(Prepared::Created {
                rows: dataset.tables.iter().map(|table| table.rows).sum(),
                loading,
                total: start.elapsed(),
            }),
            Err(error) => {
                drop(connection);
                self.undo(&id);
                Err(error)
            }
        }
    }

    /// Fails if one of the tables exists.
    fn require_free(registry: &mut Registry<'_>, dataset: &Dataset) -> Result<()> {
        for table in &dataset.tables {
            if registry.owns(&table.name)?.is_some() {
                return Err(DatasetError::Foreign(table.name.clone()));
            }
        }
        Ok(())
    }

    /// Fails if the server does not accept the parameters, or if the free space is less than the dataset may need. Tables that
    /// will be replaced count as free.
    fn require_possible(
        &self,
        registry: &mut Registry<'_>,
        dataset: &Dataset,
        notice: OnWait<'_>,
    ) -> Result<()> {
        for probe in &dataset.probes {
            // Extended protocol: only one statement, even if an expression contains a semicolon.
            registry.connection().query_with(probe, &[])?;
        }
        if self.skip_space_check {
            return Ok(());
        }
        let mark = registry.mark();
        let place = Place::find(registry.connection(), self.target.is_local(), &mark)?;
        let skip = format!("`riops prepare {} --skip-space-check`", self.name);
        place.require(&skip, dataset.footprint, notice)
    }

    /// Drops the tables of a failed preparation. If the server is not available, they remain, registered as
    /// "loading".
    fn undo(&self, id: &str) {
        let Ok(mut connection) = Connection::open(self.target, &Interrupt::new()) else {
            return;
        };
        let mut registry = Registry::new(&mut connection, self.name);
        // Another session that waited for the lock may have created a complete dataset meanwhile.
        let _ = registry.lock(true, &mut |_| {}).and_then(|()| registry.drop_unfinished(id));
    }

    fn fill(&self, registry: &mut Registry<'_>, dataset: &Dataset, id: &str) -> Result<Duration> {
        let start = Instant::now();
        let dialect = registry.connection().dialect();
        let without_wait = dialect.has(Feature::Heap).then(|| COMMIT_WITHOUT_WAIT.to_owned());
        let settings: Vec<_> =
            without_wait.iter().chain(&dataset.settings).map(ToOwned::to_owned).collect();
        self.load(dataset, &settings, &registry.mark())?;
        let loading = start.elapsed();
        self.events.send(&RunEvent::Indexing);
        let one_process =
            !dialect.has(Feature::KeysBeforeRows) && self.is_balanced(&dataset.tables);
        let one_process = one_process.then(|| ONE_PROCESS_PER_INDEX.to_owned());
        let settings: Vec<_> = without_wait.into_iter().chain(one_process).collect();
        // The pages of frozen rows do not change any more: they are written while the indexes are built.
        let early = u64::from(self.loads_frozen(&dataset.tables));
        let connections = self.connections.saturating_add(u32::from(early > 0));
        let jobs = dataset.tables.len() as u64 + early;
        self.in_parallel(jobs, connections, &settings, |connection, index| {
            let Some(index) = index.checked_sub(early) else {
                return checkpoint(connection);
            };
            let table = usize::try_from(index).ok().and_then(|index| dataset.tables.get(index));
            for sql in table.into_iter().flat_map(|table| &table.finish) {
                change(connection, sql)?;
            }
            Ok(())
        })?;
        for sql in &dataset.finish {
            change(registry.connection(), sql)?;
        }
        self.events.send(&RunEvent::Counting);
        for Zero { what, sql } in dataset.tables.iter().flat_map(|table| &table.zeros) {
            let value = registry.connection().query_value(sql)?.unwrap_or_default();
            if value != "0" {
                return Err(DatasetError::Wrong(format!("{what}: expected 0, found {value}")));
            }
        }
        let baseline = self.baseline()?;
        let checks = self.workload.checks(&baseline, &baseline, &Ledger::default());
        if let Some(check) = checks.iter().find(|check| !check.held) {
            let Check { name, expected, found: actual, .. } = check;
            return Err(DatasetError::Wrong(format!(
                "{name}: expected {expected}, found {actual}"
            )));
        }
        // Empty tables have no state of their own: they grow.
        let is_filled = dataset.tables.iter().any(|table| table.rows > 0);
        if dialect.has(Feature::Heap) && is_filled {
            registry.note_fresh(id, self.workload)?;
        }
        registry.complete(id, &baseline)?;
        Ok(loading)
    }

    /// Runs the contents queries of the workload in parallel, together with a checkpoint, so that the dirty
    /// pages of the dataset are not written during a later measurement.
    fn baseline(&self) -> Result<Vec<Vec<i128>>> {
        let queries = self.workload.contents_sql();
        let replies: Vec<Mutex<Vec<TextRow>>> = queries.iter().map(|_| Mutex::default()).collect();
        // One more connection than usual: the checkpoint waits for the device and needs little CPU.
        let connections = self.connections.saturating_add(1);
        let jobs = queries.len() as u64 + 1;
        self.in_parallel(jobs, connections, &[], |connection, index| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            let Some(query) = index.checked_sub(1) else {
                return checkpoint(connection);
            };
            if let Some((sql, reply)) = queries.get(query).zip(replies.get(query)) {
                let rows = connection.query(sql)?;
                *reply.lock().unwrap_or_else(PoisonError::into_inner) = rows;
            }
            Ok(())
        })?;
        let numbers = |reply: Mutex<Vec<TextRow>>| {
            row_of_numbers(&reply.into_inner().unwrap_or_else(PoisonError::into_inner).concat())
        };
        replies.into_iter().map(numbers).collect()
    }

    /// Whether each table is loaded in one transaction, which leaves its rows frozen.
    fn loads_frozen(&self, tables: &[Table]) -> bool {
        let is_fast = self.is_balanced(tables) || self.connections <= FROZEN_CONNECTIONS;
        is_fast && tables.iter().all(|table| table.frozen_copy.is_some())
    }

    /// Runs the load jobs of all tables on parallel connections. Many tables are created, too, with the `mark`.
    fn load(&self, dataset: &Dataset, settings: &[String], mark: &str) -> Result<()> {
        let tables = &dataset.tables;
        let total: u64 = tables.iter().map(|table| table.rows).sum();
        let loaded = AtomicU64::new(0);
        self.events.send(&RunEvent::Preparing { rows: 0, total });
        let load = |connection: &mut Connection, job: Job, copy: Option<&String>| {
            let rows = match job {
                Job::Copy { sql, rows, mut source } => {
                    connection.copy_in(copy.unwrap_or(&sql), |out| source(out))?;
                    rows
                }
                Job::Sql { sql, rows } => {
                    // Extended protocol: only one statement, even if an expression contains a semicolon.
                    connection.query_with(&sql, &[])?;
                    rows
                }
            };
            let rows = loaded.fetch_add(rows, Ordering::Relaxed) + rows;
            self.events.send(&RunEvent::Preparing { rows, total });
            Ok(())
        };
        let is_in_pieces = dataset.is_created_in_pieces();
        if is_in_pieces || self.loads_frozen(tables) {
            // One table at a time, unless a transaction for each would take longer than its rows.
            let size = tables.len() / (PIECES_PER_CONNECTION * self.connections.max(1) as usize);
            let size = if is_in_pieces { size.clamp(1, TABLES_PER_TRANSACTION) } else { 1 };
            let pieces: Vec<_> = tables.chunks(size).collect();
            let count = pieces.len() as u64;
            return self.in_parallel(count, self.connections, settings, |connection, index| {
                let piece = usize::try_from(index).ok().and_then(|index| pieces.get(index));
                let piece = piece.copied().unwrap_or_default();
                connection.execute("begin")?;
                if is_in_pieces {
                    create(connection, piece, mark)?;
                }
                for Table { name, jobs, job, frozen_copy, .. } in piece {
                    if !is_in_pieces {
                        connection.execute(&format!("truncate {name}"))?;
                    }
                    for position in 0..*jobs {
                        load(connection, job(position), frozen_copy.as_ref())?;
                    }
                }
                connection.execute("commit")
            });
        }
        let jobs: u64 = tables.iter().map(|table| table.jobs).sum();
        self.in_parallel(jobs, self.connections, settings, |connection, index| {
            let Some((table, index)) = nth_job(tables, index) else {
                return Ok(());
            };
            load(connection, (table.job)(index), None)
        })
    }

    /// Returns whether the tables keep all connections busy if each connection loads whole tables.
    fn is_balanced(&self, tables: &[Table]) -> bool {
        let largest = tables.iter().map(|table| table.rows).max().unwrap_or(0);
        let total: u64 = tables.iter().map(|table| table.rows).sum();
        total >= largest.saturating_mul(self.connections.into())
    }

    fn in_parallel(
        &self,
        count: u64,
        connections: u32,
        settings: &[String],
        work: impl Fn(&mut Connection, u64) -> Result<(), ConnectionError> + Sync,
    ) -> Result<()> {
        in_parallel(self.target, self.interrupt, count, connections, settings, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_the_first_differing_parameter_with_both_values() {
        let existing = json!({"tables": 1, "order": "scattered", "seed": 5});
        let difference =
            |existing, wanted: serde_json::Value| difference(existing, wanted.as_object().unwrap());
        assert_eq!(difference(&existing, json!({"tables": 1, "order": "scattered"})), None);
        assert_eq!(
            difference(&existing, json!({"tables": 1, "order": "key"})),
            Some(("--order".to_owned(), "scattered".to_owned(), "key".to_owned()))
        );
        assert_eq!(
            difference(&existing, json!({"primary_key": true})),
            Some(("--primary-key".to_owned(), "null".to_owned(), "true".to_owned()))
        );
    }

    #[test]
    fn numbers_jobs_across_all_tables() {
        let table = |name: &str, jobs| Table {
            name: name.to_owned(),
            create: Vec::new(),
            jobs,
            job: Box::new(|_| Job::Sql { sql: String::new(), rows: 0 }),
            frozen_copy: None,
            finish: Vec::new(),
            zeros: Vec::new(),
            rows: 0,
        };
        let tables = [table("a", 2), table("b", 0), table("c", 3)];
        let jobs: Vec<_> = (0..6)
            .map(|index| nth_job(&tables, index).map(|(table, job)| (table.name.as_str(), job)))
            .collect();
        assert_eq!(
            jobs,
            [Some(("a", 0)), Some(("a", 1)), Some(("c", 0)), Some(("c", 1)), Some(("c", 2)), None]
        );
    }
}
