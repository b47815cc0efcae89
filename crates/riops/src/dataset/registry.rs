//! Datasets in a target: what one consists of, and the registry that knows which are there.
//!
//! Everything lies in the schema `riops`. A table is riops's own only when its comment says so:
//! what riops did not make it neither measures nor drops.

use serde_json::Value;

use super::error::DatasetError;
use super::leftovers::{drop_leftover_views, drop_routines};
use crate::server::fit::DatasetFit;
use crate::server::{Connection, ConnectionError};
use crate::workload::tables::Dataset;

const CREATE_REGISTRY: &str = include_str!("../../../../sql/dataset/create_registry.sql");
const SCHEMA_MARK: &str = "made by riops";

/// Whether a dataset can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being loaded, or its loading was interrupted.
    Loading,
    /// Whole and checked.
    Complete,
}

/// What the registry knows of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// A UUID of this making of it.
    pub id: String,
    /// Whether it can be measured.
    pub state: State,
    /// The parameters that made it.
    pub parameters: Value,
    /// The answers to the workload's contents queries, just after loading.
    pub baseline: Vec<Vec<i128>>,
}

/// The registry in one target, through a connection that also holds its locks.
#[derive(Debug)]
pub struct Registry<'a> {
    connection: &'a mut Connection,
    workload: &'static str,
}

impl<'a> Registry<'a> {
    /// The registry's entries for one workload.
    #[must_use]
    pub fn new(connection: &'a mut Connection, workload: &'static str) -> Self {
        Self { connection, workload }
    }

