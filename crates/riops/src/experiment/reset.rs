//! Gives each run a dataset in a defined state: a copy of its database, or a dataset that is prepared again.

use super::database::{CopyNames, copy, create_empty, drop_copies, drop_marked};
use super::definition::DatabaseChoice;
use super::reset_error::ResetError;
use crate::dataset::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, Plan, PreparePolicy};
use crate::run::{Observer, Prepare, prepare};
use crate::server::{Connection, Server};

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
    let names = CopyNames::of(experiment);
    let mut connection = Connection::open(&server.conninfo, interrupt)?;
    copy(&mut connection, &names, interrupt)?;
    Ok(copy_of(server, experiment))
}

/// Returns the server with the database that [`restore`] makes for this experiment.
#[must_use]
pub fn copy_of(server: &Server, experiment: &str) -> Server {
    with_database(server, &CopyNames::of(experiment).copy)
}

/// Drops the copy that [`restore`] made for this experiment. Returns whether there was one. Ctrl-C does not interrupt
/// it.
///
/// # Errors
/// As [`restore`].
pub fn drop_copy(server: &Server, experiment: &str) -> Result<bool, ResetError> {
    let mut connection = Connection::open(&server.conninfo, &Interrupt::new())?;
    drop_copies(&mut connection, &CopyNames::of(experiment))
}

/// Prepares the dataset that [`restore`] copies, if it is missing and the runs may prepare it.
///
/// # Errors
/// As [`crate::run::prepare`].
pub fn prepare_template(
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<(), ResetError> {
    let may_prepare = server.embedded || plan.prepare == PreparePolicy::IfMissing;
    match dataset_of(server, plan, interrupt)? {
        Some((dataset, false)) if may_prepare => {
            prepare_dataset(dataset, false, server, plan, interrupt, observer)
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
    observer: &mut dyn Observer,
) -> Result<(), ResetError> {
    match dataset_of(server, plan, interrupt)? {
        Some((dataset, _)) => prepare_dataset(dataset, true, server, plan, interrupt, observer),
        None => Ok(()),
    }
}

fn prepare_dataset(
    dataset: DatasetPlan,
    recreate: bool,
    server: &Server,
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<(), ResetError> {
    dataset.spec().validate()?;
    let compared = plan.dataset.clone();
    let request =
        Prepare { dataset, compared, recreate, connections: None, skip_space_check: false };
    let prepared = prepare(&request, server, interrupt, observer)?;
    observer.prepared(&prepared);
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
    let found = DatasetPlan::of_parameters(name, parameters)?.with(&plan.dataset)?;
    Ok(Some((found, state == State::Complete)))
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
    create_empty(&mut connection, name, OWN_MARK)?;
    Ok(with_database(server, name))
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
