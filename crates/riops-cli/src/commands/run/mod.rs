//! `riops run`: what is common to all workloads, from the target to the printed record.

mod load;
mod picture;
mod plan;
mod point;
mod rows;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use jiff::Timestamp;
use riops::engine::{EngineError, SessionError, run_stage};
use riops::plan::{Caches, DatasetPlan, Protocol, RunPlan, WorkPlan};
use riops::probe::database::DatabaseProbe;
use riops::probe::storage::Storage;
use riops::probe::{Probe, caches};
use riops::report;
use riops::store::{
    ClientRecord, DatasetRecord, Measured, Record, RunContext, SqliteStore, Status, TargetRecord,
    build, default_path,
};
use riops::target::facts::ServerFacts;
use riops::target::machine::MachineFacts;
use riops::target::{Connection, Interrupt, Pooler, is_on_this_machine};
use riops::workload::Workload;
use riops::workload::access::Access;
use riops::workload::dataset::{DatasetError, Entry, Registry, State};
use riops::workload::prepare::same_parameters;
use riops::workload::verify::Check;
use serde_json::Value;
use uuid::Uuid;

use super::prepare::{Order, prepare};
use super::settle::{settle, settle_open_runs};
use crate::args::{PictureOptions, Run as RunCommand, RunOptions, RunOutput, TargetOptions};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::target::Target;
use crate::ui::{RunProgress, Ui};
use picture::Graph;
pub(crate) use picture::drawn;
pub(crate) use plan::allow_sessions;

/// Measures, keeps the record, prints it.
pub(crate) fn run(command: &RunCommand, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match command {
        RunCommand::Rows(options) => rows::run(options, interrupt, ui),
        RunCommand::Load(options) => load::run(options, interrupt, ui),
        RunCommand::Point(options) => point::run(options, interrupt, ui),
    }
}

/// All that is the same for every workload once its options are read.
struct Setting<'a> {
    target: Target,
    id: Uuid,
    started_at: Timestamp,
    store: Option<SqliteStore>,
    interrupt: &'a Interrupt,
    ui: Ui,
}

