//! The database of `cbc`'s own: made, known by its comment, dropped.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::error::DatasetError;
use super::lock::LOCK_SPACE;
use crate::server::{Connection, ConnectionError};
use crate::workload::cbc::DATABASE;

/// How the comment begins; the run's id follows.
const MARK: &str = "made by riops";
/// The sessions of a killed riops end within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Keeps other riopses from making or dropping the database until the connection ends.
///
/// # Errors
/// [`DatasetError::DatabaseInUse`]
pub fn lock(connection: &mut Connection) -> Result<(), DatasetError> {
    let sql = format!("select pg_try_advisory_lock({LOCK_SPACE}, hashtext('{DATABASE}'))");
    let deadline = Instant::now() + PATIENCE;
    while connection.query_value(&sql)?.as_deref() != Some("t") {
        if Instant::now() >= deadline {
            return Err(DatasetError::DatabaseInUse(DATABASE));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Drops what earlier runs have left: the database where its comment says that riops made it, and those
/// of this role that were killed before they could give theirs comment and name. False where there is none.
///
/// # Errors
/// [`DatasetError::ForeignDatabase`], [`DatasetError::DatabaseInUse`]
pub fn drop_leftovers(connection: &mut Connection) -> Result<bool, DatasetError> {
    let mut dropped = false;
    let sql = format!(
        "select datname from pg_database
          where datname ~ '^{DATABASE}_[0-9a-f]{{32}}$' and pg_get_userbyid(datdba) = current_user
            and coalesce(shobj_description(oid, 'pg_database'), '{MARK}') like '{MARK}%'"
    );
    for unnamed in connection.query(&sql)?.into_iter().flatten().flatten() {
        // One that somebody is in is somebody's.
        match connection.execute(&format!("drop database {unnamed}")) {
            Ok(()) => dropped = true,
            Err(ConnectionError::Server(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match comment(connection)? {
        None => return Ok(dropped),
        Some(comment) if !comment.starts_with(MARK) => {
            return Err(DatasetError::ForeignDatabase(DATABASE));
        }
        Some(_) => {}
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        match connection.execute(&format!("drop database {DATABASE}")) {
            Ok(()) => return Ok(true),
            Err(ConnectionError::Server(error)) if error.sqlstate == SqlState::OBJECT_IN_USE => {
                if Instant::now() >= deadline {
                    return Err(DatasetError::DatabaseInUse(DATABASE));
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Drops the database that this run has made, and ends what is still in it; another run's stays.
///
/// # Errors
/// [`DatasetError::Connection`]
pub fn drop_own(connection: &mut Connection, run: &str) -> Result<(), DatasetError> {
    if comment(connection)?.as_deref() != Some(&mark(run)) {
        return Ok(());
    }
    let version = connection.query_value("show server_version_num")?;
    let version: u32 = version.and_then(|text| text.parse().ok()).unwrap_or(0);
    let force = if version >= 130_000 { " with (force)" } else { "" };
    Ok(connection.execute(&format!("drop database {DATABASE}{force}"))?)
}

/// Makes the database, empty, for a run. It has its name only when it has its comment.
///
/// # Errors
/// [`DatasetError::Connection`], with a hint where the role may not make one.
pub fn make_database(connection: &mut Connection, run: &str) -> Result<(), DatasetError> {
    let unnamed = format!("{DATABASE}_{}", run.replace('-', ""));
    // Not template1, which may have somebody's session in it.
    let made = connection.execute(&format!("create database {unnamed} template template0"));
    if let Err(ConnectionError::Server(mut error)) = made {
        if error.sqlstate == SqlState::INSUFFICIENT_PRIVILEGE {
            error.hint.get_or_insert_with(|| {
                "let a superuser grant it (alter role … createdb), or use --place schema".to_owned()
            });
        }
        return Err(ConnectionError::Server(error).into());
    }
    made?;
    let named =
        connection.execute(&format!("comment on database {unnamed} is '{}'", mark(run))).and_then(
            |()| connection.execute(&format!("alter database {unnamed} rename to {DATABASE}")),
        );
    if named.is_err() {
        // What it was made for does not come about; a broken connection leaves it to the next run.
        let _ = connection.execute(&format!("drop database {unnamed}"));
    }
    Ok(named?)
}

fn mark(run: &str) -> String {
    format!("{MARK} {run}")
}

/// The comment of the database; empty where it has none.
fn comment(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
    let found = connection.query_with(
        "select coalesce(shobj_description(oid, 'pg_database'), '') from pg_database where datname = $1",
        &[Some(DATABASE)],
    )?;
    Ok(found.into_iter().flatten().flatten().next())
}
