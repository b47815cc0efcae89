//! Databases that an experiment creates, identifies by their comments, and drops.
//!
//! It drops no other database: not one of the same name, and not one of another experiment.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::pause::pause;
use super::reset_error::ResetError;
use crate::dataset::Holders;
use crate::host::Interrupt;
use crate::server::{Connection, ConnectionError, Feature};
use crate::units::sql::{identifier, literal};

/// How long sessions of a killed process, and its statements in progress, may delay this one.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

const COPY: &str = include_str!("../../sql/experiment/copy_database.sql");
const SETTINGS: &str = include_str!("../../sql/experiment/database_settings.sql");
const COMMENT: &str = include_str!("../../sql/experiment/database_comment.sql");

/// The names of the copy that the runs of an experiment use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyNames {
    /// Name of the complete copy.
    pub(super) copy: String,
    /// Name until it has its comment.
    temporary: String,
    /// Comment.
    mark: String,
}

impl CopyNames {
    pub(super) fn of(experiment: &str) -> Self {
        let hex = experiment.replace('-', "");
        // The first characters of a UUID of version 7 are a time: experiments of the same minute share them.
        let short = hex.get(hex.len().saturating_sub(8)..).unwrap_or(&hex);
        Self {
            copy: format!("riops_{short}_run"),
            temporary: format!("riops_{hex}_new"),
            mark: format!("created by riops for experiment {experiment}"),
        }
    }
}

/// What is known about a database.
struct Found {
    comment: String,
    is_own: bool,
}

fn find(connection: &mut Connection, name: &str) -> Result<Option<Found>, ConnectionError> {
    let row = connection.query_with(COMMENT, &[Some(name)])?.into_iter().next();
    Ok(row.and_then(|row| match <[_; 2]>::try_from(row) {
        Ok([Some(comment), Some(is_own)]) => Some(Found { comment, is_own: is_own == "t" }),
        _ => None,
    }))
}

/// Copies the database of the connection. A copy of an earlier run of this experiment is dropped first.
pub(super) fn copy(
    connection: &mut Connection,
    names: &CopyNames,
    interrupt: &Interrupt,
) -> Result<(), ResetError> {
    let dialect = connection.dialect();
    if !dialect.has(Feature::DatabaseCopies) {
        return Err(ResetError::Unsupported(dialect.flavor()));
    }
    let template = connection.query_value("select current_database()")?.unwrap_or_default();
    // The default of PostgreSQL 15 and later writes the whole copy to the WAL.
    let strategy = if dialect.version >= 150_000 { " strategy file_copy" } else { "" };
    let sql = COPY
        .replace("{copy}", &identifier(&names.temporary))
        .replace("{template}", &identifier(&template))
        .replace("{strategy}", strategy);
    let deadline = Instant::now() + TIMEOUT;
    loop {
        drop_copies(connection, names)?;
        match connection.execute(&sql) {
            // The statement of a killed process has just completed.
            Err(error) if is_duplicate(&error) && Instant::now() < deadline => {
                pause(POLL_INTERVAL, interrupt)?;
            }
            created => break created.map_err(|error| refused(connection, &template, error))?,
        }
    }
    let copy = identifier(&names.temporary);
    for name in connection.query(SETTINGS)?.into_iter().flatten().flatten() {
        // The value in this session, which is one of the database, too.
        connection
            .execute(&format!("alter database {copy} set {} from current", identifier(&name)))
            .map_err(|source| ResetError::Setting { name, source: Box::new(source) })?;
    }
    connection.execute(&format!("comment on database {copy} is {}", literal(&names.mark)))?;
    connection.execute(&format!("alter database {copy} rename to {}", identifier(&names.copy)))?;
    Ok(())
}

/// Drops the copy of an experiment, also an incomplete one. Returns whether there was one.
pub(super) fn drop_copies(
    connection: &mut Connection,
    names: &CopyNames,
) -> Result<bool, ResetError> {
    let mut dropped = false;
    if let Some(found) = find(connection, &names.temporary)? {
        // The process was killed before it could write the comment. The name contains the whole id.
        if !found.is_own || !(found.comment.is_empty() || found.comment == names.mark) {
            return Err(ResetError::Foreign(names.temporary.clone()));
        }
        drop_database(connection, &names.temporary)?;
        dropped = true;
    }
    if let Some(found) = find(connection, &names.copy)? {
        if found.comment != names.mark {
            return Err(ResetError::Foreign(names.copy.clone()));
        }
        drop_database(connection, &names.copy)?;
        dropped = true;
    }
    Ok(dropped)
}

/// Creates an empty database with this comment; keeps an existing one.
pub(super) fn create_empty(
    connection: &mut Connection,
    name: &str,
    mark: &str,
) -> Result<(), ResetError> {
    if find(connection, name)?.is_some() {
        return Ok(());
    }
    // Like the cluster: template1 may have been changed.
    match connection.execute(&format!("create database {} template template0", identifier(name))) {
        // Another riops was faster.
        Err(error) if is_duplicate(&error) => return Ok(()),
        created => created.map_err(|error| refused(connection, "template0", error))?,
    }
    Ok(connection.execute(&format!(
        "comment on database {} is {}",
        identifier(name),
        literal(mark)
    ))?)
}

/// Drops a database if it has this comment. Returns whether it was dropped.
pub(super) fn drop_marked(
    connection: &mut Connection,
    name: &str,
    mark: &str,
) -> Result<bool, ResetError> {
    if find(connection, name)?.is_none_or(|found| found.comment != mark) {
        return Ok(false);
    }
    drop_database(connection, name)?;
    Ok(true)
}

/// Drops a database that this module created, with the sessions that are still connected to it.
fn drop_database(connection: &mut Connection, name: &str) -> Result<(), ResetError> {
    let force = if connection.dialect().version >= 130_000 { " with (force)" } else { "" };
    let sql = format!("drop database if exists {}{force}", identifier(name));
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match connection.execute(&sql) {
            Err(ConnectionError::Server(error)) if error.sqlstate == SqlState::OBJECT_IN_USE => {
                if Instant::now() >= deadline {
                    let holders = Holders::of_database(connection, name);
                    return Err(ResetError::InUse { database: name.to_owned(), holders });
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            dropped => return Ok(dropped?),
        }
    }
}

fn is_duplicate(error: &ConnectionError) -> bool {
    // duplicate_database, and unique_violation if both statements run at the same time.
    ["42P04", "23505"].iter().any(|code| error.sqlstate().to_string() == *code)
}

/// Explains why the server refused to create a database.
fn refused(connection: &mut Connection, template: &str, error: ConnectionError) -> ResetError {
    match error.sqlstate() {
        SqlState::INSUFFICIENT_PRIVILEGE => {
            ResetError::Privilege { database: template.to_owned(), source: Box::new(error) }
        }
        SqlState::OBJECT_IN_USE => {
            let holders = Holders::of_database(connection, template);
            ResetError::InUse { database: template.to_owned(), holders }
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_of_the_same_minute_use_different_databases() {
        let one = CopyNames::of("01890000-0000-7000-8000-0000deadbeef");
        let other = CopyNames::of("01890000-0000-7000-8000-0000deadbee0");
        assert_eq!(one.copy, "riops_deadbeef_run");
        assert_ne!(one.copy, other.copy);
        // Names have at most 63 bytes.
        assert_eq!(one.temporary, "riops_018900000000700080000000deadbeef_new");
        CopyNames::of("");
    }
}