/// Opens store and target, measures, keeps the record, prints it.
fn perform(
    plan: RunPlan,
    options: &RunOptions,
    target: &TargetOptions,
    (interrupt, ui): (&Interrupt, Ui),
    measure: impl FnOnce(&Setting<'_>, RunPlan) -> Result<Record>,
) -> Result<ExitCode> {
    require_form(&plan, options.output.output)?;
    // What cannot be written is better known before the run than after it.
    let graph = Graph::open(&options.picture)?;
    let store = if options.no_store {
        None
    } else {
        Some(SqliteStore::open(&options.store.store.clone().unwrap_or_else(default_path))?)
    };
    allow_sessions(plan.sessions, plan.workers)?;
    let id = Uuid::now_v7();
    let mut target = Target::open(target, interrupt, ui)?;
    target.name_sessions(&id);
    target.announce(ui);
    let setting = Setting { target, id, started_at: Timestamp::now(), store, interrupt, ui };
    let record = measure(&setting, plan)?;
    let Setting { target, store, .. } = setting;
    let (kept, not_kept) = match store.map(|store| (store.save(&record), store)) {
        None => ("no (--no-store)".to_owned(), None),
        Some((Ok(()), store)) => (format!("{} in {}", record.id, store.path().display()), None),
        // The result is worth more than the place where it was to be kept.
        Some((Err(error), _)) => (format!("NO: {error}"), Some(error)),
    };
    crate::ui::print(&printed(&record, &kept, options.output.output, &options.picture)?)?;
    let drawn = graph.map_or(Ok(()), |graph| graph.draw(&record, ui));
    // Only now: nothing that happens to the server can cost the result any more.
    target.close()?;
    drawn?;
    match not_kept {
        Some(error) => Err(anyhow::Error::from(error).context("the run was not kept")),
        None => Ok(exit_code(&record)),
    }
}

/// Fails where the form that was asked for has nothing to say about such a run.
fn require_form(plan: &RunPlan, output: RunOutput) -> Result<()> {
    if output == RunOutput::Pgio && !matches!(plan.work, WorkPlan::Rows(_)) {
        let text = "--output pgio goes with the workload rows: it is PGIO's report of such a run";
        return Err(UsageError(text.to_owned()).into());
    }
    Ok(())
}

/// A record in the form that was asked for.
pub(crate) fn printed(
    record: &Record,
    kept: &str,
    output: RunOutput,
    picture: &PictureOptions,
) -> Result<String> {
    require_form(&record.plan, output)?;
    let histogram = picture::histogram(record, picture);
    Ok(match output {
        RunOutput::Text => report::run_text(record, kept) + &histogram,
        RunOutput::Json => report::json(record)? + "\n",
        RunOutput::Pgio => {
            report::run_text(record, kept) + &histogram + "\n" + &report::pgio_text(record)
        }
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

/// What is known of the target before anything is measured.
struct Ground {
    facts: ServerFacts,
    pooler: Option<Pooler>,
    /// Whether the server's data lie on this machine.
    is_local: bool,
}

impl Ground {
    /// Looks at the target through the control connection.
    fn read(setting: &Setting<'_>, plan: &RunPlan, control: &mut Connection) -> Result<Self> {
        let Setting { target, interrupt, ui, .. } = setting;
        Target::tell_encryption(control, *ui);
        let pooler = find_pooler(target, plan, control, interrupt, *ui)?;
        let facts = ServerFacts::read(control)?;
        // Behind a pooler or a proxy the address says nothing of the server's machine.
        let is_local = pooler.is_none() && target.is_local() && is_on_this_machine(control)?;
        Ok(Self { facts, pooler, is_local })
    }

    fn by_transaction(&self) -> bool {
        self.pooler.as_ref().is_some_and(|pooler| pooler.by_transaction)
    }

    fn local_data(&self) -> Option<&Path> {
        self.facts.data_directory.as_deref().filter(|_| self.is_local)
    }

    /// What the record says beside the measurement.
    fn context(
        &self,
        setting: &Setting<'_>,
        plan: RunPlan,
        (workload, accesses): (&'static str, Vec<Access>),
        dataset: DatasetRecord,
        control: &Connection,
    ) -> RunContext {
        let Self { facts, pooler, .. } = self;
        let conninfo = &setting.target.conninfo;
        RunContext {
            id: setting.id,
            started_at: setting.started_at,
            workload: workload.to_owned(),
            accesses,
            client: ClientRecord {
                riops_version: env!("CARGO_PKG_VERSION").to_owned(),
                machine: MachineFacts::read(),
                workers: plan.workers,
                shares_machine_with_server: self.is_local,
            },
            target: TargetRecord {
                flavour: facts.flavour,
                server_version: facts.version.clone(),
                version_text: facts.version_text.clone(),
                compiler_flags: facts.compiler_flags.clone(),
                embedded: setting.target.embedded.is_some(),
                encryption: control.encryption(),
                pooler: pooler.as_ref().map(ToString::to_string),
                storage: self.local_data().map(Storage::of_path),
                address: conninfo.address(),
                database: conninfo.database.clone(),
                settings: facts.settings.clone(),
                dataset,
            },
            plan,
        }
    }
}

/// A stage that is to be run.
struct StageOrder {
    workload: Box<dyn Workload>,
    /// The part of the plan that is this stage's.
    work: WorkPlan,
    caches: Caches,
    /// Statements that show how many blocks a read touches.
    read_samples: Vec<String>,
    /// The query for the bytes of a row, where somebody wants to know.
    row_size_sql: Option<String>,
}

/// All that the stages of a run have in common.
pub(super) struct Run<'a> {
    pub(super) target: &'a Target,
    /// The name of the dataset in the registry.
    pub(super) dataset_name: &'static str,
    pub(super) entry: &'a Entry,
    pub(super) context: &'a RunContext,
    by_transaction: bool,
    local_data: Option<&'a Path>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) ui: Ui,
}

/// A dataset that is to be measured.
struct Wanted<'a> {
    /// Its name in the registry.
    name: &'static str,
    /// The parameters that were given.
    given: Value,
    /// The workload on a dataset with these parameters.
    workload_on: &'a dyn Fn(Value) -> Found,
    /// What is to be made where it is missing, given what was interrupted; `None` where nothing is.
    make: Option<&'a Make<'a>>,
}

/// What is to be made, given the parameters of what was interrupted.
type Make<'a> = dyn Fn(Option<Value>) -> Result<Box<dyn Workload>> + 'a;

/// The workload on a dataset that was found, where its parameters can be read.
pub(super) type Found = Result<Box<dyn Workload>, DatasetError>;

/// What came of the stages of a run.
#[derive(Default)]
struct Stages {
    measured: Vec<Measured>,
    /// Why the one after the last of these did not come about.
    failure: Option<String>,
    /// Whether it may have changed rows all the same.
    unreported: bool,
}

/// Runs stages on a dataset that is there, and proves the data where they were changed.
fn measure(
    setting: &Setting<'_>,
    plan: RunPlan,
    wanted: &Wanted<'_>,
    work: impl FnOnce(&RunPlan, &Entry, &ServerFacts) -> Result<(DatasetPlan, Vec<StageOrder>)>,
    prepared: impl FnOnce(&mut Registry<'_>) -> Result<()>,
) -> Result<Record> {
    let Setting { target, interrupt, ui, .. } = setting;
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    let ground = Ground::read(setting, &plan, &mut control)?;
    // Through a pooler the lock needs a session of its own, which holds it by its transaction.
    let mut guard = if ground.by_transaction() {
        Some(Connection::open(&target.conninfo, interrupt)?)
    } else {
        None
    };
    let entry = find_dataset(setting, wanted, &mut control, guard.as_mut())?;
    let (parameters, orders) = work(&plan, &entry, &ground.facts)?;
    let first = orders.first().ok_or_else(|| UsageError("the run has no stage".to_owned()))?;
    if let Some(option) = first.workload.unsupported(ground.facts.flavour) {
        return Err(DatasetError::Unsupported { option, flavour: ground.facts.flavour }.into());
    }
    let tables = first.workload.table_names();
    let promised = (first.workload.name(), first.workload.accesses());
    let dataset = DatasetRecord { id: entry.id.clone(), parameters };
    let context = ground.context(setting, plan, promised, dataset, &control);
    let mut registry = Registry::new(&mut control, wanted.name);
    registry.require(&tables)?;
    prepared(&mut registry)?;
    if context.plan.work.writes() {
        settle_open_runs(&mut registry, &entry, setting.store.as_ref())?;
        registry.begin_run(&context.id.to_string(), &entry.id).map_err(|error| {
            anyhow::Error::from(error)
                .context("the run, which changes rows, could not be noted in riops.run")
        })?;
    }
    let run = Run {
        target,
        dataset_name: wanted.name,
        entry: &entry,
        context: &context,
        by_transaction: ground.by_transaction(),
        local_data: ground.local_data(),
        interrupt,
        ui: *ui,
    };
    let stages = run.stages(&orders, &mut control)?;
    let mut measured = stages.measured;
    let mut checks = match (orders.last(), measured.last_mut()) {
        // A stage that never reported leaves the ledger open.
        (Some(last), Some(_)) if !stages.unreported => {
            settle(&run, last.workload.as_ref(), &mut measured)
        }
        _ => Vec::new(),
    };
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

impl Run<'_> {
    /// Runs the stages one after the other. Where one comes to nothing, those before it are kept, with
    /// the reason.
    fn stages(&self, orders: &[StageOrder], control: &mut Connection) -> Result<Stages> {
        let mut stages = Stages::default();
        for order in orders {
            match self.stage(order, orders.len() > 1, control) {
                Ok(stage) => stages.measured.push(stage),
                Err(error) => return self.without_a_stage(stages, error),
            }
            if stages.measured.last().is_some_and(ended_early) {
                break;
            }
        }
        Ok(stages)
    }

    /// What is left of a run when a stage gave no result.
    fn without_a_stage(&self, mut stages: Stages, error: anyhow::Error) -> Result<Stages> {
        let nothing_was_sent = was_not_sent(&error);
        stages.unreported = !nothing_was_sent;
        match stages.measured.last_mut() {
            Some(last) if self.interrupt.requested() => last.result.interrupted = true,
            Some(_) => stages.failure = Some(format!("{error:#}")),
            None => {
                if self.context.plan.work.writes() && nothing_was_sent {
                    // The connection that was used until now may be the one that was interrupted.
                    let id = self.context.id.to_string();
                    let _ = Connection::open(&self.target.conninfo, &Interrupt::new()).map(
                        |mut fresh| Registry::new(&mut fresh, self.dataset_name).end_run(&id, 0, 0),
                    );
                }
                return Err(error);
            }
        }
        Ok(stages)
    }

    fn stage(
        &self,
        order: &StageOrder,
        several: bool,
        control: &mut Connection,
    ) -> Result<Measured> {
        let StageOrder { workload, work, caches, read_samples, row_size_sql } = order;
        let plan = &self.context.plan;
        let mut stage = workload
            .stages(plan)
            .pop()
            .ok_or_else(|| UsageError("the workload has no stage".to_owned()))?;
        if several {
            self.ui.notice(&format!("stage: {}", stage.name));
        }
        let tables = workload.table_names();
        for sql in workload.settle_sql() {
            control.execute(&sql)?;
        }
        let caches = match caches {
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
            database = database.with_read_looks(settings, read_samples.clone());
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
        drop(probe);
        // Where nobody can say, it is not said.
        let row_bytes = row_size_sql
            .as_ref()
            .and_then(|sql| control.query_value(sql).ok().flatten()?.parse().ok());
        Ok(Measured { work: work.clone(), result, usage, caches, row_bytes })
    }
}

/// Whether a stage is the last, whatever was planned behind it.
fn ended_early(stage: &Measured) -> bool {
    let result = &stage.result;
    result.interrupted || result.failure.is_some() || result.breached.is_some()
}

/// Whether a stage that failed has certainly changed nothing.
fn was_not_sent(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        None | Some(EngineError::Connect { .. } | EngineError::AccessPath { .. })
    )
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
        if matches!(&plan.work, WorkPlan::Rows(rows) if rows.has_server_loop()) {
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

/// The dataset that will be measured: prepared first where it is missing and that is wanted, and
/// locked against changes for as long as `control` lives; or `guard`, a session for nothing else.
fn find_dataset(
    setting: &Setting<'_>,
    wanted: &Wanted<'_>,
    control: &mut Connection,
    guard: Option<&mut Connection>,
) -> Result<Entry> {
    let Setting { target, interrupt, ui, .. } = setting;
    let name = wanted.name;
    let mut registry = Registry::new(control, name);
    let entry = registry.entry()?;
    let complete = entry.as_ref().is_some_and(|entry| entry.state == State::Complete);
    if !complete {
        let Some(make) = wanted.make else {
            return Err(match entry {
                Some(_) => DatasetError::Incomplete(name),
                None => {
                    DatasetError::Missing { workload: name, target: target.conninfo.to_string() }
                }
            }
            .into());
        };
        // What was interrupted is made as it was meant.
        let workload = make(entry.map(|entry| entry.parameters))?;
        let order = Order {
            workload: workload.as_ref(),
            compared: wanted.given.clone(),
            recreate: false,
            connections: None,
        };
        ui.notice(&prepare(target, &order, interrupt, *ui)?);
    }
    // Only what is there under the lock counts: somebody may have replaced it meanwhile.
    match guard {
        Some(guard) => Registry::new(guard, name).lock_in_transaction()?,
        None => registry.lock(false)?,
    }
    let entry = registry
        .entry()?
        .filter(|entry| entry.state == State::Complete)
        .ok_or(DatasetError::Incomplete(name))?;
    let workload = (wanted.workload_on)(entry.parameters.clone())?;
    same_parameters(workload.as_ref(), &entry, &wanted.given)?;
    Ok(entry)
}

/// The parameters of `all` whose options were given.
fn only_given(all: Value, given: &[(&str, bool)]) -> Value {
    let Value::Object(mut parameters) = all else {
        return all;
    };
    parameters.retain(|name, _| given.iter().any(|(given, used)| given == name && *used));
    Value::Object(parameters)
}
