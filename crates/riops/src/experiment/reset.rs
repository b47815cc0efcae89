//! Gives each run a dataset in a defined state: a copy of its database, or a dataset that is prepared again.
//!
//! The databases that an experiment creates are identified by their comments. It drops no other database: not one of the same
//! name, and not one of another experiment.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::idle::pause;
use crate::dataset::{DatasetError, Entry, Holders, Registry, State};
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, Plan, PlanError, PreparePolicy};
use crate::record::{Events, Flavor, RunEvent};
use crate::run::{Prepare, RunError, prepare};
use crate::server::embedded::enable_statement_statistics;
use crate::server::{Connection, ConnectionError, Feature, Server};
use crate::study::DatabaseChoice;
use crate::units::sql::{identifier, literal};

/// Comment of the databases of [`DatabaseChoice::Own`].
const OWN_MARK: &str = "created by riops for experiments";

/// Returns the server for the next run of an experiment: a new copy of the database with the dataset. The copy of the
/// previous run is dropped first, also if its process was killed. No other session may be connected to the
/// database meanwhile.
///
/// # Errors
/// [`ResetError::InUse`] with the connected sessions, [`ResetError::Foreign`] if a database of this name was not
/// created for this experiment, [`ResetError::Unsupported`] for `YugabyteDB`, or if a statement fails.
pub fn restore(
    server: &Server,
    experiment: &str,
    interrupt: &Interrupt,
) -> Result<Server, ResetError> {
    let names = CopyNames::for_experiment(experiment);
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    copy(&mut connection, &names, interrupt)?;
    Ok(copy_of(server, experiment))
}

/// Returns the server with the database that [`restore`] makes for this experiment.
pub fn copy_of(server: &Server, experiment: &str) -> Server {
    with_database(server, &CopyNames::for_experiment(experiment).copy)
}

/// Drops the copy that [`restore`] made for this experiment. Returns whether there was one. Ctrl-C does not interrupt
/// it.
///
/// # Errors
/// As [`restore`].
pub fn drop_copy(server: &Server, experiment: &str) -> Result<bool, ResetError> {
    let mut connection = Connection::open(&server.conninfo, &Interrupt::new())?;
    drop_copies(&mut connection, &CopyNames::for_experiment(experiment))
}

/// Prepares the dataset that [`restore`] copies, if it is missing and the runs may prepare it.
///
/// # Errors
/// As [`crate::run::prepare`].
pub fn prepare_template(
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
    events: &Events,
) -> Result<(), ResetError> {
    let may_prepare = server.embedded || plan.prepare == PreparePolicy::IfMissing;
    match dataset_of(server, plan, interrupt)? {
        Some((dataset, false)) if may_prepare => {
            prepare_dataset(dataset, false, server, plan, interrupt, events)
        }
        _ => Ok(()),
    }
}

/// Drops the dataset of the plan and prepares it again, with the same parameters.
///
/// # Errors
/// As [`crate::run::prepare`].
pub fn prepare_again(
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
    events: &Events,
) -> Result<(), ResetError> {
    match dataset_of(server, plan, interrupt)? {
        Some((dataset, _)) => prepare_dataset(dataset, true, server, plan, interrupt, events),
        None => Ok(()),
    }
}

fn prepare_dataset(
    dataset: DatasetPlan,
    recreate: bool,
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
    events: &Events,
) -> Result<(), ResetError> {
    dataset.spec().validate()?;
    let compared = plan.dataset.clone();
    let request =
        Prepare { dataset, compared, recreate, connections: None, skip_space_check: false };
    let prepared = prepare(&request, server, interrupt, events)?;
    events.send(&RunEvent::Prepared(prepared));
    Ok(())
}

