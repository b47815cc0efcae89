//! `riops run rows`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::Timestamp;
use riops::engine::{EngineError, StageResult, run_stage};
use riops::plan::{
    ErrorPolicy, LatencyLimit, OnError, Protocol, RowsDataset, RowsRun, RunPlan, Schedule, Stop,
};
use riops::probe::Probe;
use riops::probe::storage::Storage;
use riops::report;
use riops::store::{
    ClientRecord, DatasetRecord, Record, RunContext, SqliteStore, Status, TargetRecord, build,
    default_path,
};
use riops::target::facts::ServerFacts;
use riops::target::machine::{self, MachineFacts};
use riops::target::{Connection, Interrupt, Pooler, is_on_this_machine};
use riops::workload::dataset::{DatasetError, Entry, Registry, State};
use riops::workload::prepare::same_parameters;
use riops::workload::rows::Rows;
use riops::workload::verify::Check;
use riops::workload::{Workload, rows::NAME};
use uuid::Uuid;

use super::prepare::{Order, overlaid, prepare, random_seed};
use super::settle::{settle, settle_open_runs};
use crate::args::{self, DatasetOptions, Output, RunRows};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::target::Target;
use crate::ui::{RunProgress, Ui};

/// Measures, keeps the record, prints it.
pub(crate) fn rows(options: &RunRows, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let plan = plan(options)?;
    plan.validate()?;
    overlaid(RowsDataset::default(), &options.dataset).validate()?;
    // A store that cannot be opened is better known before the run than after it.
    let store = if options.run.no_store {
        None
    } else {
        Some(SqliteStore::open(&options.run.store.store.clone().unwrap_or_else(default_path))?)
    };
    allow_sessions(plan.sessions, plan.workers)?;
    let id = Uuid::now_v7();
    let mut target = Target::open(&options.target, interrupt, ui)?;
    target.name_sessions(&id);
    target.announce(ui);
    let record = measure(&target, id, options, plan, store.as_ref(), interrupt, ui)?;
    let (kept, not_kept) = match store.map(|store| (store.save(&record), store)) {
        None => ("no (--no-store)".to_owned(), None),
        Some((Ok(()), store)) => (format!("{} in {}", record.id, store.path().display()), None),
        // The result is worth more than the place where it was to be kept.
        Some((Err(error), _)) => (format!("NO: {error}"), Some(error)),
    };
    crate::ui::print(&match options.run.output.output {
        Output::Text => report::run_text(&record, &kept),
        Output::Json => report::json(&record)? + "\n",
    })?;
    // Only now: nothing that happens to the server can cost the result any more.
    target.close()?;
    match not_kept {
        Some(error) => Err(anyhow::Error::from(error).context("the run was not kept")),
        None => Ok(exit_code(&record)),
    }
}

fn exit_code(record: &Record) -> ExitCode {
    match record.status {
        Status::Interrupted => ExitCode::from(INTERRUPTED),
        Status::Failed => ExitCode::from(FAILED),
        Status::Done if !record.verdict.valid => ExitCode::from(NOT_VALID),
        Status::Done if record.thresholds.iter().any(|threshold| !threshold.held) => {
            ExitCode::from(BREACHED)
        }
        Status::Done => ExitCode::SUCCESS,
    }
}

/// The command line with the defaults filled in.
fn plan(options: &RunRows) -> Result<RunPlan> {
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let run = &options.run;
    let sessions = run.sessions.unwrap_or(cores);
    let defaults = RowsRun::default();
    let batch = options.batch.map_or(defaults.batch, |count| count.0);
    let stop = match (run.duration, run.transactions, run.total_rows) {
        (_, Some(count), _) => Stop::Transactions(count.0),
        (_, _, Some(count)) => Stop::Rows(count.0),
        (duration, _, _) => Stop::DurationS(duration.map_or(10.0, |span| span.0.as_secs_f64())),
    };
    Ok(RunPlan {
        rows: RowsRun {
            batch,
            update_percent: options.update_percent.unwrap_or(defaults.update_percent),
            update_batch: options.update_batch.map_or(batch, |count| count.0),
            index_only: options.index_only,
            table_per_session: options.table_per_session,
            distribution: options.distribution.unwrap_or_default(),
        },
        sessions,
        workers: run.workers.unwrap_or_else(|| cores.min(sessions)),
        schedule: match (run.rate, run.poisson) {
            (None, _) => Schedule::Closed,
            (Some(per_s), false) => Schedule::Constant { per_s },
            (Some(per_s), true) => Schedule::Poisson { per_s },
        },
        protocol: match run.protocol {
            None | Some(args::Protocol::Prepared) => Protocol::Prepared,
            Some(args::Protocol::Extended) => Protocol::Extended,
            Some(args::Protocol::Simple) => Protocol::Simple,
        },
        pipeline: run.pipeline.unwrap_or(1),
        reconnect_every: run.reconnect.map(|count| count.0),
        errors: errors(run),
        latency_limit: run
            .latency_limit
            .map(|limit| LatencyLimit { limit_s: limit.0.as_secs_f64(), skip: run.skip_late }),
        thresholds: run.threshold.clone(),
        abort_on_threshold: run.abort_on_threshold,
        strict: run.strict,
        warmup_s: run.warmup.map_or(2.0, |span| span.0.as_secs_f64()),
        stop,
        interval_s: run.interval.map_or(1.0, |span| span.0.as_secs_f64()),
        seed: run.seed.map_or_else(random_seed, Ok)?,
        verify: !run.no_verify,
        label: run.label.clone(),
        tags: run.tag.iter().cloned().collect(),
    })
}

