//! Prepares a dataset. Finds the dataset of a run, or prepares it first if the plan allows it.

use super::active::{ActiveRun, Locked};
use super::error::{Context as _, RunError};
use crate::dataset::prepare::{Preparation, same_parameters};
use crate::dataset::sysbench::hint;
use crate::dataset::{DatasetError, Entry, OnWait, Registry, State, pgbench, sysbench};
use crate::host::{Interrupt, machine};
use crate::server::{Connection, Server};
use crate::workload::{self, Workload};
use riops_model::plan::{DatasetPlan, Parameters, Plan, PreparePolicy};
use riops_model::record::{Events, Prepared, RunEvent};
use serde_json::Value;

/// The dataset of a run.
pub(super) struct RunDataset {
    pub(super) entry: Entry,
    /// Whether it is registered: changes are counted in the ledger, and can be verified.
    pub(super) is_registered: bool,
    pub(super) dataset: DatasetPlan,
    /// The part of it that the run uses, which may be the whole.
    pub(super) used: DatasetPlan,
}

impl RunDataset {
    fn new(
        name: &str,
        entry: Entry,
        is_registered: bool,
        plan: &mut Plan,
    ) -> Result<Self, RunError> {
        let dataset = plan_of(name, &entry)?;
        let used = use_part(plan, &entry, &dataset)?;
        Ok(Self { entry, is_registered, dataset, used })
    }
}

/// Returns the dataset to measure. It is locked against changes until the control connection is closed, or
/// `guard`, a connection that only holds this lock.
pub(super) fn find(
    name: &'static str,
    active: &mut ActiveRun<'_>,
    guard: Option<&mut Connection>,
) -> Result<RunDataset, RunError> {
    if let Some(unregistered) = find_unregistered(name, active)? {
        return Ok(unregistered);
    }
    adopt(active)?;
    let wanted = active.plan.prepared()?;
    let is_wanted = |entry: &Entry| wanted.as_ref().is_none_or(|wanted| is_wanted(entry, wanted));
    let mut registry = Registry::new(&mut active.control, name);
    let entry = registry.entry()?.filter(is_wanted);
    if entry.as_ref().is_none_or(|entry| entry.state != State::Complete) {
        prepare_missing(name, entry, active)?;
        if let Some(unregistered) = find_unregistered(name, active)? {
            return Ok(unregistered);
        }
    }
    let mut registry = Registry::new(&mut active.control, name);
    let mut on_wait = |text: &str| active.hooks.notice(text);
    // Read the entry again under the lock: another session may have replaced the dataset meanwhile.
    if let Some(guard) = guard {
        Registry::new(guard, name).lock_in_transaction(&mut on_wait)?;
    } else {
        registry.lock(false, &mut on_wait)?;
        active.locked = Some(Locked { name, is_shared: false });
    }
    let mut registry = Registry::new(&mut active.control, name);
    let entry = registry
        .entry()?
        .filter(|entry| entry.state == State::Complete && is_wanted(entry))
        .ok_or(DatasetError::Incomplete(name))?;
    let schema = entry.parameters.get("schema").and_then(Value::as_str);
    let is_shared = schema.is_some_and(|schema| schema != "riops");
    active.locked = active.locked.map(|locked| Locked { is_shared, ..locked });
    RunDataset::new(name, entry, true, &mut active.plan)
}

/// Returns whether a run may use the registered tables. A run uses tables that another program created only in the
/// schema that it names.
pub(super) fn is_wanted(entry: &Entry, wanted: &DatasetPlan) -> bool {
    let schema = |parameters: &Value| parameters.get("schema").cloned();
    !entry.is_adopted() || schema(&entry.parameters) == schema(&wanted.parameters())
}

/// Returns tables that other programs share, without registering them, if the run will not verify them.
fn find_unregistered(
    name: &'static str,
    active: &mut ActiveRun<'_>,
) -> Result<Option<RunDataset>, RunError> {
    let traits = active.plan.work.traits();
    let Some(wanted) = active.plan.prepared()? else {
        return Ok(None);
    };
    let reason = if traits.shares_its_tables && traits.has_uncounted_changes {
        Some(
            "the data are not verified: scripts from files may change the tables of the built-in ones",
        )
    } else {
        why_unregistered(name, &wanted, active)?
    };
    let is_unverified = traits.shares_its_tables && !active.plan.verify;
    if reason.is_none() && !is_unverified {
        return Ok(None);
    }
    let given = &active.plan.dataset;
    let entry = match pgbench::unregistered_entry(&wanted, given, &mut active.control)? {
        None => sysbench::unregistered_entry(&wanted, given, &mut active.control)?,
        entry => entry,
    };
    let Some(entry) = entry else {
        return Ok(None);
    };
    if let Some(reason) = reason.filter(|_| active.plan.verify) {
        active.hooks.notice(reason);
    }
    RunDataset::new(name, entry, false, &mut active.plan).map(Some)
}

