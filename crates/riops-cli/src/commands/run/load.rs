//! `riops run load`: each method fills the table anew, and the table is proved after each.

use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::engine::SessionError;
use riops::plan::{Caches, DatasetPlan, LoadDataset, LoadRun, Method, RunPlan, Stop, WorkPlan};
use riops::store::{DatasetRecord, Measured, Record, RunContext, build};
use riops::target::{Connection, Interrupt};
use riops::workload::Workload;
use riops::workload::dataset::{DatasetError, Entry, Registry, State};
use riops::workload::load::{Load, LoadTable, NAME};
use riops::workload::verify::Check;

use super::super::prepare::overlaid_table;
use super::super::settle::{open_patiently, settle_load};
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
    perform(plan, &options.run, &options.target, (interrupt, ui), |setting, plan| {
        setting.target.require_own_sessions(interrupt)?;
        measure(setting, plan, &work, &dataset, options.show_rowsize)
    })
}

/// One stage of a load: what it is to do, and the table that it is to fill.
struct Loading {
    load: Load,
    order: StageOrder,
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
    let loading = |run: LoadRun| {
        let dataset = LoadDataset {
            contents: run.method.contents(),
            non_transactional: run.non_transactional,
            ..dataset.clone()
        };
        let load = Load::new(dataset, run.clone()).on(ground.facts.flavour);
        let order = StageOrder {
            workload: Box::new(load.clone()),
            work: WorkPlan::Load(run),
            caches: Caches::AsFound,
            read_samples: Vec::new(),
            row_size_sql: show_rowsize.then(|| load.table().row_size_sql()),
        };
        Loading { load, order }
    };
    let loadings: Vec<Loading> = work.stages().into_iter().map(loading).collect();
    for Loading { load, .. } in &loadings {
        if let Some(option) = load.unsupported(ground.facts.flavour) {
            return Err(DatasetError::Unsupported { option, flavour: ground.facts.flavour }.into());
        }
        require_files(&mut control, &load.files(plan.sessions), setting)?;
    }
    let promised = loadings.iter().flat_map(|loading| loading.load.accesses()).collect();
    let parameters = DatasetPlan::Load(dataset.clone());
    let nothing_yet = DatasetRecord { id: String::new(), parameters };
    let mut context = ground.context(setting, plan, (NAME, promised), nothing_yet, &control);
    let mut registry = Registry::new(&mut control, NAME);
    registry.lock(true)?;
    registry.ensure()?;
    require_room(&mut registry, work, dataset)?;
    let mut all = All::default();
    for (position, loading) in loadings.iter().enumerate() {
        let entry = begin(&mut control, loading, &context)?;
        context.target.dataset = DatasetRecord {
            id: entry.id.clone(),
            parameters: DatasetPlan::Load(loading.load.table().dataset().clone()),
        };
        let run = Run {
            target: &setting.target,
            dataset_name: NAME,
            entry: &entry,
            context: &context,
            by_transaction: false,
            local_data: ground.local_data(),
            interrupt: setting.interrupt,
            ui: setting.ui,
        };
        let last = position + 1 == loadings.len();
        match run.stage(&loading.order, loadings.len() > 1, &mut control) {
            Ok(mut measured) => {
                explain(&mut measured, loading, setting);
                let checks = settle_load(&run, &loading.load, &mut measured);
                let ended = ended_early(&measured) || checks.iter().any(|check| !check.held);
                all.add(
                    measured,
                    checks,
                    (!last || position > 0).then_some(loading.load.run().method),
                );
                if ended {
                    break;
                }
            }
            Err(error) => {
                all.without_a_stage(&run, error)?;
                break;
            }
        }
    }
    Ok(build(context, all.measured, all.checks)?)
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

