//! `riops run load`: each method fills the table anew, and the table is proved after each.

use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::dataset::{DatasetError, Entry, Registry};
use riops::engine::SessionError;
use riops::host::Interrupt;
use riops::plan::{Caches, DatasetPlan, LoadDataset, LoadRun, Method, RunPlan, Stop, WorkPlan};
use riops::record::{DatasetRecord, Measured, Record, RunContext, build};
use riops::server::Connection;
use riops::workload::Workload;
use riops::workload::check::Check;
use riops::workload::load::{Load, NAME};

use super::super::prepare::overlaid_table;
use super::super::settle::{open_patiently, settle_load};
use super::nodes::find_nodes;
use super::room::{missing_file, require_files, require_room};
use super::{Ground, Run, Setting, StageOrder, ended_early, perform, plan, was_not_sent};
use crate::args::RunLoad;
use crate::failure::UsageError;
use crate::ui::Ui;

pub(super) fn run(options: &RunLoad, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let defaults = LoadRun::default();
    let methods = options.method.clone();
    let work = LoadRun {
        method: methods.first().copied().unwrap_or_default(),
        methods: if methods.len() > 1 { methods } else { Vec::new() },
        batch_size: options.batch_size.map_or(defaults.batch_size, |count| count.0),
        dir: options.dir.clone().unwrap_or(defaults.dir),
        non_transactional: options.non_transactional,
        drop: options.drop,
    };
    let dataset = LoadDataset {
        field_length: options.field_length.unwrap_or(LoadDataset::default().field_length),
        ..overlaid_table(LoadDataset::default(), &options.table)
    };
    dataset.validate()?;
    let stop = Stop::Rows(dataset.rows);
    let plan = plan::common(&options.run, WorkPlan::Load(work.clone()), stop)?;
    plan.validate()?;
    work.validate_for(&dataset, plan.protocol)?;
    if options.dir.is_some() && !work.stages().iter().any(|stage| stage.method == Method::CopyFile)
    {
        let text = "--dir goes with --method copy-file: the other methods read no files";
        return Err(UsageError(text.to_owned()).into());
    }
    let dataset = LoadDataset { seed: plan.seed, ..dataset };
    perform(plan, options.run.kept(), &options.target, (interrupt, ui), |setting, plan| {
        setting.target.require_own_sessions(interrupt)?;
        measure(setting, plan, &work, &dataset, options.show_rowsize)
    })
}

/// One stage of a load: what it is to do, and the table that it is to fill.
struct Loading {
    load: Load,
    order: StageOrder,
}

impl Loading {
    fn new(load: Load, show_rowsize: bool) -> Self {
        let order = StageOrder {
            workload: Box::new(load.clone()),
            work: WorkPlan::Load(load.run().clone()),
            caches: Caches::AsFound,
            read_samples: Vec::new(),
            row_size_sql: show_rowsize.then(|| load.table().row_size_sql()),
        };
        Self { load, order }
    }

    fn method(&self) -> Method {
        self.load.run().method
    }
}

fn measure(
    setting: &Setting<'_>,
    plan: RunPlan,
    work: &LoadRun,
    dataset: &LoadDataset,
    show_rowsize: bool,
) -> Result<Record> {
    let mut control = Connection::open(&setting.target.conninfo, setting.interrupt)?;
    let ground = Ground::read(setting, &plan, &mut control)?;
    let nodes = find_nodes(setting, &plan, &ground, &mut control)?;
    let loading = |run: LoadRun| {
        let dataset = LoadDataset {
            contents: run.method.contents(),
            non_transactional: run.non_transactional,
            ..dataset.clone()
        };
        Loading::new(Load::new(dataset, run).on(ground.facts.flavor), show_rowsize)
    };
    let loadings: Vec<Loading> = work.stages().into_iter().map(loading).collect();
    make_room(setting, &plan, &loadings, work, &mut control)?;
    let promised = loadings.iter().flat_map(|loading| loading.load.accesses()).collect();
    let parameters = DatasetPlan::Load(dataset.clone());
    let nothing_yet = DatasetRecord { id: String::new(), parameters };
    let mut context = ground.context(setting, plan, (NAME, promised), nothing_yet, &control);
    let mut all = All::default();
    for loading in &loadings {
        let entry = match begin(&mut control, loading, &context) {
            Ok(entry) => entry,
            Err(error) => {
                all.without_a_stage(setting, error)?;
                break;
            }
        };
        let run = Run {
            target: &setting.target,
            dataset_name: NAME,
            entry: &entry,
            context: &context,
            nodes: nodes.clone(),
            by_transaction: false,
            local_data: ground.local_data(),
            interrupt: setting.interrupt,
            ui: setting.ui,
        };
        match run.stage(&loading.order, loadings.len() > 1, &mut control) {
            Ok(mut measured) => {
                explain(&mut measured, loading, setting);
                let checks = settle_load(&run, &loading.load, &mut measured);
                let ended = ended_early(&measured) || checks.iter().any(|check| !check.held);
                all.add(measured, checks, (loadings.len() > 1).then(|| loading.method()));
                // The record speaks of the last table that was filled.
                let parameters = DatasetPlan::Load(loading.load.table().dataset().clone());
                context.target.dataset = DatasetRecord { id: entry.id, parameters };
                if ended {
                    break;
                }
            }
            Err(error) => {
                if was_not_sent(&error) {
                    drop_empty(&run);
                }
                all.without_a_stage(setting, error)?;
                break;
            }
        }
    }
    Ok(build(context, all.measured, all.checks)?)
}

