//! The store in a PostgreSQL database, in the schema `riops_store`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use riops_wire::copy::text_row;

use super::backend::{Access, Backend, Dialect, Session, Work, transact};
use super::error::StoreError;
use super::experiment_lock::{ExperimentLock, LockKey};
use super::location::url;
use super::value::{Fields, stored_text};
use crate::figure::Value;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::summary::Row;

/// A server that does not respond within this time is lost.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Response timeout after Ctrl-C has ended a run. If its record cannot be stored in this time, the caller keeps it elsewhere.
const RESPONSE_TIMEOUT_INTERRUPTED: Duration = Duration::from_secs(5);
/// Time to wait for another riops that creates the store.
const CREATION_TIMEOUT: Duration = Duration::from_mins(10);
/// Size of the parts in which rows are sent.
const COPY_BYTES: usize = 1 << 20;

const SESSION: &str = include_str!("../../sql/store/session.postgresql.sql");
const SCHEMA: &str = include_str!("../../sql/store/schema.postgresql.sql");
const CREATION_LOCK: &str = include_str!("../../sql/store/creation_lock.postgresql.sql");
const HAS_VERSION: &str = include_str!("../../sql/store/version.postgresql.sql");
const VERSION: &str = include_str!("../../sql/store/version_value.postgresql.sql");
const SET_VERSION: &str = include_str!("../../sql/store/version_update.postgresql.sql");
const COPY: &str = include_str!("../../sql/store/copy.postgresql.sql");

static DIALECT: Dialect = Dialect {
    time: "timestamptz",
    boolean: "boolean",
    false_value: "false",
    json_object: "json_object_agg",
    integer: "bigint",
    real: "double precision",
    strict: "",
    keyed: "",
    lock_record: include_str!("../../sql/store/record_lock.postgresql.sql"),
};

/// A PostgreSQL database.
pub(super) struct Postgresql {
    conninfo: ConnInfo,
    location: String,
    interrupt: Interrupt,
    /// `None` after the connection was lost.
    connection: Mutex<Option<Connection>>,
}

impl Postgresql {
    /// Connects to the database.
    pub(super) fn open(conninfo: &ConnInfo, interrupt: &Interrupt) -> Result<Self, StoreError> {
        let mut conninfo = conninfo.clone();
        conninfo.application_name.get_or_insert_with(|| "riops store".to_owned());
        let location = url(&conninfo);
        let store =
            Self { conninfo, location, interrupt: interrupt.clone(), connection: Mutex::new(None) };
        let connection = store.connect(interrupt)?;
        store.connection.lock().unwrap_or_else(PoisonError::into_inner).replace(connection);
        Ok(store)
    }

    /// Returns whether the database contains a store.
    pub(super) fn exists(&self) -> Result<bool, StoreError> {
        Ok(transact(self, Access::Read, |session| session.version())? > 0)
    }

    fn connect(&self, interrupt: &Interrupt) -> Result<Connection, StoreError> {
        let open = || {
            let mut connection = Connection::open(&self.conninfo, interrupt)?;
            connection.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
            let (_, untrusted) = connection.schema_owner("riops_store")?;
            connection.execute(SESSION)?;
            Ok((connection, untrusted))
        };
        match open().map_err(|source| StoreError::postgresql(&self.location, source))? {
            (_, Some(owner)) => {
                Err(StoreError::UntrustedOwner { location: self.location.clone(), owner })
            }
            (connection, None) => Ok(connection),
        }
    }
}

impl Backend for Postgresql {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn lock(&self, key: LockKey<'_>) -> Result<Option<ExperimentLock>, StoreError> {
        // The lock has its own session: a lost session of the store is replaced without notice.
        ExperimentLock::postgresql(&self.location, self.connect(&self.interrupt)?, key)
    }