/// Returns why tables of other programs cannot be registered; `None` if they can, or if the dataset was created by riops.
fn why_unregistered(
    name: &'static str,
    wanted: &DatasetPlan,
    active: &mut ActiveRun<'_>,
) -> Result<Option<&'static str>, RunError> {
    let reason = if active.environment.is_transaction_pooled() {
        "the data are not verified: the lock for it needs a dedicated session, which a pool in transaction mode does not have"
    } else if active.control.is_read_only()? && !active.plan.work.traits().writes {
        "the tables are used without being registered: the transactions of the role are read-only, or the server is a standby"
    } else {
        return Ok(None);
    };
    let schema = |parameters: &Value| parameters.get("schema").cloned();
    let is_own = |entry: &Entry| {
        !entry.is_adopted() && schema(&entry.parameters) == schema(&wanted.parameters())
    };
    // The role may lack the privilege to read the registry.
    let entry = Registry::new(&mut active.control, name).entry().ok().flatten();
    Ok((!entry.is_some_and(|entry| is_own(&entry))).then_some(reason))
}

/// Returns the part of a dataset that a plan uses. The dataset must match the plan.
pub(super) fn use_part(
    plan: &mut Plan,
    entry: &Entry,
    dataset: &DatasetPlan,
) -> Result<DatasetPlan, RunError> {
    plan.use_part_of(dataset);
    same_parameters(dataset.traits().name, entry, &plan.dataset)
        .map_err(|error| with_largest(error, dataset))?;
    Ok(dataset.part(&plan.part)?)
}

/// Adds the largest size to the error about a size that is too large.
fn with_largest(mut error: DatasetError, dataset: &DatasetPlan) -> DatasetError {
    if let DatasetError::Differs { option, existing, advice, .. } = &mut error {
        let name = option.trim_start_matches('-').replace('-', "_");
        // Tables of bulk-insert have a size of 0: they grow.
        if dataset.traits().scale.contains(&name.as_str()) && existing != "0" {
            *advice = format!("use at most {option} {existing}; ");
        }
    }
    error
}

/// Registers tables that sysbench or pgbench prepared, if the plan refers to them.
fn adopt(active: &mut ActiveRun<'_>) -> Result<(), RunError> {
    // Through a pool in transaction mode, the tables are used as they are.
    let is_pooled = active.environment.is_transaction_pooled();
    let Some(dataset) = active.plan.prepared()?.filter(|_| !is_pooled) else {
        return Ok(());
    };
    let ActiveRun { hooks, control, plan, interrupt, .. } = active;
    let mut notice = |text: &str| hooks.notice(text);
    let given = &plan.dataset;
    sysbench::adopt_where_needed(&dataset, given, control, interrupt, &mut notice)?;
    pgbench::adopt_where_needed(&dataset, given, control, interrupt, &mut notice)?;
    Ok(())
}

fn prepare_missing(
    name: &'static str,
    existing: Option<Entry>,
    active: &mut ActiveRun<'_>,
) -> Result<(), RunError> {
    let incomplete = existing.map(|entry| plan_of(name, &entry)).transpose()?;
    let may_prepare = active.server.embedded || active.plan.prepare == PreparePolicy::IfMissing;
    let stays = |dataset: &DatasetPlan| dataset.traits().stays_when_interrupted;
    if !may_prepare || incomplete.as_ref().is_some_and(stays) {
        let error = match incomplete {
            Some(_) => DatasetError::Incomplete(name),
            None => missing(name, &active.server),
        };
        return match hint(&mut Registry::new(&mut active.control, name), &error) {
            Some(hint) => Err(error).with_context(|| hint.to_owned()),
            None => Err(error.into()),
        };
    }
    // An incomplete dataset is prepared again with its own parameters, unless the plan overrides them.
    let dataset = match incomplete {
        Some(incomplete) => incomplete.with(&active.plan.dataset)?,
        None => active.plan.prepared()?.ok_or(DatasetError::Incomplete(name))?,
    };
    dataset.spec().validate()?;
    let request = Prepare {
        dataset,
        compared: active.plan.dataset.clone(),
        recreate: false,
        connections: None,
        skip_space_check: false,
    };
    let prepared = prepare(&request, &active.server, active.interrupt, &active.hooks.events)?;
    active.hooks.events.send(&RunEvent::Prepared(prepared));
    if active.plan.work.traits().shows_messages {
        // pgbench does not create them.
        let text =
            "the tables did not exist and were created: riops pgbench -i -s N chooses their scale"
                .to_owned();
        active.hooks.events.send(&RunEvent::Notice { text, is_important: true });
    }
    Ok(())
}

