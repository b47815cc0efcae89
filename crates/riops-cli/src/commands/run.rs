//! `riops run rows`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::Timestamp;
use riops::engine::{EngineError, SessionError, run_stage};
use riops::plan::{
    Caches, ErrorPolicy, LatencyLimit, LoopSide, OnError, Protocol, RowsDataset, RowsRun, RunPlan,
    Schedule, Stop, UpdateShare,
};
use riops::probe::database::DatabaseProbe;
use riops::probe::storage::Storage;
use riops::probe::{Probe, caches};
use riops::report;
use riops::store::{
    ClientRecord, DatasetRecord, Measured, Record, RunContext, SqliteStore, Status, TargetRecord,
    build, default_path,
};
use riops::target::facts::ServerFacts;
use riops::target::machine::{self, MachineFacts};
use riops::target::{Connection, Interrupt, Pooler, is_on_this_machine};
use riops::workload::Workload;
use riops::workload::dataset::{DatasetError, Entry, Registry, State};
use riops::workload::prepare::same_parameters;
use riops::workload::rows::{self, NAME, Rows};
use riops::workload::verify::Check;
use uuid::Uuid;

use super::prepare::{Order, overlaid, prepare, random_seed, validate};
use super::settle::{increments, settle, settle_open_runs};
use crate::args::{self, DatasetOptions, RunOutput, RunRows};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::target::Target;
use crate::ui::{RunProgress, Ui};

/// Measures, keeps the record, prints it.
pub(crate) fn run(options: &RunRows, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let plan = plan(options)?;
    plan.validate()?;
    if options.dataset.size.is_some() && options.dataset.layout.is_none() {
        return Err(UsageError("--size goes with --layout block: use --rows".to_owned()).into());
    }
    validate(&overlaid(RowsDataset::default(), &options.dataset), &options.dataset)?;
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
    crate::ui::print(&printed(&record, &kept, options.run.output.output)?)?;
    // Only now: nothing that happens to the server can cost the result any more.
    target.close()?;
    match not_kept {
        Some(error) => Err(anyhow::Error::from(error).context("the run was not kept")),
        None => Ok(exit_code(&record)),
    }
}