    fn transaction(&self, access: Access, work: Work<'_>) -> Result<(), StoreError> {
        let is_after_interrupt = access != Access::Read && self.interrupt.is_requested();
        let (interrupt, timeout) = if is_after_interrupt {
            (Interrupt::new(), RESPONSE_TIMEOUT_INTERRUPTED)
        } else {
            (self.interrupt.clone(), RESPONSE_TIMEOUT)
        };
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // An old connection may have been closed since it was used: the server was restarted, or a firewall
        // has forgotten it.
        let mut is_new = held.is_none();
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => self.connect(&interrupt)?,
        };
        loop {
            connection.set_interrupt(&interrupt);
            let location = &self.location;
            let mut session = PostgresqlSession { connection: &mut connection, location, timeout };
            let begin = if access == Access::Read { "begin read only" } else { "begin" };
            match session.script(begin).and_then(|()| work(&mut session)) {
                Err(error) if error.is_connection_lost() && !is_new => {
                    connection = self.connect(&interrupt)?;
                    is_new = true;
                }
                worked => {
                    let commits = worked.is_ok() && access == Access::Write;
                    let ended = session.script(if commits { "commit" } else { "rollback" });
                    if ended.is_ok() {
                        *held = Some(connection);
                    }
                    // The first error is the cause.
                    return worked.and(ended);
                }
            }
        }
    }
}

struct PostgresqlSession<'a> {
    connection: &'a mut Connection,
    location: &'a str,
    timeout: Duration,
}

impl PostgresqlSession<'_> {
    fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, ConnectionError>,
    ) -> Result<T, StoreError> {
        self.run_within(self.timeout, work)
    }

    fn run_within<T>(
        &mut self,
        timeout: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, ConnectionError>,
    ) -> Result<T, StoreError> {
        self.connection.set_deadline(Some(Instant::now() + timeout));
        let result = work(self.connection);
        self.connection.set_deadline(None);
        result.map_err(|source| StoreError::postgresql(self.location, source))
    }
}

impl Session for PostgresqlSession<'_> {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Row>, StoreError> {
        let parameters: Vec<_> = parameters.iter().map(stored_text).collect();
        let parameters: Vec<_> = parameters.iter().map(Option::as_deref).collect();
        self.run(|connection| connection.query_with(sql, &parameters))
    }

    fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        self.run(|connection| connection.execute(sql))
    }

    fn insert(&mut self, table: &str, rows: &[Fields]) -> Result<(), StoreError> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let columns: Vec<_> = first.iter().map(|(column, _)| *column).collect();
        let sql = COPY.replace("{table}", table).replace("{columns}", &columns.join(", "));
        let mut rest = rows.iter();
        // A record can be longer than a message: its row is sent in parts.
        let mut unsent: Vec<u8> = Vec::new();
        self.run(|connection| {
            connection.copy_in(&sql, |out| {
                while unsent.len() < COPY_BYTES
                    && let Some(row) = rest.next()
                {
                    let values: Vec<_> = row.iter().map(|(_, value)| stored_text(value)).collect();
                    text_row(&mut unsent, values.iter().map(Option::as_deref));
                }
                let part = unsent.len().min(COPY_BYTES);
                out.extend(unsent.drain(..part));
                !unsent.is_empty() || rest.len() > 0
            })
        })
    }

    fn version(&mut self) -> Result<usize, StoreError> {
        let exists = self.run(|connection| connection.query_value(HAS_VERSION))?;
        if exists.as_deref() != Some("t") {
            return Ok(0);
        }
        let version = self.run(|connection| connection.query_value(VERSION))?;
        Ok(version.and_then(|version| version.parse().ok()).unwrap_or(0))
    }

    fn begin_creation(&mut self) -> Result<(), StoreError> {
        self.run_within(CREATION_TIMEOUT, |connection| connection.execute(CREATION_LOCK))?;
        self.script(SCHEMA)
    }

    fn set_version(&mut self, version: usize) -> Result<(), StoreError> {
        self.query(SET_VERSION, &[version.into()]).map(drop)
    }
}
