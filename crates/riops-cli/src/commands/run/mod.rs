//! `riops run`: what is common to all workloads, from the target to the printed record.

mod adopt;
mod cbc;
mod dataset;
mod ground;
mod load;
mod nodes;
mod oltp;
mod picture;
mod plan;
mod point;
mod room;
mod rows;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use jiff::Timestamp;
use riops::dataset::Changes;
use riops::dataset::{DatasetError, Entry, Registry};
use riops::engine::{EngineError, SessionError, run_stage};
use riops::host::Interrupt;
use riops::plan::{Caches, DatasetPlan, RunPlan, WorkPlan};
use riops::probe::caches::CacheState;
use riops::probe::database::DatabaseProbe;
use riops::probe::sampler::Sampler;
use riops::probe::{Probe, caches};
use riops::record::{DatasetRecord, Measured, Record, RunContext, Status, build};
use riops::report;
use riops::server::facts::ServerFacts;
use riops::server::{Connection, Flavor, Nodes};
use riops::store::{SqliteStore, default_path};
use riops::workload::Workload;
use riops::workload::check::Check;
use uuid::Uuid;

use super::settle::{settle, settle_open_runs};
use crate::args::{PictureOptions, RecordOptions, Run as RunCommand, RunOutput, TargetOptions};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID, UsageError};
use crate::target::Target;
use crate::ui::{RunProgress, Ui};
pub(crate) use dataset::Found;
use dataset::{Wanted, find_dataset, only_given};
use ground::Ground;
use nodes::find_nodes;
use picture::Graph;
pub(crate) use picture::drawn;
pub(crate) use plan::allow_sessions;

/// Measures, keeps the record, prints it.
pub(crate) fn run(command: &RunCommand, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match command {
        RunCommand::Rows(options) => rows::run(options, interrupt, ui),
        RunCommand::Load(options) => load::run(options, interrupt, ui),
        RunCommand::Point(options) => point::run(options, interrupt, ui),
        RunCommand::Oltp(options) => oltp::run(options, interrupt, ui),
        RunCommand::Cbc(options) => cbc::run(options, interrupt, ui),
    }
}

/// All that is the same for every workload once its options are read.
struct Setting<'a> {
    target: Target,
    id: Uuid,
    started_at: Timestamp,
    store: Option<SqliteStore>,
    /// Where runs are kept, whether this one is or not.
    store_path: PathBuf,
    /// What is to be done when the result is safe, or there is none.
    afterwards: RefCell<Option<Afterwards>>,
    interrupt: &'a Interrupt,
    ui: Ui,
}

/// What a run leaves to be done.
type Afterwards = Box<dyn FnOnce(&Target)>;

/// Opens store and target, measures, keeps the record, prints it.
fn perform(
    plan: RunPlan,
    (options, picture): (&RecordOptions, &PictureOptions),
    target: &TargetOptions,
    (interrupt, ui): (&Interrupt, Ui),
    measure: impl FnOnce(&Setting<'_>, RunPlan) -> Result<Record>,
) -> Result<ExitCode> {
    require_form(&plan, options.output.output)?;
    // What cannot be written is better known before the run than after it.
    let graph = Graph::open(picture)?;
    let store_path = options.store.store.clone().unwrap_or_else(default_path);
    let store = if options.no_store { None } else { Some(SqliteStore::open(&store_path)?) };
    allow_sessions(plan.sessions, plan.workers)?;
    let id = Uuid::now_v7();
    let mut target = Target::open(target, interrupt, ui)?;
    target.await_answer(options.thread_init_timeout, interrupt)?;
    target.name_sessions(&id);
    target.announce(ui);
    let setting = Setting {
        target,
        id,
        started_at: Timestamp::now(),
        store,
        store_path,
        afterwards: RefCell::new(None),
        interrupt,
        ui,
    };
    let measured = measure(&setting, plan);
    let Setting { target, store, afterwards, .. } = setting;
    let afterwards = || {
        if let Some(todo) = afterwards.take() {
            todo(&target);
        }
    };
    let record = measured.inspect_err(|_| afterwards())?;
    let (kept, not_kept) = match store.map(|store| (store.save(&record), store)) {
        None => ("no (--no-store)".to_owned(), None),
        Some((Ok(()), store)) => (format!("{} in {}", record.id, store.path().display()), None),
        // The result is worth more than the place where it was to be kept.
        Some((Err(error), _)) => (format!("NO: {error}"), Some(error)),
    };
    let told = printed(&record, &kept, options.output.output, picture)
        .and_then(|text| crate::ui::print(&text));
    tell_beside(&record, options.output.output);
    let drawn = graph.map_or(Ok(()), |graph| graph.draw(&record, ui));
    // Only now: nothing that happens to the server can cost the result any more.
    afterwards();
    target.close()?;
    told?;
    if let Some(error) = not_kept {
        return Err(anyhow::Error::from(error).context("the run was not kept"));
    }
    match (exit_code(&record), drawn) {
        (ExitCode::SUCCESS, Err(error)) => Err(error),
        // What became of the run matters more than its picture.
        (code, drawn) => {
            if let Err(error) = drawn {
                ui.notice(&format!("{error:#}"));
            }
            Ok(code)
        }
    }
}

/// Fails where the form that was asked for has nothing to say about such a run.
fn require_form(plan: &RunPlan, output: RunOutput) -> Result<()> {
    if output == RunOutput::Pgio && !matches!(plan.work, WorkPlan::Rows(_)) {
        let text = "--output pgio goes with the workload rows: it is PGIO's report of such a run";
        return Err(UsageError(text.to_owned()).into());
    }
    if output == RunOutput::Sysbench && !matches!(plan.work, WorkPlan::Oltp(_)) {
        let text =
            "--output sysbench goes with the workload oltp: it is sysbench's report of such a run";
        return Err(UsageError(text.to_owned()).into());
    }
    if output == RunOutput::Cbc && !matches!(plan.work, WorkPlan::Cbc(_)) {
        let text = "--output cbc goes with the workload cbc: it is its collector's lines";
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
        RunOutput::Sysbench => report::sysbench_text(record) + &histogram,
        RunOutput::Cbc => report::cbc_text(record),
        RunOutput::Pgio => {
            report::run_text(record, kept) + &histogram + "\n" + &report::pgio_text(record)
        }
    })
}