/// Everything that can be refused before a table is dropped.
fn make_room(
    setting: &Setting<'_>,
    plan: &RunPlan,
    loadings: &[Loading],
    work: &LoadRun,
    control: &mut Connection,
) -> Result<()> {
    let most = control.query_value("show max_connections")?;
    if let Some(most) = most.filter(|most| most.parse().is_ok_and(|most: u32| plan.sessions > most))
    {
        let text = format!(
            "--sessions {} is more than the server's max_connections, {most}",
            plan.sessions
        );
        return Err(UsageError(text).into());
    }
    for Loading { load, .. } in loadings {
        let flavor = load.table().flavor();
        if let Some(option) = load.unsupported(flavor) {
            return Err(DatasetError::Unsupported { option, flavor }.into());
        }
        require_files(control, &load.files(plan.sessions), setting)?;
    }
    let mut registry = Registry::new(control, NAME);
    registry.lock(true)?;
    registry.ensure()?;
    let mut install = || -> Result<()> {
        if let Some(first) = loadings.first() {
            require_room(&mut registry, work, first.load.table().dataset())?;
        }
        for routines in loadings.iter().filter_map(|loading| loading.load.routines()) {
            registry.install(&routines).context("the procedure could not be made in the server")?;
        }
        Ok(())
    };
    install().inspect_err(|_| {
        // What was made for this load alone.
        let _ = registry.drop_registry_if_empty();
    })
}

/// What came of all stages.
#[derive(Default)]
struct All {
    measured: Vec<Measured>,
    checks: Vec<Check>,
}

impl All {
    /// The checks of one of several stages say which.
    fn add(&mut self, measured: Measured, checks: Vec<Check>, method: Option<Method>) {
        self.measured.push(measured);
        self.checks.extend(checks.into_iter().map(|check| match method {
            Some(method) => Check { name: format!("{}: {}", method.as_str(), check.name), ..check },
            None => check,
        }));
    }

    /// A stage that gave no result: those before it are kept, with the reason.
    fn without_a_stage(&mut self, setting: &Setting<'_>, error: anyhow::Error) -> Result<()> {
        match self.measured.last_mut() {
            Some(last) if setting.interrupt.requested() => last.result.interrupted = true,
            Some(last) => {
                last.result.failure = Some(SessionError::NextStage(format!("{error:#}")));
            }
            None => return Err(error),
        }
        Ok(())
    }
}

/// Drops a table into which nothing came, and its entry. Where the server does not answer, the
/// registry's "loading" has to be enough.
fn drop_empty(run: &Run<'_>) {
    let _ = open_patiently(run.target, &run.context.plan)
        .map(|mut connection| Registry::new(&mut connection, NAME).drop_unfinished(&run.entry.id));
}

/// Makes the empty table, registered as being loaded.
fn begin(control: &mut Connection, loading: &Loading, context: &RunContext) -> Result<Entry> {
    let mut registry = Registry::new(control, NAME);
    // What the stage before has loaded was measured and proved.
    registry.drop_dataset()?;
    let dataset = loading.load.dataset(context.target.flavor);
    let id = registry.begin(&dataset).context("the table could not be made")?;
    let entry = registry.entry()?.filter(|entry| entry.id == id);
    let entry = entry.ok_or(DatasetError::InUse(NAME))?;
    registry
        .begin_run(&context.id.to_string(), &entry.id)
        .context("the load could not be noted in riops.run")?;
    Ok(entry)
}

/// Adds to an error of a load what its user can do about it.
fn explain(measured: &mut Measured, loading: &Loading, setting: &Setting<'_>) {
    let Some(SessionError::Server(error)) = &mut measured.result.failure else {
        return;
    };
    let table = loading.load.table().dataset().table_name.clone();
    let hint = match error.sqlstate.as_str() {
        "23505" if loading.method() == Method::CopyFile => format!(
            "an id is in the files twice, or somebody else writes into riops.{table}: write the files again with riops generate csv --force, and load them with --drop"
        ),
        "23505" => format!(
            "somebody else writes into riops.{table}: load it again with --drop, and keep others away"
        ),
        // It went between the look and the load.
        "58P01" => format!("{:#}", missing_file("of that name", setting)),
        _ => return,
    };
    error.hint.get_or_insert(hint);
}