/// A record in the form that was asked for.
pub(crate) fn printed(record: &Record, kept: &str, output: RunOutput) -> Result<String> {
    Ok(match output {
        RunOutput::Text => report::run_text(record, kept),
        RunOutput::Json => report::json(record)? + "\n",
        RunOutput::Pgio => report::run_text(record, kept) + "\n" + &report::pgio_text(record),
    })
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
    let batches: Vec<u64> = options.batch.iter().map(|count| count.0).collect();
    let sides: Vec<LoopSide> = options
        .loop_sides
        .iter()
        .map(|side| match side {
            args::LoopSide::Client => LoopSide::Client,
            args::LoopSide::Server => LoopSide::Server,
        })
        .collect();
    let loop_side = sides.first().copied().unwrap_or_default();
    // A loop in the server has one table, and what it is compared with has the same.
    let own_table = sides.contains(&LoopSide::Server);
    let in_server_only = !sides.is_empty() && !sides.contains(&LoopSide::Client);
    if in_server_only && run.workers.is_some() {
        return Err(UsageError(
            "--workers goes with --loop client: in the server each session drives itself"
                .to_owned(),
        )
        .into());
    }
    let stop = match (run.duration, run.transactions, run.total_rows) {
        (_, Some(count), _) => Stop::Transactions(count.0),
        (_, _, Some(count)) => Stop::Rows(count.0),
        (duration, _, _) => Stop::DurationS(duration.map_or(10.0, |span| span.0.as_secs_f64())),
    };
    Ok(RunPlan {
        rows: RowsRun {
            batch: batches.first().copied().unwrap_or(defaults.batch),
            batches: if batches.len() > 1 { batches } else { Vec::new() },
            update_percent: options.update_percent.unwrap_or(defaults.update_percent),
            update_share: match options.update_share {
                None | Some(args::UpdateShare::Rows) => UpdateShare::Rows,
                Some(args::UpdateShare::Transactions) => UpdateShare::Transactions,
            },
            update_batch: options.update_batch.map(|count| count.0),
            index_only: options.index_only,
            table_per_session: options.table_per_session || own_table,
            distribution: options.distribution.unwrap_or_default(),
            loop_side,
            loop_sides: if sides.len() > 1 { sides } else { Vec::new() },
            caches: match (options.cold, options.warm) {
                (true, _) => Caches::Cold,
                (_, true) => Caches::Warm,
                _ => Caches::AsFound,
            },
            follower_reads_ms: options
                .follower_reads
                .map(|staleness| u64::try_from(staleness.0.as_millis()).unwrap_or(u64::MAX)),
            non_transactional: options.non_transactional_writes,
        },
        sessions,
        workers: run
            .workers
            .unwrap_or_else(|| if in_server_only { sessions } else { cores.min(sessions) }),
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

/// All that the stages of a run have in common.
pub(super) struct Run<'a> {
    pub(super) target: &'a Target,
    dataset: &'a RowsDataset,
    pub(super) entry: &'a Entry,
    pub(super) context: &'a RunContext,
    by_transaction: bool,
    local_data: Option<&'a Path>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) ui: Ui,
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
    let workload = Rows::new(dataset.clone(), plan.rows.clone()).on(facts.flavour);
    if let Some(option) = workload.unsupported(facts.flavour) {
        return Err(DatasetError::Unsupported { option, flavour: facts.flavour }.into());
    }
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
            ..target_record(target, &facts, &entry, dataset.clone())
        },
        plan,
    };
    let mut registry = Registry::new(&mut control, NAME);
    registry.require(&workload.table_names())?;
    if context.plan.rows.has_server_loop() {
        registry.install(&rows::routines()).context("the loop could not be made in the server")?;
    }
    if context.plan.rows.updates() {
        settle_open_runs(&mut registry, &entry, store)?;
        registry
            .begin_run(&context.id.to_string(), &entry.id)
            .context("the run, which changes rows, could not be noted in riops.run")?;
    }
    let run = Run {
        target,
        dataset: &dataset,
        entry: &entry,
        context: &context,
        by_transaction,
        local_data: facts.data_directory.as_deref().filter(|_| is_local),
        interrupt,
        ui,
    };
    let stages = run.stages(&mut control)?;
    let (mut measured, mut checks) = run.settle(&workload, stages.measured, stages.unreported);
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
    if let (Some(error), Some(last)) = (stages.failure, measured.last_mut()) {
        last.result.failure.get_or_insert(SessionError::NextStage(error));
    }
    Ok(build(context, measured, checks)?)
}

/// What came of the stages of a run.
#[derive(Default)]
struct Stages {
    measured: Vec<Measured>,
    /// Why the one after the last of these did not come about.
    failure: Option<String>,
    /// Whether it may have changed rows all the same.
    unreported: bool,
}