/// Returns the dataset of a plan, and whether it is complete; `None` for a workload without a prepared dataset. An
/// existing one keeps its parameters, such as its random seed, except for those that the plan sets.
fn dataset_of(
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<Option<(DatasetPlan, bool)>, ResetError> {
    let (Some(name), Some(wanted)) = (plan.work.traits().dataset, plan.prepared()?) else {
        return Ok(None);
    };
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    let Some(Entry { state, parameters, .. }) = Registry::new(&mut connection, name).entry()?
    else {
        return Ok(Some((wanted, false)));
    };
    let existing = DatasetPlan::of_parameters(name, parameters)?.with(&plan.dataset)?;
    Ok(Some((existing, state == State::Complete)))
}

/// Returns the server with the database that an experiment uses. On the embedded server, [`DatabaseChoice::Own`] is
/// created if it is missing.
///
/// # Errors
/// [`ResetError`] if the database cannot be created.
pub fn choose_database(
    server: &Server,
    choice: &DatabaseChoice,
    interrupt: &Interrupt,
) -> Result<Server, ResetError> {
    let DatabaseChoice::Own(name) = choice else {
        return Ok(server.clone());
    };
    if !server.embedded {
        return Ok(server.clone());
    }
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    let own = with_database(server, name);
    if create_empty(&mut connection, name, OWN_MARK)? {
        enable_statement_statistics(&own.conninfo, interrupt)?;
    }
    Ok(own)
}

/// Drops a database that [`choose_database`] created. Returns whether it was dropped: a database that riops did not
/// create is kept.
///
/// # Errors
/// [`ResetError`] if the database cannot be dropped.
pub fn drop_own_database(server: &Server, name: &str) -> Result<bool, ResetError> {
    if !server.embedded {
        return Ok(false);
    }
    let mut connection = Connection::open(&server.conninfo, &Interrupt::new())?;
    drop_marked(&mut connection, name, OWN_MARK)
}

fn with_database(server: &Server, name: &str) -> Server {
    let mut server = server.clone();
    name.clone_into(&mut server.conninfo.database);
    server
}

/// Why a dataset could not be brought into its defined state.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The server cannot copy a database as required.
    #[error("reset = \"restore\" is not supported by {0}: use reset = \"prepare\"")]
    Unsupported(Flavor),
    /// Other sessions are connected to the database.
    #[error(
        "cannot copy or drop database \"{database}\" while other sessions are connected to it{holders}; end them, or use a separate database for the dataset"
    )]
    InUse {
        /// Name of the database.
        database: String,
        /// The sessions.
        holders: Holders,
    },
    /// A database with the required name exists that this experiment did not create.
    #[error(
        "database \"{0}\" exists and was not created by this experiment: rename or drop it first"
    )]
    Foreign(String),
    /// The role may not create or copy a database.
    #[error(
        "cannot copy database \"{database}\": {source}; the role needs the attribute CREATEDB and must own the database, or use reset = \"prepare\""
    )]
    Privilege {
        /// Name of the database.
        database: String,
        /// Error of the server.
        source: Box<ConnectionError>,
    },
    /// A setting of the database cannot be set for the copy.
    #[error(
        "cannot set \"{name}\" for the copy of the database as ALTER DATABASE … SET did for the database: {source}"
    )]
    Setting {
        /// Name of the setting.
        name: String,
        /// Error of the server.
        source: Box<ConnectionError>,
    },
    /// The dataset cannot be found.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The dataset cannot be prepared.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The connection or a statement failed, or the user interrupted it.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<PlanError> for ResetError {
    fn from(error: PlanError) -> Self {
        Self::Run(error.into())
    }
}

impl ResetError {
    /// Returns whether the user interrupted the reset.
    pub fn is_interrupted(&self) -> bool {
        let is_interrupt = |error: &ConnectionError| matches!(error, ConnectionError::Interrupted);
        match self {
            Self::Connection(error) | Self::Dataset(DatasetError::Connection(error)) => {
                is_interrupt(error)
            }
            Self::Setting { source, .. } => is_interrupt(source),
            Self::Run(error) => error.connection_error().is_some_and(is_interrupt),
            _ => false,
        }
    }
}

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
    pub(super) fn for_experiment(experiment: &str) -> Self {
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

/// Known properties of a database.
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
    if let Some(database) = find(connection, &names.temporary)? {
        // The process was killed before it could write the comment. The name contains the whole id.
        if !database.is_own || !(database.comment.is_empty() || database.comment == names.mark) {
            return Err(ResetError::Foreign(names.temporary.clone()));
        }
        drop_database(connection, &names.temporary)?;
        dropped = true;
    }
    if let Some(database) = find(connection, &names.copy)? {
        if database.comment != names.mark {
            return Err(ResetError::Foreign(names.copy.clone()));
        }
        drop_database(connection, &names.copy)?;
        dropped = true;
    }
    Ok(dropped)
}

/// Creates an empty database with this comment; keeps an existing one. Returns whether it was created.
pub(super) fn create_empty(
    connection: &mut Connection,
    name: &str,
    mark: &str,
) -> Result<bool, ResetError> {
    if find(connection, name)?.is_some() {
        return Ok(false);
    }
    // Like the cluster: template1 may have been changed.
    match connection.execute(&format!("create database {} template template0", identifier(name))) {
        // Another riops was faster.
        Err(error) if is_duplicate(&error) => return Ok(false),
        created => created.map_err(|error| refused(connection, "template0", error))?,
    }
    let comment = format!("comment on database {} is {}", identifier(name), literal(mark));
    connection.execute(&comment)?;
    Ok(true)
}

/// Drops a database if it has this comment. Returns whether it was dropped.
pub(super) fn drop_marked(
    connection: &mut Connection,
    name: &str,
    mark: &str,
) -> Result<bool, ResetError> {
    if find(connection, name)?.is_none_or(|database| database.comment != mark) {
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
                    let holders = Holders::for_database(connection, name);
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
            let holders = Holders::for_database(connection, template);
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
        let one = CopyNames::for_experiment("01890000-0000-7000-8000-0000deadbeef");
        let other = CopyNames::for_experiment("01890000-0000-7000-8000-0000deadbee0");
        assert_eq!(one.copy, "riops_deadbeef_run");
        assert_ne!(one.copy, other.copy);
        // Names have at most 63 bytes.
        assert_eq!(one.temporary, "riops_018900000000700080000000deadbeef_new");
        CopyNames::for_experiment("");
    }
}
