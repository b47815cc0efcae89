//! What a database must offer so that a [`Store`](super::shared::Store) can keep runs in it.

use uuid::Uuid;

use super::error::StoreError;
use super::experiment_lock::{ExperimentLock, LockKey};
use super::value::Fields;
use crate::figure::Value;
use crate::summary::{ColumnError, Row};

/// Whether a transaction changes the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Commits at the end.
    Write,
    /// Rolls back at the end: finds out whether the store can be written.
    Attempt,
}

/// Names that differ between the backends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(super) time: &'static str,
    pub(super) boolean: &'static str,
    pub(super) false_value: &'static str,
    /// The aggregate function of keys and values.
    pub(super) json_object: &'static str,
    pub(super) integer: &'static str,
    pub(super) real: &'static str,
    /// The end of a table.
    pub(super) strict: &'static str,
    /// The end of a table whose rows are found by their key.
    pub(super) keyed: &'static str,
    /// Locks the record of a run for the transaction; empty if a transaction locks the whole store.
    pub(super) lock_record: &'static str,
}

impl Dialect {
    /// Fills the placeholders of a statement that is the same in all dialects otherwise.
    pub(super) fn fill(&self, sql: &str) -> String {
        sql.replace("{time}", self.time)
            .replace("{boolean}", self.boolean)
            .replace("{false}", self.false_value)
            .replace("{json_object}", self.json_object)
            .replace("{integer}", self.integer)
            .replace("{real}", self.real)
            .replace("{strict}", self.strict)
            .replace("{keyed}", self.keyed)
    }
}

/// A transaction.
pub(super) trait Session {
    fn dialect(&self) -> &'static Dialect;

    /// Runs one statement. Its parameters are `$1`, `$2`, …
    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Row>, StoreError>;

    /// Runs statements without parameters.
    fn script(&mut self, sql: &str) -> Result<(), StoreError>;

    /// Inserts rows, all with the same columns.
    fn insert(&mut self, table: &str, rows: &[Fields]) -> Result<(), StoreError>;

    /// Returns the version of the tables; 0 for a new store.
    fn version(&mut self) -> Result<usize, StoreError>;

    /// Creates what the version needs, and waits until no other riops creates the store.
    fn begin_creation(&mut self) -> Result<(), StoreError>;

    fn set_version(&mut self, version: usize) -> Result<(), StoreError>;
}

/// The work of a transaction.
pub(super) type Work<'a> = &'a mut dyn FnMut(&mut dyn Session) -> Result<(), StoreError>;

/// A database.
pub(super) trait Backend: Send {
    /// Returns the path of the file, or the URL of the database without its password.
    fn location(&self) -> String;

    /// Runs `work` in a transaction. If the connection is lost before the commit, `work` may run again in a
    /// transaction on a new connection.
    fn transaction(&self, access: Access, work: Work<'_>) -> Result<(), StoreError>;

    /// Locks an experiment or a fleet, outside of transactions; `None` if another process has locked it.
    fn lock(&self, key: LockKey<'_>) -> Result<Option<ExperimentLock>, StoreError>;
}

/// Runs `work` in a transaction and returns its result.
pub(super) fn transact<T>(
    backend: &dyn Backend,
    access: Access,
    mut work: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut result = None;
    backend.transaction(access, &mut |session| {
        result = Some(work(session)?);
        Ok(())
    })?;
    result.ok_or_else(|| {
        StoreError::Value(ColumnError { location: backend.location(), column: 0, value: None })
    })
}

const ID: &str = include_str!("../../sql/store/id.sql");
const IDS_BY_PART: &str = include_str!("../../sql/store/ids_by_part.sql");
const RECORD_PART: &str = include_str!("../../sql/store/record_part.sql");

/// Characters that one query reads of a record. In PostgreSQL, a message of riops has at most 16 MiB, and a
/// character at most 4 bytes.
const PART_CHARS: usize = 3_000_000;

/// Returns the first column of the first row.
pub(super) fn first(rows: Vec<Row>) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}

/// Returns the only id of a table that starts or ends with this text, otherwise the number of such ids.
pub(super) fn id_by_part(
    session: &mut dyn Session,
    table: &str,
    part: &str,
) -> Result<Result<String, usize>, StoreError> {
    let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    if part.is_empty() || !part.chars().all(is_id) {
        return Ok(Err(0));
    }
    // A whole id is found by the index: for each run of a large store, a search by a part of its id would read all ids.
    let is_whole = Uuid::try_parse(part).is_ok_and(|id| id.to_string().len() == part.len());
    let sql = if is_whole { ID } else { IDS_BY_PART }.replace("{table}", table);
    let rows = session.query(&sql, &[part.to_ascii_lowercase().into()])?;
    let count = rows.len();
    Ok(first(rows).filter(|_| count == 1).ok_or(count))
}

/// Reads the JSON of a record.
pub(super) fn read_json(session: &mut dyn Session, id: &str) -> Result<String, StoreError> {
    let mut json = String::new();
    let mut start = 1;
    loop {
        let parameters = [id.into(), Value::from(start), PART_CHARS.into()];
        let part = first(session.query(RECORD_PART, &parameters)?).unwrap_or_default();
        json.push_str(&part);
        // Fewer bytes than characters: the part is the last one.
        if part.len() < PART_CHARS {
            return Ok(json);
        }
        start += PART_CHARS;
    }
}
