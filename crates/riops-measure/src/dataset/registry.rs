//! The registry of the datasets in a database, `riops.dataset`.
//!
//! Everything is in the schema `riops`. Tables that riops created are identified by their comment. Other
//! tables are neither measured nor dropped, except that adopted tables are measured.

use std::str::FromStr;

use serde_json::Value;

use super::catalog::{change, drop_leftover_views, drop_routines, statements, unless_refused};
use super::error::{DatasetError, Result};
use crate::server::connection::TextRow;
use crate::server::{Connection, ConnectionError, Feature};
use crate::workload;
use crate::workload::tables::{Dataset, TABLES_PER_TRANSACTION, Table};
use riops_model::plan::DatasetPlan;
use riops_model::record::diagnosis::DatasetFit;

const CREATE_REGISTRY: &str = include_str!("../../sql/dataset/create_registry.sql");
const COMMENT: &str = include_str!("../../sql/dataset/comment.sql");
const MARKED: &str = include_str!("../../sql/dataset/marked.sql");
const OWN_TABLES: &str = include_str!("../../sql/dataset/own_tables.sql");
const ATTACHED: &str = include_str!("../../sql/dataset/attached.sql");
const PARTITIONS: &str = include_str!("../../sql/dataset/partitions.sql");
const SCHEMA_MARK: &str = "made by riops";
const REGISTRY_MARK: &str = "riops registry 1";

/// The tables of the registry with their columns.
const REGISTRY: [(&str, &str); 2] = [
    (
        "riops.dataset",
        "workload id state parameters baseline fresh riops_version started_at completed_at",
    ),
    ("riops.run", "id dataset started_at ended_at rows_changed rows_unknown effects changes"),
];

/// The state of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being loaded, or the load was interrupted.
    Loading,
    /// Complete and verified.
    Complete,
}

/// An entry of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Dataset generation id, a UUID.
    pub id: String,
    /// State of the dataset.
    pub state: State,
    /// Parameters that created it.
    pub parameters: Value,
    /// Results of the contents queries of the workload, directly after the load.
    pub baseline: Vec<Vec<i128>>,
}

impl Entry {
    /// Whether another program created the tables.
    pub fn is_adopted(&self) -> bool {
        self.parameters.get("adopted") == Some(&true.into())
    }
}

/// The registry in a database, accessed through a connection that also holds its locks.
#[derive(Debug)]
pub struct Registry<'a> {
    pub(super) connection: &'a mut Connection,
    /// Name of the workload.
    pub(super) workload: &'static str,
    /// Whether the registry is known to exist. Another session may drop it as long as this one has no lock.
    pub(super) is_known: bool,
}

impl<'a> Registry<'a> {
    /// Returns a handle to the registry for one workload.
    pub fn new(connection: &'a mut Connection, workload: &'static str) -> Self {
        Self { connection, workload, is_known: false }
    }

    /// Returns the connection, for other statements of the caller.
    pub fn connection(&mut self) -> &mut Connection {
        self.connection
    }