    /// A stage that gave no result: nothing of it is left where nothing was sent, and the stages
    /// before it are kept, with the reason.
    fn without_a_stage(&mut self, run: &Run<'_>, error: anyhow::Error) -> Result<()> {
        if was_not_sent(&error) {
            drop_empty(run);
        }
        match self.measured.last_mut() {
            Some(last) if run.interrupt.requested() => last.result.interrupted = true,
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
    let _ = open_patiently(run.target, &run.context.plan).map(|mut connection| {
        let mut registry = Registry::new(&mut connection, NAME);
        registry.drop_dataset().and_then(|_| registry.drop_registry_if_empty())
    });
}

/// Fails where a table that must not be lost is in the way.
fn require_room(registry: &mut Registry<'_>, work: &LoadRun, dataset: &LoadDataset) -> Result<()> {
    let name = &dataset.table_name;
    if registry.owns(name)? == Some(false) {
        registry.drop_registry_if_empty()?;
        return Err(DatasetError::Foreign(name.clone()).into());
    }
    let Some(entry) = registry.entry()? else {
        return Ok(());
    };
    let found: LoadDataset = super::super::prepare::load_dataset_of(entry.parameters)?;
    let table = &found.table_name;
    let has_rows = registry.owns(table)? == Some(true)
        && registry
            .connection()
            .query_value(&format!("select 1 from riops.{table} limit 1"))?
            .is_some();
    if work.drop || !has_rows {
        return Ok(());
    }
    let what = match entry.state {
        State::Complete => format!("holds {} rows", riops::report::count(found.rows)),
        State::Loading => "holds what an interrupted load has left".to_owned(),
    };
    Err(anyhow::anyhow!(
        "the table riops.{table} {what}, and a load of the same ids would only find duplicate keys: drop it first with --drop (riops verify load tells what is there)"
    ))
}

/// Makes the empty table, registered as being loaded.
fn begin(control: &mut Connection, loading: &Loading, context: &RunContext) -> Result<Entry> {
    let mut registry = Registry::new(control, NAME);
    // What the stage before has loaded was measured and proved.
    registry.drop_dataset()?;
    let dataset = loading.load.dataset(context.target.flavour);
    registry.begin(&dataset).context("the table could not be made")?;
    let entry = registry.entry()?.ok_or(DatasetError::Incomplete(NAME))?;
    if let Some(routines) = loading.load.routines() {
        registry.install(&routines).context("the procedure could not be made in the server")?;
    }
    registry
        .begin_run(&context.id.to_string(), &entry.id)
        .context("the load could not be noted in riops.run")?;
    Ok(entry)
}

/// Fails where the server cannot read the files, before anything is dropped.
fn require_files(control: &mut Connection, files: &[String], setting: &Setting<'_>) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let may = control.query_value(&LoadTable::file_rights_sql())?;
    if may.as_deref() != Some("t") {
        let role = control.query_value("select quote_ident(current_user)")?.unwrap_or_default();
        return Err(anyhow::anyhow!(
            "the role {role} may not read files of the server, as --method copy-file does: a superuser can allow it with: grant pg_read_server_files to {role}"
        ));
    }
    for file in files {
        let found = control.query_with("select size from pg_stat_file($1, true)", &[Some(file)]);
        // Only some roles may look; the others hear of it from COPY.
        if found.is_ok_and(|rows| rows.into_iter().flatten().flatten().next().is_none()) {
            return Err(missing_file(file, setting));
        }
    }
    Ok(())
}

fn missing_file(file: &str, setting: &Setting<'_>) -> anyhow::Error {
    let place = if setting.target.is_local() { "" } else { " on the server's machine" };
    anyhow::anyhow!(
        "the server has no file {file}: write it{place} with riops generate csv, with the same --rows, --sessions and --field-length, and name its folder with --dir"
    )
}

/// Adds to an error of a load what its user can do about it.
fn explain(measured: &mut Measured, loading: &Loading, setting: &Setting<'_>) {
    let Some(SessionError::Server(error)) = &mut measured.result.failure else {
        return;
    };
    let table = loading.load.table().dataset().table_name.clone();
    let hint = match error.sqlstate.as_str() {
        "23505" => format!(
            "somebody else writes into riops.{table}: load it again with --drop, and keep others away"
        ),
        "58P01" => format!("{:#}", missing_file("of that name", setting)),
        "42501" if loading.load.run().method == Method::CopyFile => {
            "a superuser can allow it with: grant pg_read_server_files to the role".to_owned()
        }
        _ => return,
    };
    error.hint.get_or_insert(hint);
}