/// Files that riops has open beside its sessions and workers.
const OTHER_FILES: u64 = 64;

/// Each session is an open file, and each worker has a few for its poll.
pub(crate) fn allow_sessions(sessions: u32, workers: u32) -> Result<()> {
    let files = u64::from(sessions) + 4 * u64::from(workers) + OTHER_FILES;
    machine::allow_files(files).map_err(|highest| {
        let text = format!(
            "{sessions} sessions need {files} open files, and the limit is {highest}: raise it with ulimit -n"
        );
        UsageError(text).into()
    })
}

fn errors(run: &args::RunOptions) -> ErrorPolicy {
    let defaults = ErrorPolicy::default();
    ErrorPolicy {
        max_retries: run.max_retries.unwrap_or(defaults.max_retries),
        on_error: match run.on_error {
            None | Some(args::OnError::Stop) => OnError::Stop,
            Some(args::OnError::Continue) => OnError::Continue,
        },
        reconnect_timeout_s: run
            .reconnect_timeout
            .map_or(defaults.reconnect_timeout_s, |span| span.0.as_secs_f64()),
    }
}

fn measure(
    target: &Target,
    id: Uuid,
    options: &RunRows,
    plan: RunPlan,
    store: Option<&SqliteStore>,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<Record> {
    let started_at = Timestamp::now();
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    Target::tell_encryption(&control, ui);
    let pooler = find_pooler(target, &plan, &mut control, interrupt, ui)?;
    let by_transaction = pooler.is_some_and(|pooler| pooler.by_transaction);
    // Through a pooler the lock needs a session of its own, which holds it by its transaction.
    let mut guard =
        if by_transaction { Some(Connection::open(&target.conninfo, interrupt)?) } else { None };
    let locks = Locks { guard: guard.as_mut() };
    let (entry, dataset) = find_dataset(target, options, &mut control, locks, interrupt, ui)?;
    plan.rows.validate_for(&dataset)?;
    let facts = ServerFacts::read(&mut control)?;
    // Behind a pooler or a proxy the address says nothing of the server's machine.
    let is_local = pooler.is_none() && target.is_local() && is_on_this_machine(&mut control)?;
    let workload = Rows::new(dataset.clone(), plan.rows.clone());
    let context = RunContext {
        id,
        started_at,
        workload: workload.name().to_owned(),
        accesses: workload.accesses(),
        client: ClientRecord {
            riops_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: MachineFacts::read(),
            workers: plan.workers,
            shares_machine_with_server: is_local,
        },
        target: TargetRecord {
            encryption: control.encryption(),
            pooler: pooler.map(|pooler| pooler.to_string()),
            storage: facts.data_directory.as_deref().filter(|_| is_local).map(Storage::of_path),
            ..target_record(target, &facts, &entry, dataset)
        },
        plan,
    };
    let local_data = facts.data_directory.as_deref().filter(|_| is_local);
    let mut probe = Probe::new(local_data);
    Registry::new(&mut control, NAME).require(&workload.table_names())?;
    for sql in workload.settle_sql() {
        control.execute(&sql)?;
    }
    let mut registry = Registry::new(&mut control, NAME);
    if context.plan.rows.updates() {
        settle_open_runs(&mut registry, &entry, store)?;
        registry
            .begin_run(&context.id.to_string(), &entry.id)
            .context("the run, which changes rows, could not be noted in riops.run")?;
    }
    let result = run_loop(&workload, &context, target, by_transaction, interrupt, &mut probe, ui);
    let nothing_was_sent = |error: &anyhow::Error| {
        matches!(
            error.downcast_ref(),
            Some(EngineError::Connect { .. } | EngineError::AccessPath { .. })
        )
    };
    if context.plan.rows.updates() && result.as_ref().is_err_and(nothing_was_sent) {
        let _ = registry.end_run(&context.id.to_string(), 0, 0);
    }
    let mut result = result?;
    let mut checks = settle(target, &workload, &entry, &context, &mut result, interrupt, ui);
    if let Some(guard) = &mut guard
        && let Err(error) = guard.query_value("select 1")
    {
        checks.push(Check {
            name: "lock of the dataset".to_owned(),
            expected: "held to the end".to_owned(),
            found: error.to_string(),
            held: false,
        });
    }
    let usage = probe.usage(result.seconds);
    Ok(build(context, result, usage, checks)?)
}

/// What stands between, and whether the plan can be run through it.
fn find_pooler(
    target: &Target,
    plan: &RunPlan,
    control: &mut Connection,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<Option<Pooler>> {
    let pooler = Pooler::detect(control, &target.conninfo, interrupt)?;
    let Some(found) = pooler else {
        return Ok(None);
    };
    ui.notice(&format!("between riops and the server: {found}"));
    if found.by_transaction {
        if plan.protocol == Protocol::Prepared && !found.prepared_statements {
            return Err(UsageError(
                "the pooler passes prepared statements through as they are, so that they are missing on its other connections: use --protocol extended or simple, or a pooler that keeps track of them (PgBouncer from 1.21 on, with max_prepared_statements)".to_owned(),
            )
            .into());
        }
        ui.notice("no session settings are made, since they would stay in the pool: what the workload needs has to be set for the role or in the pooler (connect_query)");
    }
    Ok(Some(found))
}

/// Who keeps others from changing the dataset during a run.
struct Locks<'a> {
    /// A session for nothing else; else the control session does it.
    guard: Option<&'a mut Connection>,
}

fn run_loop(
    workload: &Rows,
    context: &RunContext,
    target: &Target,
    by_transaction: bool,
    interrupt: &Interrupt,
    probe: &mut Probe,
    ui: Ui,
) -> Result<StageResult> {
    let plan = &context.plan;
    let mut stage = workload.stages(plan).pop().context("the workload has no stage")?;
    if by_transaction {
        // What a session sets would stay behind in the pool, for everybody.
        stage.sessions.iter_mut().for_each(|session| session.settings.clear());
        stage.explain_by_name = false;
    }
    let mut progress = RunProgress::new(ui, plan);
    let accesses = context.accesses.clone();
    Ok(run_stage(stage, accesses, plan, &target.conninfo, interrupt, probe, &mut progress)?)
}

/// The dataset that will be measured: prepared first where it is missing and that is wanted, and
/// locked against changes for as long as `control` lives.
fn find_dataset(
    target: &Target,
    options: &RunRows,
    control: &mut Connection,
    locks: Locks<'_>,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<(Entry, RowsDataset)> {
    let mut registry = Registry::new(control, NAME);
    let entry = registry.entry()?;
    let complete = entry.as_ref().is_some_and(|entry| entry.state == State::Complete);
    if !complete {
        if target.embedded.is_none() && !options.prepare {
            return Err(match entry {
                Some(_) => DatasetError::Incomplete(NAME),
                None => {
                    DatasetError::Missing { workload: NAME, target: target.conninfo.to_string() }
                }
            }
            .into());
        }
        // What was interrupted is made as it was meant.
        let base = entry
            .as_ref()
            .and_then(|entry| serde_json::from_value(entry.parameters.clone()).ok())
            .map_or_else(
                || anyhow::Ok(RowsDataset { seed: random_seed()?, ..RowsDataset::default() }),
                Ok,
            )?;
        let dataset = overlaid(base, &options.dataset);
        dataset.validate()?;
        let compared = given(&options.dataset)?;
        let order = Order { dataset, compared, recreate: false, connections: None };
        ui.notice(&prepare(target, order, interrupt, ui)?);
    }
    // Only what is there under the lock counts: somebody may have replaced it meanwhile.
    match locks.guard {
        Some(guard) => Registry::new(guard, NAME).lock_in_transaction()?,
        None => registry.lock(false)?,
    }
    let entry = registry
        .entry()?
        .filter(|entry| entry.state == State::Complete)
        .ok_or(DatasetError::Incomplete(NAME))?;
    same_parameters(NAME, &entry, &given(&options.dataset)?)?;
    let dataset: RowsDataset = serde_json::from_value(entry.parameters.clone())
        .map_err(|error| DatasetError::Damaged(error.to_string()))?;
    Ok((entry, dataset))
}

/// The dataset's options that were given, by their names in the registry.
fn given(options: &DatasetOptions) -> Result<serde_json::Value> {
    let mut given = serde_json::to_value(overlaid(RowsDataset::default(), options))?;
    let names = [
        ("tables", options.tables.is_some()),
        ("rows", options.rows.is_some()),
        ("filler", options.filler.is_some()),
        ("order", options.order.is_some()),
        ("primary_key", options.primary_key.is_some()),
        ("batch", false),
        ("seed", false),
    ];
    let parameters = given
        .as_object_mut()
        .ok_or_else(|| UsageError("the dataset's options cannot be compared".to_owned()))?;
    for (name, _) in names.iter().filter(|(_, given)| !given) {
        parameters.remove(*name);
    }
    Ok(given)
}

fn target_record(
    target: &Target,
    facts: &ServerFacts,
    entry: &Entry,
    dataset: RowsDataset,
) -> TargetRecord {
    TargetRecord {
        flavour: facts.flavour,
        server_version: facts.version.clone(),
        version_text: facts.version_text.clone(),
        compiler_flags: facts.compiler_flags.clone(),
        embedded: target.embedded.is_some(),
        encryption: None,
        pooler: None,
        storage: None,
        address: target.conninfo.address(),
        database: target.conninfo.database.clone(),
        settings: facts.settings.clone(),
        dataset: DatasetRecord { id: entry.id.clone(), rows: dataset },
    }
}