impl Run<'_> {
    /// Runs the stages one after the other. Where one comes to nothing, those before it are kept, with
    /// the reason.
    fn stages(&self, control: &mut Connection) -> Result<Stages> {
        let mut stages = Stages::default();
        let runs = self.context.plan.rows.stages();
        let several = runs.len() > 1;
        for run in runs {
            match self.stage(run, several, control) {
                Ok(stage) => stages.measured.push(stage),
                Err(error) => return self.without_a_stage(stages, error),
            }
            let ended_early = stages.measured.last().map(|last| &last.result).is_some_and(|last| {
                last.interrupted || last.failure.is_some() || last.breached.is_some()
            });
            if ended_early {
                break;
            }
        }
        Ok(stages)
    }

    /// What is left of a run when a stage gave no result.
    fn without_a_stage(&self, mut stages: Stages, error: anyhow::Error) -> Result<Stages> {
        let nothing_was_sent = match error.downcast_ref() {
            None | Some(EngineError::Connect { .. } | EngineError::AccessPath { .. }) => true,
            Some(_) => false,
        };
        stages.unreported = !nothing_was_sent;
        match stages.measured.last_mut() {
            Some(last) if self.interrupt.requested() => last.result.interrupted = true,
            Some(_) => stages.failure = Some(format!("{error:#}")),
            None => {
                if self.context.plan.rows.updates() && nothing_was_sent {
                    // The connection that was used until now may be the one that was interrupted.
                    let id = self.context.id.to_string();
                    let _ = Connection::open(&self.target.conninfo, &Interrupt::new())
                        .map(|mut fresh| Registry::new(&mut fresh, NAME).end_run(&id, 0, 0));
                }
                return Err(error);
            }
        }
        Ok(stages)
    }

    fn stage(&self, run: RowsRun, several: bool, control: &mut Connection) -> Result<Measured> {
        let plan = &self.context.plan;
        let flavour = self.context.target.flavour;
        let workload = Rows::new(self.dataset.clone(), run.clone()).on(flavour);
        let mut stage = workload.stages(plan).pop().context("the workload has no stage")?;
        if several {
            self.ui.notice(&format!("stage: {}", stage.name));
        }
        let tables = workload.table_names();
        for sql in workload.settle_sql() {
            control.execute(&sql)?;
        }
        let caches = match run.caches {
            Caches::AsFound => None,
            Caches::Cold => Some(caches::cool(control, &tables, self.local_data)?),
            Caches::Warm => Some(caches::warm(control, &tables)?),
        };
        if let Some(state) = caches.as_ref().filter(|state| !state.reached) {
            self.ui.notice(&format!(
                "warning: the caches are not as {} as wanted: shared buffers: {}; page cache: {}",
                state.wanted, state.shared_buffers, state.page_cache
            ));
        }
        let mut database = DatabaseProbe::new(control, &tables)?;
        if self.by_transaction {
            // What a session sets would stay behind in the pool, for everybody.
            stage.sessions.iter_mut().for_each(|session| session.settings.clear());
            stage.explain_by_name = false;
        } else {
            let settings =
                stage.sessions.first().map(|session| session.settings.clone()).unwrap_or_default();
            database = database.with_read_looks(settings, workload.read_samples());
        }
        let mut probe = Probe::machine(self.local_data).with_database(database);
        let mut progress = RunProgress::new(self.ui, plan);
        let result = run_stage(
            stage,
            workload.accesses(),
            plan,
            &self.target.conninfo,
            self.interrupt,
            &mut probe,
            &mut progress,
        )?;
        let usage = probe.usage();
        Ok(Measured { run, result, usage, caches })
    }

    /// Notes what was changed, and proves it.
    fn settle(
        &self,
        workload: &Rows,
        mut measured: Vec<Measured>,
        unreported: bool,
    ) -> (Vec<Measured>, Vec<Check>) {
        let written = measured.iter().map(|stage| {
            let changes = stage.result.acknowledged.get(rows::OPERATION_UPDATE);
            changes.map_or((0, 0), |changes| (changes.rows, changes.rows_unknown))
        });
        let (rows, unknown) = written.fold((0, 0), |all, each| (all.0 + each.0, all.1 + each.1));
        let Some(last) = measured.last_mut().filter(|_| !unreported) else {
            // A stage that never reported: the ledger stays open.
            return (measured, Vec::new());
        };
        let changes = increments(&self.context.plan.rows, rows, unknown);
        let checks = settle(self, workload, changes, &mut last.result);
        (measured, checks)
    }
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
        if plan.rows.has_server_loop() {
            return Err(UsageError(
                "--loop server needs sessions of its own: name the server itself, or a pool by session".to_owned(),
            )
            .into());
        }
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
        validate(&dataset, &options.dataset)?;
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
    let dataset: RowsDataset = serde_json::from_value(entry.parameters.clone())
        .map_err(|error| DatasetError::Damaged(error.to_string()))?;
    let workload = Rows::new(dataset.clone(), RowsRun::default());
    same_parameters(&workload, &entry, &given(&options.dataset)?)?;
    Ok((entry, dataset))
}

/// The dataset's options that were given, by their names in the registry.
fn given(options: &DatasetOptions) -> Result<serde_json::Value> {
    let mut given = serde_json::to_value(overlaid(RowsDataset::default(), options))?;
    let names = [
        ("tables", options.tables.is_some()),
        ("rows", options.rows.is_some() || options.size.is_some()),
        ("filler", options.filler.is_some()),
        ("order", options.order.is_some()),
        ("primary_key", options.primary_key.is_some()),
        ("layout", options.layout.is_some()),
        ("tablets", options.tablets.is_some()),
        ("index_tablets", options.index_tablets.is_some()),
        ("non_transactional", false),
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
