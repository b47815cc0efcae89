//! The store in a SQLite file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};

use super::backend::{Access, Backend, Dialect, Session, Work};
use super::error::StoreError;
use super::experiment_lock::{ExperimentLock, LockKey};
use super::location::default_path;
use super::schema::VERSION;
use super::value::{Fields, stored_integer};
use crate::figure::Value;
use crate::host::Interrupt;
use crate::host::output_file::{create_private_directory, private_file};
use crate::summary::Row;

/// How long a riops waits for another one that writes.
const BUSY_TIMEOUT: Duration = Duration::from_mins(2);
/// The same after Ctrl-C. The caller then keeps the record of a run elsewhere.
const BUSY_TIMEOUT_INTERRUPTED: Duration = Duration::from_secs(1);
/// How long SQLite itself waits, so that an interrupt is noticed.
const BUSY_POLL: Duration = Duration::from_millis(100);

/// A version that is written and rolled back to find out whether the file can be written.
const OTHER_VERSION: u32 = 1_000_000;

const INSERT: &str = include_str!("../../sql/store/insert.sql");

static DIALECT: Dialect = Dialect {
    time: "text",
    boolean: "integer",
    false_value: "0",
    json_object: "json_group_object",
    integer: "integer",
    real: "real",
    strict: " strict",
    keyed: " strict, without rowid",
    lock_record: "",
};

const CONTENTS: &str = include_str!("../../sql/store/contents.sql");
/// Number of the columns that the query counts.
const STORE_COLUMNS: u32 = 4;

/// A SQLite file.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    interrupt: Interrupt,
}

impl Sqlite {
    /// Opens the file; creates it if necessary.
    pub(super) fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, StoreError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            if path != default_path() {
                return Err(StoreError::NoFolder(path.to_owned()));
            }
            create_private_directory(folder)
                .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
        }
        let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
        // SQLite would create the file with the rights of the umask. If it cannot be created, SQLite gives the reason.
        let _ = private_file().append(true).open(path);
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY_POLL).map_err(failed)?;
        let store = Self { connection, path: path.to_owned(), interrupt: interrupt.clone() };
        let [version, tables, columns]: [u32; 3] = store.unless_locked(|connection| {
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.query_row(CONTENTS, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
        })?;
        // Other programs number the versions of their files, too. A store of a newer riops is refused later.
        let is_store = match version {
            0 => tables == 0,
            version => columns == STORE_COLUMNS || version as usize > VERSION,
        };
        if !is_store {
            return Err(StoreError::NoStore(path.to_owned()));
        }
        Ok(store)
    }

    /// Repeats a step while another process has locked the file.
    fn unless_locked<T>(
        &self,
        step: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let start = Instant::now();
        loop {
            let error = match step(&self.connection) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_locked = matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            );
            if !is_locked {
                return Err(self.failed(error));
            }
            let is_interrupted = self.interrupt.is_requested();
            let timeout = if is_interrupted { BUSY_TIMEOUT_INTERRUPTED } else { BUSY_TIMEOUT };
            if start.elapsed() >= timeout {
                return Err(StoreError::Locked(self.path.clone()));
            }
        }
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }

    fn begin(&self, access: Access) -> Result<(), StoreError> {
        self.unless_locked(|connection| match access {
            // The lock of a deferred transaction is taken by its first statement.
            Access::Read => connection
                .execute_batch("begin; select 1 from sqlite_master limit 1")
                .inspect_err(|_| drop(connection.execute_batch("rollback"))),
            // Immediate: two processes that read first and write later could not both continue.
            Access::Write | Access::Attempt => connection.execute_batch("begin immediate"),
        })
    }
}

impl Backend for Sqlite {
    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn lock(&self, key: LockKey<'_>) -> Result<Option<ExperimentLock>, StoreError> {
        ExperimentLock::file(&self.path, key)
    }

    fn transaction(&self, access: Access, work: Work<'_>) -> Result<(), StoreError> {
        self.begin(access)?;
        let mut session = self;
        let done = work(&mut session).and_then(|()| match access {
            // Waits for readers.
            Access::Write => self.unless_locked(|connection| connection.execute_batch("commit")),
            Access::Read | Access::Attempt => Ok(()),
        });
        if access != Access::Write || done.is_err() {
            let rolled_back = self.connection.execute_batch("rollback");
            return done.and(rolled_back.map_err(|source| self.failed(source)));
        }
        done
    }
}

impl Session for &Sqlite {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Row>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Row>> {
            // `$1` is a name in SQLite, and `?1` a position.
            let mut statement = self.connection.prepare_cached(&sql.replace('$', "?"))?;
            let columns = statement.column_count();
            let mut rows =
                statement.query(rusqlite::params_from_iter(parameters.iter().map(Parameter)))?;
            let mut all_rows = Vec::new();
            while let Some(row) = rows.next()? {
                let cell = |column| row.get_ref(column).map(text_of);
                all_rows.push((0..columns).map(cell).collect::<rusqlite::Result<Row>>()?);
            }
            Ok(all_rows)
        };
        read().map_err(|source| self.failed(source))
    }

    fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(|source| self.failed(source))
    }

    fn insert(&mut self, table: &str, rows: &[Fields]) -> Result<(), StoreError> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let columns: Vec<_> = first.iter().map(|(column, _)| *column).collect();
        let sql = INSERT
            .replace("{table}", table)
            .replace("{columns}", &columns.join(", "))
            .replace("{values}", &vec!["?"; columns.len()].join(", "));
        let write = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            for row in rows {
                statement.execute(rusqlite::params_from_iter(
                    row.iter().map(|(_, value)| Parameter(value)),
                ))?;
            }
            Ok(())
        };
        write().map_err(|source| self.failed(source))
    }

    fn version(&mut self) -> Result<usize, StoreError> {
        self.connection
            .query_row("pragma user_version", [], |row| row.get::<_, u32>(0))
            .map(|version| version as usize)
            .map_err(|source| self.failed(source))
    }

    fn begin_creation(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn set_version(&mut self, version: usize) -> Result<(), StoreError> {
        let version = u32::try_from(version).unwrap_or(OTHER_VERSION);
        let updated = self.connection.pragma_update(None, "user_version", version);
        updated.map_err(|source| self.failed(source))
    }
}

/// A value as a parameter.
struct Parameter<'a>(&'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Integer(value) => ValueRef::Integer(stored_integer(*value)),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Boolean(value) => ValueRef::Integer((*value).into()),
        }))
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
    }
}