    /// Creates the schema and the registry if they are missing.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn ensure(&mut self) -> Result<()> {
        if !self.has_schema()? {
            // An interruption between the two leaves a schema that riops uses but does not drop.
            self.change_catalog(|connection| {
                change(connection, "create schema riops")?;
                change(connection, &format!("comment on schema riops is '{SCHEMA_MARK}'"))
            })?;
        }
        if self.exists()? {
            return self.add_later_columns();
        }
        self.drop_unfinished_registry()?;
        self.change_catalog(|connection| {
            statements(CREATE_REGISTRY).iter().try_for_each(|sql| change(connection, sql))
        })
    }

    /// Drops a registry whose creation or removal was interrupted, which only happens if each statement commits
    /// separately. It has no entries.
    fn drop_unfinished_registry(&mut self) -> Result<()> {
        for (table, columns) in REGISTRY {
            if self.is_unfinished_part(table, columns)? {
                change(self.connection, &format!("drop table {table}"))?;
            }
        }
        Ok(())
    }

    /// Whether a table without the comment of the registry is a part of it: its comment is the last step.
    fn is_unfinished_part(&mut self, table: &str, columns: &str) -> Result<bool> {
        let is_candidate = |comment: String| comment.is_empty() || comment == REGISTRY_MARK;
        if !self.comment_of(table)?.is_some_and(is_candidate) || !self.commits_each_change() {
            return Ok(false);
        }
        let sql = format!(
            "select string_agg(attname, ' ' order by attnum) from pg_attribute
              where attrelid = '{table}'::regclass and attnum > 0 and not attisdropped"
        );
        Ok(self.connection.query_value(&sql)?.as_deref() == Some(columns))
    }

    /// Whether the registry exists.
    ///
    /// # Errors
    /// [`DatasetError::Foreign`] if a table of its name was not created by riops.
    pub fn exists(&mut self) -> Result<bool> {
        self.is_known = self.is_known || self.has_schema()? && self.has_registry()?;
        Ok(self.is_known)
    }

    fn has_registry(&mut self) -> Result<bool> {
        let [(table, columns), _] = REGISTRY;
        match self.comment_of(table)? {
            None => Ok(false),
            Some(comment) if comment == REGISTRY_MARK => Ok(true),
            Some(_) if self.is_unfinished_part(table, columns)? => Ok(false),
            Some(_) => Err(DatasetError::Foreign(table.to_owned())),
        }
    }

    /// Returns the comment of a qualified table, which may be empty, or `None` if it does not exist.
    fn comment_of(&mut self, table: &str) -> Result<Option<String>> {
        let rows = self.connection.query_with(COMMENT, &[Some(table)])?;
        Ok(rows.into_iter().flatten().next().flatten())
    }

    /// Returns whether the schema exists, and a superuser executes nothing that another role defines in it.
    fn has_schema(&mut self) -> Result<bool> {
        match self.connection.schema_owner("riops")? {
            (_, Some(owner)) => Err(DatasetError::UntrustedOwner(owner)),
            (exists, None) => Ok(exists),
        }
    }

    /// Whether the table was created by riops, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`DatasetError::Connection`] if the query fails.
    pub fn owns(&mut self, table: &str) -> Result<Option<bool>> {
        Ok(match self.comment_of(table)? {
            None => None,
            // An interrupted preparation has created it. If each statement commits separately, the entry is made before the
            // tables, which are known not to exist then.
            Some(comment) if comment.is_empty() && self.commits_each_change() => {
                Some(self.unfinished_tables()?.iter().any(|unfinished| unfinished == table))
            }
            Some(comment) => Some(comment == self.mark()),
        })
    }

    /// Returns the names of the tables of an interrupted preparation, which may exist.
    fn unfinished_tables(&mut self) -> Result<Vec<String>> {
        let unfinished = |entry: &Entry| entry.state == State::Loading && !entry.is_adopted();
        let Some(entry) = self.entry()?.filter(unfinished) else {
            return Ok(Vec::new());
        };
        let dataset = DatasetPlan::of_parameters(self.workload, entry.parameters)?;
        Ok(workload::on(&dataset)?.table_names())
    }

    /// Checks that all tables of the dataset exist and, unless they are `adopted`, were created by riops.
    ///
    /// # Errors
    /// [`DatasetError::Gone`] or [`DatasetError::Replaced`] with the first table for which this does not hold.
    pub fn require(&mut self, tables: &[String], adopted: bool) -> Result<()> {
        let names = serde_json::to_string(tables).unwrap_or_default();
        let marked = [Some(names.as_str()), Some(&self.mark())];
        let marked = self.connection.query_with(MARKED, &marked)?;
        let marked = marked.first().and_then(|row| parsed::<usize>(row.first()?.as_ref()));
        if marked == Some(tables.len()) {
            return Ok(());
        }
        for table in tables {
            let (workload, table) = (self.workload, table.clone());
            match self.owns(&table)? {
                None => return Err(DatasetError::Gone { workload, table }),
                Some(false) if !adopted => return Err(DatasetError::Replaced { workload, table }),
                Some(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn mark(&self) -> String {
        format!("riops dataset {}", self.workload)
    }

    /// Returns the entry of the workload.
    ///
    /// # Errors
    /// [`DatasetError`] if the query fails or the entry is invalid.
    pub fn entry(&mut self) -> Result<Option<Entry>> {
        if !self.exists()? {
            return Ok(None);
        }
        let rows = self.connection.query_with(
            "select id, state, parameters, coalesce(baseline, '[]') from riops.dataset where workload = $1",
            &[Some(self.workload)],
        )?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let damaged = |what: &str| DatasetError::Damaged(what.to_owned());
        let [Some(id), Some(state), Some(parameters), Some(baseline)] = row.as_slice() else {
            return Err(damaged("an entry contains nulls"));
        };
        let baseline: Vec<Vec<String>> =
            serde_json::from_str(baseline).map_err(|error| damaged(&error.to_string()))?;
        Ok(Some(Entry {
            id: id.clone(),
            state: if state == "complete" { State::Complete } else { State::Loading },
            parameters: serde_json::from_str(parameters)
                .map_err(|error| damaged(&error.to_string()))?,
            baseline: baseline
                .iter()
                .map(|numbers| numbers.iter().map(|value| value.parse()).collect())
                .collect::<Result<_, _>>()
                .map_err(|_| damaged("the baseline contains non-numeric values"))?,
        }))
    }

    /// Registers a dataset with this generation id as being loaded and creates its empty tables, in one transaction
    /// if the server supports it. Many tables are created when they are loaded.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn begin(&mut self, id: &str, dataset: &Dataset) -> Result<()> {
        let mark = self.mark();
        let workload = self.workload;
        let parameters = dataset.parameters.to_string();
        let first = if dataset.is_created_in_pieces() { &[] } else { dataset.tables.as_slice() };
        self.change_catalog(|connection| {
            register(connection, workload, id, &parameters)?;
            create(connection, first, &mark)
        })
    }

    /// Whether each statement that changes the catalog commits separately.
    pub(super) fn commits_each_change(&self) -> bool {
        !self.connection.dialect().has(Feature::TransactionalDdl)
    }

    /// Runs `work`, which changes the catalog: in a transaction, if the server supports it.
    pub(super) fn change_catalog(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<(), ConnectionError>,
    ) -> Result<()> {
        if self.commits_each_change() {
            return Ok(work(self.connection)?);
        }
        self.in_transaction(work)
    }

    /// Runs `work` in a transaction.
    pub(super) fn in_transaction<E: Into<DatasetError>>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<(), E>,
    ) -> Result<()> {
        self.connection.execute("begin")?;
        match work(self.connection) {
            Ok(()) => Ok(self.connection.execute("commit")?),
            Err(error) => {
                // On a lost connection the server has already rolled back.
                let _ = self.connection.execute("rollback");
                Err(error.into())
            }
        }
    }

    /// Registers this generation of the dataset as complete.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session has replaced it meanwhile.
    pub fn complete(&mut self, id: &str, baseline: &[Vec<i128>]) -> Result<()> {
        if set_complete(self.connection, self.workload, id, baseline)? {
            return Ok(());
        }
        Err(DatasetError::InUse { workload: self.workload, holders: self.other_users() })
    }

    /// Forgets the baseline of the tables in a schema, or in any, because they will change without being counted. Until
    /// the next baseline, the contents cannot be verified. Has no effect without a registry of riops, or without the
    /// right to change it.
    ///
    /// # Errors
    /// [`DatasetError`] if the connection is lost.
    pub fn forget_baseline(&mut self, schema: Option<&str>) -> Result<()> {
        match self.exists() {
            Ok(true) => {}
            Ok(false) | Err(DatasetError::Foreign(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        let sql = "update riops.dataset set baseline = null
                    where workload = $1 and coalesce(parameters::json ->> 'schema' = $2, $2 is null)";
        unless_refused(self.connection.query_with(sql, &[Some(self.workload), schema]))?;
        Ok(())
    }

    /// Drops the tables of the dataset and its entry. Returns the names of the dropped tables.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn drop_dataset(&mut self) -> Result<Vec<String>> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        let mark = self.mark();
        let workload = self.workload;
        let marked = [Some(mark.as_str()), Some(workload)];
        let rows = self.connection.query_with(OWN_TABLES, &marked)?;
        let mut tables: Vec<String> = rows.into_iter().flatten().flatten().collect();
        if self.commits_each_change() {
            require_nothing_attached(self.connection, &marked)?;
            self.drop_one_by_one(&mut tables)?;
            self.in_transaction(|connection| forget(connection, workload))?;
            return Ok(tables);
        }
        let last = tables.len().saturating_sub(1) / TABLES_PER_TRANSACTION * TABLES_PER_TRANSACTION;
        let (others, last) = tables.split_at(last);
        for others in others.chunks(TABLES_PER_TRANSACTION) {
            self.in_transaction(|connection| {
                set_state(connection, workload, "loading")?;
                drop_together(connection, others, &marked)
            })?;
        }
        self.in_transaction(|connection| {
            drop_together(connection, last, &marked)?;
            Ok::<_, DatasetError>(forget(connection, workload)?)
        })?;
        Ok(tables)
    }

    /// Drops these tables, and the tables of an interrupted preparation. Each drop commits separately: an interruption
    /// leaves the dataset incomplete.
    fn drop_one_by_one(&mut self, tables: &mut Vec<String>) -> Result<()> {
        for table in self.unfinished_tables()? {
            if !tables.contains(&table) && self.comment_of(&table)?.as_deref() == Some("") {
                tables.push(table);
            }
        }
        let complete = self.entry()?.filter(|entry| entry.state == State::Complete);
        for (position, table) in tables.iter().enumerate() {
            drop_leftover_views(self.connection, table)?;
            set_state(self.connection, self.workload, "loading")?;
            if let Err(error) = change(self.connection, &format!("drop table {table}")) {
                // Nothing was dropped, for example because a view depends on the table.
                if position == 0 && complete.is_some() {
                    set_state(self.connection, self.workload, "complete")?;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Drops this generation of the dataset if it is incomplete. Other generations and complete datasets
    /// are kept.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn drop_unfinished(&mut self, id: &str) -> Result<()> {
        let is_unfinished = |entry: &Entry| entry.id == id && entry.state == State::Loading;
        if self.entry()?.as_ref().is_some_and(is_unfinished) {
            self.drop_dataset()?;
            self.drop_registry_if_empty()?;
        }
        Ok(())
    }

    /// Drops the registry if it has no entries, and the schema if it contains no other objects.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn drop_registry_if_empty(&mut self) -> Result<()> {
        if self.exists()? {
            if self.connection.query_value("select 1 from riops.dataset limit 1")?.is_some() {
                return Ok(());
            }
            let [_, (runs, _)] = REGISTRY;
            if self.comment_of(runs)?.is_some_and(|comment| comment != REGISTRY_MARK) {
                return Err(DatasetError::Foreign(runs.to_owned()));
            }
            drop_routines(self.connection, &[])?;
            self.is_known = false;
            change(self.connection, "drop table riops.dataset, riops.run")?;
        } else {
            self.drop_unfinished_registry()?;
        }
        let mark = self.connection.query_value(
            "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = 'riops'",
        )?;
        if mark.as_deref() == Some(SCHEMA_MARK) {
            // Fails if the schema contains objects of other users.
            unless_refused(change(self.connection, "drop schema riops restrict"))?;
        }
        Ok(())
    }

    /// Updates the parameters of the dataset before a run changes it. Returns false if another session has
    /// changed them meanwhile.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn note_parameters(&mut self, previous: &Value, now: &Value) -> Result<bool> {
        let changed = self.connection.query_with(
            "update riops.dataset set parameters = $2 where workload = $1 and parameters::jsonb = $3::jsonb returning 1",
            &[Some(self.workload), Some(&now.to_string()), Some(&previous.to_string())],
        )?;
        Ok(!changed.is_empty())
    }

    /// Returns the size of the dataset relative to shared buffers and, if known, to the memory of the
    /// server host. `None` if there is no complete dataset, or the role may not read the registry or the size.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn fit(&mut self, memory_bytes: Option<u64>) -> Result<Option<DatasetFit>> {
        let entry = match self.entry() {
            Err(DatasetError::Connection(error)) if error.is_privilege_missing() => None,
            entry => entry?,
        };
        if entry.is_none_or(|entry| entry.state != State::Complete) {
            return Ok(None);
        }
        let sql = "select sum(pg_total_relation_size(c.oid)), pg_size_bytes(current_setting('shared_buffers'))
                     from pg_class c where obj_description(c.oid, 'pg_class') = $1";
        let mark = self.mark();
        let rows = unless_refused(self.connection.query_with(sql, &[Some(&mark)]))?;
        let fit = |row: &TextRow| {
            let [bytes, buffers] = row.as_slice() else {
                return None;
            };
            let (bytes, shared_buffers_bytes) =
                (parsed(bytes.as_ref())?, parsed(buffers.as_ref())?);
            Some(DatasetFit { bytes, shared_buffers_bytes, memory_bytes })
        };
        Ok(rows.and_then(|rows| fit(rows.first()?)))
    }

    /// Runs the contents queries of the workload.
    ///
    /// # Errors
    /// [`DatasetError`] if a query fails or returns anything but integers.
    pub fn contents(&mut self, queries: &[String]) -> Result<Vec<Vec<i128>>> {
        queries.iter().map(|sql| row_of_numbers(&self.connection.query(sql)?.concat())).collect()
    }
}

/// Fails if an object that riops did not create is attached to a table of the dataset.
fn require_nothing_attached(connection: &mut Connection, marked: &[Option<&str>; 2]) -> Result<()> {
    let row = connection.query_with(ATTACHED, marked)?.into_iter().next().unwrap_or_default();
    match row.as_slice() {
        [Some(table), Some(object)] => {
            Err(DatasetError::Attached { table: table.clone(), object: object.clone() })
        }
        _ => Ok(()),
    }
}

/// Creates empty tables of a dataset.
pub(super) fn create(
    connection: &mut Connection,
    tables: &[Table],
    mark: &str,
) -> Result<(), ConnectionError> {
    for table in tables {
        table.create.iter().try_for_each(|sql| change(connection, sql))?;
        let partitions = connection.query_with(PARTITIONS, &[Some(&table.name)])?;
        let partitions = partitions.into_iter().flatten().flatten();
        for name in std::iter::once(table.name.clone()).chain(partitions) {
            change(connection, &format!("comment on table {name} is '{mark}'"))?;
        }
    }
    Ok(())
}

/// Sets the state of a dataset, unless it was adopted.
fn set_state(connection: &mut Connection, workload: &str, state: &str) -> Result<()> {
    let sql = "update riops.dataset set state = $2
                where workload = $1 and parameters::json ->> 'adopted' is distinct from 'true'";
    connection.query_with(sql, &[Some(workload), Some(state)])?;
    Ok(())
}

/// Drops tables of a dataset. They are locked, so that nothing can be attached after the check.
fn drop_together(
    connection: &mut Connection,
    tables: &[String],
    marked: &[Option<&str>; 2],
) -> Result<()> {
    for table in tables {
        drop_leftover_views(connection, table)?;
    }
    let list = tables.join(", ");
    if !tables.is_empty() {
        connection.execute(&format!("lock table {list} in access exclusive mode"))?;
    }
    require_nothing_attached(connection, marked)?;
    if !tables.is_empty() {
        // Together, because they may refer to each other.
        connection.execute(&format!("drop table {list}"))?;
    }
    Ok(())
}

/// Deletes the entry of a workload, with its ledger.
pub(super) fn forget(connection: &mut Connection, workload: &str) -> Result<(), ConnectionError> {
    connection.query_with(
        "delete from riops.run where dataset in
                (select id from riops.dataset where workload = $1)",
        &[Some(workload)],
    )?;
    connection.query_with("delete from riops.dataset where workload = $1", &[Some(workload)])?;
    Ok(())
}

/// Sets the baseline of this generation of the dataset, which is then complete. Returns false if another session has
/// replaced it.
pub(super) fn set_complete(
    connection: &mut Connection,
    workload: &str,
    id: &str,
    baseline: &[Vec<i128>],
) -> Result<bool, ConnectionError> {
    // As text, because the sum of a billion rows does not fit into a JSON number.
    let baseline: Vec<Vec<String>> =
        baseline.iter().map(|numbers| numbers.iter().map(ToString::to_string).collect()).collect();
    let json = Value::from(baseline).to_string();
    let changed = connection.query_with(
        "update riops.dataset set state = 'complete', baseline = $2, completed_at = now()
              where workload = $1 and id = $3 returning 1",
        &[Some(workload), Some(&json), Some(id)],
    )?;
    Ok(!changed.is_empty())
}

/// Registers tables as being loaded.
pub(super) fn register(
    connection: &mut Connection,
    workload: &str,
    id: &str,
    parameters: &str,
) -> Result<(), ConnectionError> {
    connection.query_with(
        "insert into riops.dataset (workload, id, state, parameters, riops_version)
         values ($1, $2, 'loading', $3, $4)",
        &[Some(workload), Some(id), Some(parameters), Some(env!("CARGO_PKG_VERSION"))],
    )?;
    Ok(())
}

/// Returns the number or the time of a column.
pub(super) fn parsed<T: FromStr>(value: Option<&String>) -> Option<T> {
    value?.parse().ok()
}

pub(super) fn row_of_numbers(row: &[Option<String>]) -> Result<Vec<i128>> {
    row.iter()
        .map(|value| value.as_deref().unwrap_or("").parse())
        .collect::<Result<_, _>>()
        .map_err(|_| DatasetError::Damaged(format!("expected integers, found {row:?}")))
}