/// Says on standard error what the form that was asked for has no place for.
pub(crate) fn tell_beside(record: &Record, output: RunOutput) {
    if matches!(output, RunOutput::Sysbench | RunOutput::Cbc) {
        for reason in &record.verdict.reasons {
            crate::ui::error(&format!("NOT VALID: {reason}"));
        }
        for found in record.thresholds.iter().filter(|found| !found.held) {
            crate::ui::error(&format!("threshold breached: {}", found.threshold));
        }
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
    pub(super) nodes: Nodes,
    by_transaction: bool,
    local_data: Option<&'a Path>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) ui: Ui,
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

/// Runs stages on a dataset that is there, and proves the data where they were changed.
fn measure(
    setting: &Setting<'_>,
    plan: RunPlan,
    wanted: &Wanted<'_>,
    work: impl FnOnce(&RunPlan, &Entry, &ServerFacts) -> Result<(DatasetPlan, Vec<StageOrder>)>,
    // Told whether it has a session of its own, whose locks can be relied on.
    prepared: impl FnOnce(&mut Registry<'_>, bool) -> Result<()>,
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
    let nodes = find_nodes(setting, &plan, &ground, &mut control)?;
    let mut entry = find_dataset(setting, wanted, &mut control, guard.as_mut())?;
    let (parameters, orders) = work(&plan, &entry, &ground.facts)?;
    let first = orders.first().ok_or_else(|| UsageError("the run has no stage".to_owned()))?;
    if let Some(option) = first.workload.unsupported(ground.facts.flavor) {
        return Err(DatasetError::Unsupported { option, flavor: ground.facts.flavor }.into());
    }
    let (tables, adopted) = (first.workload.table_names(), first.workload.is_adopted());
    let queries = first.workload.contents_sql();
    let promised = (first.workload.name(), first.workload.accesses());
    let dataset = DatasetRecord { id: entry.id.clone(), parameters };
    let context = ground.context(setting, plan, promised, dataset, &control);
    let mut registry = Registry::new(&mut control, wanted.name);
    registry.require(&tables, adopted)?;
    prepared(&mut registry, !ground.by_transaction())?;
    if context.plan.work.writes() {
        settle_open_runs(&mut registry, &entry, setting.store.as_ref())?;
        let counts_effects = matches!(context.plan.work, WorkPlan::Oltp(_));
        // On YugabyteDB there may be no locks that would show another riops at work.
        if counts_effects
            && context.target.flavor == Flavor::PostgreSql
            && !ground.by_transaction()
            && !registry.open_runs(&entry.id)?.is_empty()
            && registry.count_anew(&mut entry, &queries)?
        {
            ui.notice("a run before this one did not report: what it has changed is not known, and the tables are counted anew");
        }
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
        nodes,
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
                        |mut fresh| {
                            let mut registry = Registry::new(&mut fresh, self.dataset_name);
                            registry.end_run(&id, &Changes::default())
                        },
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
        if *caches != Caches::AsFound && self.nodes.allowed().len() > 1 {
            let text = "--cold and --warm know the caches of one server: name one host, or say --spread off";
            return Err(UsageError(text.to_owned()).into());
        }
        let caches = match caches {
            Caches::AsFound => None,
            Caches::Cold => Some(caches::cool(control, &tables, self.local_data)?),
            Caches::Warm => Some(caches::warm(control, &tables)?),
        };
        if let Some(state) = &caches {
            tell_caches(state, self.ui);
        }
        let mut database = DatabaseProbe::new(control, &tables)?;
        let several_nodes = self.nodes.allowed().len() > 1;
        if self.by_transaction {
            // What a session sets would stay behind in the pool, for everybody.
            stage.sessions.iter_mut().for_each(|session| session.settings.clear());
            stage.explain_by_name = false;
        } else {
            let settings =
                stage.sessions.first().map(|session| session.settings.clone()).unwrap_or_default();
            database = database.with_read_looks(settings, read_samples.clone());
        }
        // What one server of several has counted says nothing of all.
        let mut probe = Probe::machine(self.local_data);
        if !several_nodes {
            probe = probe.with_database(database);
        }
        let mut sampler = Sampler::new(plan.interval());
        let mut probe = probe
            .with_locks(nodes::lock_sampler(self, work))
            .with_cluster(nodes::cluster_probe(self))
            .with_sampler(&mut sampler);
        let mut progress = RunProgress::new(self.ui, plan);
        let result = run_stage(
            stage,
            workload.accesses(),
            plan,
            &self.nodes,
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

/// Warns where the caches are not as they were wanted.
fn tell_caches(state: &CacheState, ui: Ui) {
    if !state.reached {
        ui.notice(&format!(
            "warning: the caches are not as {} as wanted: shared buffers: {}; page cache: {}",
            state.wanted, state.shared_buffers, state.page_cache
        ));
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
