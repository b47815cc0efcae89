//! The dedicated database of `cbc`: creates it, identifies it by its comment, and drops it.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::catalog::unless_refused;
use super::error::{DatasetError, Holders, Result};
use super::lock::{LOCK_POLL_INTERVAL, LOCK_TIMEOUT, OnWait, Waiting, advisory};
use crate::server::{Connection, ConnectionError};
use crate::workload::cbc::DATABASE;

/// Prefix of the comment, followed by the id of the run.
const MARK: &str = "made by riops";

/// Locks the database against creation and removal by other riops processes until the connection is closed. If
/// it has to wait, calls `on_wait` once.
///
/// # Errors
/// [`DatasetError::DatabaseInUse`] if another session holds the lock until the timeout.
pub fn lock(connection: &mut Connection, on_wait: OnWait<'_>) -> Result<()> {
    let mut waiting = Waiting::new(DATABASE, Duration::ZERO);
    while advisory(connection, "pg_try_advisory_lock", DATABASE)? == Some(false) {
        let what = format!("database \"{DATABASE}\"");
        let waited = waiting.wait(connection, &what, on_wait);
        waited.map_err(DatasetError::DatabaseInUse)?;
    }
    Ok(())
}

/// The databases with a temporary name of this role that have the mark, or not.
fn temporary(connection: &mut Connection, marked: bool) -> Result<Vec<String>, ConnectionError> {
    let not = if marked { "" } else { "not" };
    let sql = format!(
        "select datname from pg_database
          where datname ~ '^{DATABASE}_[0-9a-f]{{32}}$' and pg_get_userbyid(datdba) = current_user
            and {not} coalesce(shobj_description(oid, 'pg_database'), '') ~ '^{MARK} [0-9a-f-]{{36}}$'
          order by 1"
    );
    Ok(connection.query(&sql)?.into_iter().flatten().flatten().collect())
}

/// Returns the databases with a temporary name that have no mark. A run that was killed before it could write the mark
/// leaves one, but so may another user.
///
/// # Errors
/// [`DatasetError::Connection`] if the query fails.
pub fn unmarked(connection: &mut Connection) -> Result<Vec<String>> {
    Ok(temporary(connection, false)?)
}

/// Drops the databases of earlier runs, which are identified by their comment: the database of the last run, and
/// databases with a temporary name that runs of this role left when they were killed before renaming them. Returns
/// whether a database was dropped.
///
/// # Errors
/// [`DatasetError::ForeignDatabase`] if the database was not created by riops,
/// [`DatasetError::DatabaseInUse`] if other sessions are connected to it until the timeout.
pub fn drop_leftovers(connection: &mut Connection) -> Result<bool> {
    let mut dropped = false;
    for temporary in temporary(connection, true)? {
        // A database with active connections may belong to a run in progress: keep it.
        let sql = format!("drop database {temporary}");
        dropped |= unless_refused(connection.execute(&sql))?.is_some();
    }
    match comment(connection)? {
        None => return Ok(dropped),
        Some(comment) if is_mark(&comment) => {}
        Some(_) => return Err(DatasetError::ForeignDatabase),
    }
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match connection.execute(&format!("drop database {DATABASE}")) {
            Ok(()) => return Ok(true),
            Err(ConnectionError::Server(error)) if error.sqlstate == SqlState::OBJECT_IN_USE => {
                if Instant::now() >= deadline {
                    let holders = Holders::for_database(connection, DATABASE);
                    return Err(DatasetError::DatabaseInUse(holders));
                }
                std::thread::sleep(LOCK_POLL_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Drops the database of this run and terminates its remaining sessions. The database of another run is kept.
///
/// # Errors
/// [`DatasetError::Connection`] if a statement fails.
pub fn drop_own(connection: &mut Connection, run: &str) -> Result<()> {
    if comment(connection)?.as_deref() != Some(&mark(run)) {
        return Ok(());
    }
    let force = if connection.dialect().version >= 130_000 { " with (force)" } else { "" };
    Ok(connection.execute(&format!("drop database {DATABASE}{force}"))?)
}

/// Creates the empty database of a run. It gets its final name only after its comment, so that a database
/// of that name can always be identified.
///
/// # Errors
/// [`DatasetError::Connection`], with a hint if the role lacks the privilege.
pub fn create_database(connection: &mut Connection, run: &str) -> Result<()> {
    let temporary = format!("{DATABASE}_{}", run.replace('-', ""));
    // Not template1: CREATE DATABASE fails while other sessions are connected to its template.
    let created = connection.execute(&format!("create database {temporary} template template0"));
    created.map_err(|mut error| {
        if let ConnectionError::Server(error) = &mut error
            && error.sqlstate == SqlState::INSUFFICIENT_PRIVILEGE
        {
            error.hint.get_or_insert_with(|| {
                "have a superuser grant the privilege (ALTER ROLE … CREATEDB), or use --place schema".to_owned()
            });
        }
        error
    })?;
    let renamed = connection
        .execute(&format!("comment on database {temporary} is '{}'", mark(run)))
        .and_then(|()| {
            connection.execute(&format!("alter database {temporary} rename to {DATABASE}"))
        });
    if renamed.is_err() {
        // The run fails. If the connection is lost, the next run drops the database.
        let _ = connection.execute(&format!("drop database {temporary}"));
    }
    Ok(renamed?)
}

fn mark(run: &str) -> String {
    format!("{MARK} {run}")
}

/// Returns whether a comment is the mark of a run.
fn is_mark(comment: &str) -> bool {
    let run = comment.strip_prefix(MARK).map(str::trim_start);
    run.is_some_and(|run| run.parse::<uuid::Uuid>().is_ok())
}

/// Returns the comment of the database, which may be empty, or `None` if the database does not exist.
fn comment(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
    let rows = connection.query_with(
        "select coalesce(shobj_description(oid, 'pg_database'), '') from pg_database where datname = $1",
        &[Some(DATABASE)],
    )?;
    Ok(rows.into_iter().flatten().flatten().next())
}