    /// The name of the workload.
    pub(super) fn workload(&self) -> &'static str {
        self.workload
    }

    /// The connection, for statements of the caller's own.
    pub fn connection(&mut self) -> &mut Connection {
        self.connection
    }

    /// Makes schema and registry where they are missing.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn ensure(&mut self) -> Result<(), DatasetError> {
        if self
            .connection
            .query_value("select 1 from pg_namespace where nspname = 'riops'")?
            .is_none()
        {
            self.connection.execute(&format!(
                "create schema riops; comment on schema riops is '{SCHEMA_MARK}'"
            ))?;
        }
        if !self.exists()? {
            // One query is one transaction: both tables or none.
            self.connection.execute(CREATE_REGISTRY)?;
            return Ok(());
        }
        // What a registry of an older riops does not have.
        let column = "select 1 from pg_attribute
                       where attrelid = 'riops.run'::regclass and attname = 'effects'";
        if self.connection.query_value(column)?.is_none() {
            self.connection.execute("alter table riops.run add column effects text")?;
        }
        Ok(())
    }

    /// Whether the registry is there.
    ///
    /// # Errors
    /// [`DatasetError::Foreign`] where a table of its name is somebody else's.
    pub fn exists(&mut self) -> Result<bool, DatasetError> {
        match self.comment_of("riops.dataset")? {
            None => Ok(false),
            Some(comment) if comment == "riops registry 1" => Ok(true),
            Some(_) => Err(DatasetError::Foreign("riops.dataset".to_owned())),
        }
    }

    /// The comment of a table, named with its schema; `None` where there is no table, empty where it
    /// has no comment.
    fn comment_of(&mut self, table: &str) -> Result<Option<String>, DatasetError> {
        let (schema, name) = table.split_once('.').unwrap_or(("riops", table));
        let rows = self.connection.query_with(
            "select coalesce(obj_description(c.oid, 'pg_class'), '')
               from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = $1 and c.relname = $2",
            &[Some(schema), Some(name)],
        )?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Whether the table was made by riops; `None` where there is none.
    ///
    /// # Errors
    /// [`DatasetError::Connection`]
    pub fn owns(&mut self, table: &str) -> Result<Option<bool>, DatasetError> {
        let mark = self.mark();
        Ok(self.comment_of(table)?.map(|comment| comment == mark))
    }

    /// Makes sure that all tables of the dataset are there, and are riops's own unless they are
    /// `adopted`.
    ///
    /// # Errors
    /// [`DatasetError::Gone`]
    pub fn require(&mut self, tables: &[String], adopted: bool) -> Result<(), DatasetError> {
        for table in tables {
            let owned = self.owns(table)?;
            if owned.is_none() || (owned == Some(false) && !adopted) {
                return Err(DatasetError::Gone { workload: self.workload, table: table.clone() });
            }
        }
        Ok(())
    }

    fn mark(&self) -> String {
        format!("riops dataset {}", self.workload)
    }

    /// What is registered for the workload.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn entry(&mut self) -> Result<Option<Entry>, DatasetError> {
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
            return Err(damaged("an entry has empty fields"));
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
                .map(|numbers| numbers.iter().map(|number| number.parse()).collect())
                .collect::<Result<_, _>>()
                .map_err(|_| damaged("its baseline has something else than numbers"))?,
        }))
    }

    /// Registers a dataset as being loaded and makes its empty tables, all or nothing. Returns the
    /// id of this making of it.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn begin(&mut self, dataset: &Dataset) -> Result<String, DatasetError> {
        let mark = self.mark();
        let workload = self.workload;
        let id = uuid::Uuid::now_v7().to_string();
        let parameters = dataset.parameters.to_string();
        self.in_transaction(|connection| {
            for table in &dataset.tables {
                connection.execute(&table.create)?;
                connection.execute(&format!("comment on table {} is '{mark}'", table.name))?;
            }
            register(connection, workload, &id, &parameters)
        })?;
        Ok(id)
    }

    /// All or nothing.
    pub(super) fn in_transaction(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<(), ConnectionError>,
    ) -> Result<(), DatasetError> {
        self.connection.execute("begin")?;
        match work(self.connection) {
            Ok(()) => Ok(self.connection.execute("commit")?),
            Err(error) => {
                // A broken connection has rolled back already.
                let _ = self.connection.execute("rollback");
                Err(error.into())
            }
        }
    }

    /// Registers this making of the dataset as whole.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] where somebody has made another one meanwhile.
    pub fn complete(&mut self, id: &str, baseline: &[Vec<i128>]) -> Result<(), DatasetError> {
        // As text: the sum of a billion rows does not fit into JSON's numbers.
        let baseline: Vec<Vec<String>> = baseline
            .iter()
            .map(|numbers| numbers.iter().map(ToString::to_string).collect())
            .collect();
        let json = Value::from(baseline).to_string();
        let changed = self.connection.query_with(
            "update riops.dataset set state = 'complete', baseline = $2, completed_at = now()
              where workload = $1 and id = $3 returning 1",
            &[Some(self.workload), Some(&json), Some(id)],
        )?;
        if changed.is_empty() {
            return Err(DatasetError::InUse(self.workload));
        }
        Ok(())
    }

    /// Drops the dataset's tables and its entry, and where nothing else is left, registry and
    /// schema. Returns the names of the dropped tables.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn drop_dataset(&mut self) -> Result<Vec<String>, DatasetError> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        let mark = self.mark();
        let workload = self.workload;
        // In the schema of the dataset, which is riops's own where nothing else was said.
        let tables: Vec<String> = self
            .connection
            .query_with(
                "select format('%I.%I', n.nspname, c.relname)
                   from pg_class c join pg_namespace n on n.oid = c.relnamespace
                  where c.relkind in ('r', 'p')
                    and obj_description(c.oid, 'pg_class') = $1
                    and (n.nspname = 'riops' or n.nspname =
                      (select parameters::json ->> 'schema' from riops.dataset where workload = $2))
                  order by 1",
                &[Some(&mark), Some(workload)],
            )?
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        self.in_transaction(|connection| {
            for table in &tables {
                drop_leftover_views(connection, table)?;
                connection.execute(&format!("drop table {table}"))?;
            }
            forget(connection, workload)
        })?;
        Ok(tables)
    }

    /// Drops a making of the dataset that came to nothing; another one, and one that is whole, stays.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn drop_unfinished(&mut self, id: &str) -> Result<(), DatasetError> {
        let ours = |entry: &Entry| entry.id == id && entry.state == State::Loading;
        if self.entry()?.as_ref().is_some_and(ours) {
            self.drop_dataset()?;
            self.drop_registry_if_empty()?;
        }
        Ok(())
    }

    /// Drops registry and schema where nothing else is in them.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn drop_registry_if_empty(&mut self) -> Result<(), DatasetError> {
        if !self.exists()?
            || self.connection.query_value("select 1 from riops.dataset limit 1")?.is_some()
        {
            return Ok(());
        }
        self.connection.execute("drop table riops.dataset, riops.run")?;
        drop_routines(self.connection, &[])?;
        let mark = self.connection.query_value(
            "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = 'riops'",
        )?;
        if mark.as_deref() == Some(SCHEMA_MARK) {
            // Somebody else's objects in it keep it alive.
            match self.connection.execute("drop schema riops restrict") {
                Err(ConnectionError::Server(_)) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Changes the parameters of the dataset from what they were to what a run is about to make of
    /// them; false where somebody else has changed them meanwhile.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn note_parameters(&mut self, found: &Value, now: &Value) -> Result<bool, DatasetError> {
        let changed = self.connection.query_with(
            "update riops.dataset set parameters = $2 where workload = $1 and parameters::jsonb = $3::jsonb returning 1",
            &[Some(self.workload), Some(&now.to_string()), Some(&found.to_string())],
        )?;
        Ok(!changed.is_empty())
    }

    /// What the dataset fits into, given the memory of the server's machine where that is known;
    /// `None` where there is no whole dataset, or the server does not tell its size.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn fit(&mut self, memory_bytes: Option<u64>) -> Result<Option<DatasetFit>, DatasetError> {
        if self.entry()?.is_none_or(|entry| entry.state != State::Complete) {
            return Ok(None);
        }
        let sql = "select sum(pg_total_relation_size(c.oid)), pg_size_bytes(current_setting('shared_buffers'))
                     from pg_class c where obj_description(c.oid, 'pg_class') = $1";
        let mark = self.mark();
        let rows = match self.connection.query_with(sql, &[Some(&mark)]) {
            Err(ConnectionError::Server(_)) => return Ok(None),
            other => other?,
        };
        let number = |value: &Option<String>| value.as_ref()?.parse::<u64>().ok();
        Ok(rows.first().and_then(|row| match row.as_slice() {
            [bytes, buffers] => Some(DatasetFit {
                bytes: number(bytes)?,
                shared_buffers_bytes: number(buffers)?,
                memory_bytes,
            }),
            _ => None,
        }))
    }

    /// Asks the workload's contents queries.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn contents(&mut self, queries: &[String]) -> Result<Vec<Vec<i128>>, DatasetError> {
        queries
            .iter()
            .map(|sql| {
                let rows = self.connection.query(sql)?;
                row_of_numbers(&rows.concat())
            })
            .collect()
    }
}

/// Deletes what is registered for a workload, with its ledger.
pub(super) fn forget(connection: &mut Connection, workload: &str) -> Result<(), ConnectionError> {
    connection.query_with(
        "delete from riops.run where dataset in
                (select id from riops.dataset where workload = $1)",
        &[Some(workload)],
    )?;
    connection.query_with("delete from riops.dataset where workload = $1", &[Some(workload)])?;
    Ok(())
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

pub(super) fn row_of_numbers(row: &[Option<String>]) -> Result<Vec<i128>, DatasetError> {
    row.iter()
        .map(|value| value.as_deref().unwrap_or("").parse())
        .collect::<Result<_, _>>()
        .map_err(|_| DatasetError::Damaged(format!("{row:?} are no whole numbers")))
}
