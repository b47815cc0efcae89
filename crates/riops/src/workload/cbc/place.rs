//! The database of `cbc`'s own: made, known by its comment, dropped.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::DATABASE;
use crate::target::{Connection, ConnectionError};
use crate::workload::dataset::DatasetError;

const MARK: &str = "made by riops";
/// The sessions of a killed riops end within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Drops the database where riops made it; false where there is none. With `force` sessions that are still
/// in it are ended, else one that has some is in use.
///
/// # Errors
/// [`DatasetError::ForeignDatabase`], [`DatasetError::DatabaseInUse`]
pub fn drop_database(connection: &mut Connection, force: bool) -> Result<bool, DatasetError> {
    let mark = connection.query_with(
        "select coalesce(shobj_description(oid, 'pg_database'), '') from pg_database where datname = $1",
        &[Some(DATABASE)],
    )?;
    match mark.into_iter().flatten().flatten().next() {
        None => return Ok(false),
        Some(mark) if mark != MARK => return Err(DatasetError::ForeignDatabase(DATABASE)),
        Some(_) => {}
    }
    let version: u32 = connection
        .query_value("show server_version_num")?
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let force = if force && version >= 130_000 { " with (force)" } else { "" };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match connection.execute(&format!("drop database {DATABASE}{force}")) {
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

/// Makes the database, empty.
///
/// # Errors
/// [`DatasetError::Connection`], with a hint where the role may not make one.
pub fn make_database(connection: &mut Connection) -> Result<(), DatasetError> {
    // Not template1, which may have somebody's session in it.
    let made = connection.execute(&format!("create database {DATABASE} template template0"));
    if let Err(ConnectionError::Server(mut error)) = made {
        if error.sqlstate == SqlState::INSUFFICIENT_PRIVILEGE {
            error.hint.get_or_insert_with(|| {
                "let a superuser grant it (alter role … createdb), or use --place schema".to_owned()
            });
        }
        return Err(ConnectionError::Server(error).into());
    }
    made?;
    Ok(connection.execute(&format!("comment on database {DATABASE} is '{MARK}'"))?)
}
