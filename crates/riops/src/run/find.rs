//! Finds the dataset of a run, or prepares it first where the plan wants that.

use super::error::{Part as _, RunError};
use super::prepare::{Prepare, prepare};
use super::scene::Scene;
use crate::dataset::prepare::same_parameters;
use crate::dataset::sysbench::{adopt_where_needed, hint};
use crate::dataset::{DatasetError, Entry, Registry, State};
use crate::plan::{DatasetPlan, PreparePolicy};
use crate::server::Connection;
use crate::workload::Workload;

/// The dataset that will be measured, locked against changes for as long as the control connection lives;
/// or `guard`, a session for nothing else.
pub(super) fn find(
    name: &'static str,
    scene: &mut Scene<'_>,
    guard: Option<&mut Connection>,
) -> Result<Entry, RunError> {
    adopt(scene)?;
    let mut registry = Registry::new(&mut scene.control, name);
    let entry = registry.entry()?;
    if entry.as_ref().is_none_or(|entry| entry.state != State::Complete) {
        prepare_missing(name, entry, scene)?;
    }
    let mut registry = Registry::new(&mut scene.control, name);
    // Only what is there under the lock counts: somebody may have replaced it meanwhile.
    match guard {
        Some(guard) => Registry::new(guard, name).lock_in_transaction()?,
        None => registry.lock(false)?,
    }
    let entry = registry
        .entry()?
        .filter(|entry| entry.state == State::Complete)
        .ok_or(DatasetError::Incomplete(name))?;
    same_parameters(name, &entry, &scene.plan.dataset)?;
    Ok(entry)
}

/// Registers tables that sysbench has prepared, where the plan means those.
fn adopt(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let Some(dataset) = scene.plan.prepared()? else {
        return Ok(());
    };
    let observer = &mut *scene.observer;
    let given = &scene.plan.dataset;
    adopt_where_needed(&dataset, given, &scene.server, scene.interrupt, &mut |text| {
        observer.notice(text);
    })?;
    Ok(())
}

fn prepare_missing(
    name: &'static str,
    found: Option<Entry>,
    scene: &mut Scene<'_>,
) -> Result<(), RunError> {
    let interrupted = found.map(|entry| plan_of(name, &entry)).transpose()?;
    let may_prepare = scene.server.embedded || scene.plan.prepare == PreparePolicy::IfMissing;
    let stays = |dataset: &DatasetPlan| dataset.spec().stays_when_interrupted();
    if !may_prepare || interrupted.as_ref().is_some_and(stays) {
        let error = match interrupted {
            Some(_) => DatasetError::Incomplete(name),
            None => {
                DatasetError::Missing { workload: name, target: scene.server.conninfo.to_string() }
            }
        };
        return match hint(&mut Registry::new(&mut scene.control, name), &error) {
            Some(hint) => Err(error).part(|| hint.to_owned()),
            None => Err(error.into()),
        };
    }
    // What was interrupted is made as it was meant, unless the plan says otherwise.
    let dataset = match interrupted {
        Some(interrupted) => interrupted.with(&scene.plan.dataset)?,
        None => scene.plan.prepared()?.ok_or(DatasetError::Incomplete(name))?,
    };
    dataset.spec().validate()?;
    let order = Prepare {
        dataset,
        compared: scene.plan.dataset.clone(),
        recreate: false,
        connections: None,
    };
    let prepared = prepare(&order, &scene.server, scene.interrupt, scene.observer)?;
    scene.observer.prepared(&prepared);
    Ok(())
}

/// The dataset of an entry of the registry.
pub(super) fn plan_of(name: &str, entry: &Entry) -> Result<DatasetPlan, DatasetError> {
    DatasetPlan::of_parameters(name, entry.parameters.clone())
        .map_err(|error| DatasetError::Damaged(error.to_string()))
}

/// Registers what the run is about to make of its dataset: whoever reads it now would not know it.
pub(super) fn note_changes(
    registry: &mut Registry<'_>,
    name: &'static str,
    workload: &dyn Workload,
    own_sessions: bool,
) -> Result<(), RunError> {
    while let Some(entry) = registry.entry()? {
        let found = plan_of(name, &entry)?;
        let Some(changed) = workload.changed_dataset(&found) else {
            break;
        };
        if own_sessions {
            registry.lock(true)?;
        }
        if registry.note_parameters(&entry.parameters, &changed.parameters())? {
            break;
        }
    }
    Ok(())
}

/// The answers to queries for whole numbers.
pub(super) fn answers(
    connection: &mut Connection,
    questions: &[String],
) -> Result<Vec<i128>, RunError> {
    let mut answers = Vec::new();
    for sql in questions {
        let number = connection.query_value(sql)?.and_then(|text| text.parse().ok());
        answers.push(number.ok_or_else(|| {
            DatasetError::Damaged(format!("the answer to `{sql}` is not a number"))
        })?);
    }
    Ok(answers)
}