/// Returns that a server has no dataset with this name.
pub(super) fn missing(name: &'static str, server: &Server) -> DatasetError {
    DatasetError::Missing { workload: name, target: server.conninfo.to_string() }
}

/// Returns the dataset of a registry entry.
pub(super) fn plan_of(name: &str, entry: &Entry) -> Result<DatasetPlan, DatasetError> {
    DatasetPlan::of_parameters(name, entry.parameters.clone())
        .map_err(|error| DatasetError::Damaged(error.to_string()))
}

/// Registers the parameters that the dataset will have after the run, before the run changes it. The dataset
/// is locked against other sessions meanwhile, because verifications read the parameters first.
pub(super) fn note_changes(
    registry: &mut Registry<'_>,
    tables: &RunDataset,
    workload: &dyn Workload,
    dedicated_sessions: bool,
    on_wait: OnWait<'_>,
) -> Result<(), RunError> {
    let name = tables.dataset.traits().name;
    let changes = |registry: &mut Registry<'_>| -> Result<Option<[Value; 2]>, RunError> {
        let entry = registry.entry()?.filter(|entry| entry.id == tables.entry.id);
        // Another process has replaced it.
        let entry = entry.ok_or(DatasetError::Incomplete(name))?;
        let changed = workload.dataset_after_run(&plan_of(name, &entry)?);
        Ok(changed.map(|changed| [entry.parameters, changed.parameters()]))
    };
    if changes(registry)?.is_none() {
        return Ok(());
    }
    if dedicated_sessions {
        registry.exchange_lock(true, on_wait)?;
    }
    while let Some([before, after]) = changes(registry)? {
        if registry.note_parameters(&before, &after)? {
            break;
        }
    }
    if dedicated_sessions {
        registry.exchange_lock(false, on_wait)?;
    }
    Ok(())
}

/// Runs queries that each return one integer.
pub(super) fn query_integers(
    connection: &mut Connection,
    queries: &[String],
) -> Result<Vec<i128>, RunError> {
    let mut integers = Vec::new();
    for sql in queries {
        let integer = connection.query_value(sql)?.and_then(|text| text.parse().ok());
        integers.push(integer.ok_or_else(|| {
            DatasetError::Damaged(format!("the result of `{sql}` is not an integer"))
        })?);
    }
    Ok(integers)
}

/// The parameters of a preparation.
#[derive(Debug, Clone)]
pub struct Prepare {
    /// Dataset to prepare.
    pub dataset: DatasetPlan,
    /// Parameters that an existing dataset must match.
    pub compared: Parameters,
    /// Whether an existing dataset is dropped first.
    pub recreate: bool,
    /// Number of parallel connections; absent: one per core.
    pub connections: Option<u32>,
    /// Whether the free space of the server is not checked.
    pub skip_space_check: bool,
}

/// Prepares a dataset, or keeps an existing one with the same parameters.
///
/// # Errors
/// [`RunError`]. A failed preparation leaves nothing that looks complete.
pub fn prepare(
    request: &Prepare,
    server: &Server,
    interrupt: &Interrupt,
    events: &Events,
) -> Result<Prepared, RunError> {
    server.require_dedicated_sessions(interrupt)?;
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let workload = workload::on(&request.dataset)?;
    events.send(&RunEvent::Preparing { rows: 0, total: 0 });
    Preparation {
        target: &server.conninfo,
        workload: workload.as_ref(),
        name: request.dataset.traits().name,
        compared: &request.compared,
        recreate: request.recreate,
        connections: request.connections.unwrap_or(cores),
        skip_space_check: request.skip_space_check,
        interrupt,
        events,
    }
    .run(&mut |text| events.notice(text))
    .with_context(|| "cannot prepare the dataset".to_owned())
}
