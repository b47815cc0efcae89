//! `riops run cbc`: the steps one after the other, the selects by several sessions, and nothing left
//! behind.

mod home;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use riops::dataset::Registry;
use riops::engine::{SessionError, StageResult, run_once, run_stage};
use riops::host::Interrupt;
use riops::plan::{CbcDataset, CbcPlace, CbcRun, CbcSize, DatasetPlan, RunPlan, Stop, WorkPlan};
use riops::probe::Probe;
use riops::probe::caches::{self, CacheState};
use riops::probe::database::{DatabaseProbe, checkpoints_sql};
use riops::probe::sampler::{OnPoint, ProbePoint, Progress, Sampler};
use riops::record::{
    DatasetRecord, Ending, Measured, MeasuredStatement, Part, Record, RunContext, build_parts,
};
use riops::server::{Connection, ConnectionError, Flavor, Nodes};
use riops::workload::cbc::{self, NAME, Query, StatementPlan, Step, TABLE, VacuumRates};
use riops::workload::check::Check;

use super::ground::Ground;
use super::{Afterwards, Setting, ended_early, perform, plan::cores, tell_caches};
use crate::args::{PictureOptions, Place, RunCbc};
use crate::failure::UsageError;
use crate::ui::{RunProgress, StepProgress, Ui};
use home::{Home, auto_size, require_space};

pub(super) fn run(options: &RunCbc, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let size = options.size.unwrap_or(CbcSize::Gigabytes(CbcRun::default().size_gb));
    let work = CbcRun {
        size_gb: match size {
            CbcSize::Gigabytes(size_gb) => size_gb,
            CbcSize::Auto => CbcRun::default().size_gb,
        },
        auto_size: size == CbcSize::Auto,
        place: match options.place {
            None | Some(Place::Database) => CbcPlace::Database,
            Some(Place::Schema) => CbcPlace::Schema,
        },
        cold: options.cold,
        query_sessions: options
            .query_sessions
            .iter()
            .map(|count| u32::try_from(count.0).unwrap_or(u32::MAX))
            .collect(),
        query_duration_s: options
            .query_duration
            .map_or(CbcRun::default().query_duration_s, |span| span.0.as_secs_f64()),
        keep: options.keep,
    };
    let sessions = work.query_sessions.iter().copied().max().unwrap_or(1).max(1);
    let record = &options.record;
    let plan = RunPlan {
        sessions,
        workers: cores().min(sessions),
        stop: Stop::DurationS(work.query_duration_s),
        warmup_s: 0.0,
        interval_s: record.interval.map_or(1.0, |span| span.0.as_secs_f64()),
        connect_within_s: record.thread_init_timeout.map(|span| span.0.as_secs_f64()),
        label: record.label.clone(),
        tags: record.tag.iter().cloned().collect(),
        work: WorkPlan::Cbc(work),
        ..RunPlan::default()
    };
    plan.validate()?;
    let picture = PictureOptions::default();
    perform(plan, (record, &picture), &options.target, (interrupt, ui), |setting, plan| {
        setting.target.require_own_sessions(interrupt)?;
        measure(setting, plan, options.skip_space_check)
    })
}

fn measure(setting: &Setting<'_>, mut plan: RunPlan, skip_space_check: bool) -> Result<Record> {
    let mut admin = Connection::open(&setting.target.conninfo, setting.interrupt)?;
    let ground = Ground::read(setting, &plan, &mut admin)?;
    if ground.facts.flavor != Flavor::PostgreSql {
        let text = format!(
            "the workload cbc is made of VACUUM, CLUSTER and the like, which {} does not have: it is for PostgreSQL",
            ground.facts.flavor
        );
        return Err(UsageError(text).into());
    }
    let WorkPlan::Cbc(work) = &mut plan.work else {
        return Err(UsageError("the plan is not one of cbc".to_owned()).into());
    };
    let copy_bytes = copy_bytes(&mut admin)?;
    if work.auto_size {
        work.size_gb = auto_size(copy_bytes, &ground)?;
        setting.ui.notice(&format!("size: {} GB, three times the memory", work.size_gb));
    }
    if !skip_space_check {
        require_space(work.size_gb, copy_bytes, &ground, setting.ui, &mut admin)?;
    }
    let work = work.clone();
    admin.execute(&cbc::session_sql())?;
    let mut home = Home::make(setting, work.place, &mut admin)?;
    let begun = home.begin(setting, &work);
    drop(admin);
    let (made, patience) = (home.clone(), plan.clone());
    let drop_it: Afterwards = Box::new(move |target| made.drop(target, &patience));
    setting.afterwards.replace(Some(drop_it));
    let (control, dataset) = begun?;
    let mut cbc = Cbc::open(setting, &ground, &home, (control, dataset), plan.clone(), work)?;
    let All { parts, checks, ending, whole } = cbc.run_all()?;
    if whole && cbc.run.keep {
        setting.afterwards.take();
    }
    Ok(build_parts(cbc.context, parts, checks, ending)?)
}

/// About how many bytes one copy of the settings takes.
fn copy_bytes(connection: &mut Connection) -> Result<u64> {
    let row = connection.query(&cbc::estimate_sql())?.into_iter().next().unwrap_or_default();
    match row.as_slice() {
        [_, Some(bytes)] => Ok(bytes.parse()?),
        _ => Err(anyhow::anyhow!(
            "the role sees no settings in pg_settings: there is nothing to copy"
        )),
    }
}

/// What came of a run.
struct All {
    parts: Vec<Part>,
    checks: Vec<Check>,
    ending: Ending,
    /// Whether every step was done.
    whole: bool,
}

/// A run under way.
struct Cbc<'a> {
    setting: &'a Setting<'a>,
    ground: &'a Ground,
    home: &'a Home,
    run: CbcRun,
    plan: RunPlan,
    context: RunContext,
    dataset: CbcDataset,
    control: Connection,
    work: Connection,
    sampler: Sampler,
}

impl<'a> Cbc<'a> {
    fn open(
        setting: &'a Setting<'a>,
        ground: &'a Ground,
        home: &'a Home,
        (mut control, dataset): (Connection, CbcDataset),
        plan: RunPlan,
        run: CbcRun,
    ) -> Result<Self> {
        let interrupt = setting.interrupt;
        let mut work = Connection::open(&home.conninfo, interrupt)?;
        work.execute(&cbc::session_sql())?;
        // READ_RATE and WRITE_RATE are read from a text; who may not have it in English has none.
        match work.execute("set lc_messages = 'C'") {
            Err(ConnectionError::Server(_)) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        let sampler = Sampler::new(plan.interval()).with_server(
            &home.conninfo,
            checkpoints_sql(&mut control)?,
            ground.local_data().is_some(),
            interrupt,
        )?;
        let promised = Query::BEFORE_CLUSTER.into_iter().chain([Query::IndexedSelectMax]);
        let promised = promised.flat_map(|query| query.accesses(run.size_gb)).collect();
        let parameters = DatasetPlan::Cbc(dataset.clone());
        let record = DatasetRecord { id: home.id().to_owned(), parameters };
        let mut context = ground.context(setting, plan.clone(), (NAME, promised), record, &control);
        context.target.database.clone_from(&home.conninfo.database);
        Ok(Self { setting, ground, home, run, plan, context, dataset, control, work, sampler })
    }

    /// Everything in its order, until something ends it.
    fn run_all(&mut self) -> Result<All> {
        let (mut parts, mut checks, mut ending) = (Vec::new(), Vec::new(), Ending::default());
        let mut steps = Step::ALL.into_iter();
        for step in steps.by_ref() {
            let done = self.step(step, &mut checks).and_then(|part| {
                parts.push(part);
                self.queries_after(step, &mut parts)
            });
            if let Err(error) = done {
                // Without a step there is nothing to keep.
                if parts.is_empty() {
                    return Err(error);
                }
                ending.failure =
                    (!self.setting.interrupt.requested()).then(|| format!("{error:#}"));
            }
            ending.interrupted = self.setting.interrupt.requested();
            let ended = |part: &Part| matches!(part, Part::Loop(measured) if ended_early(measured));
            if ending != Ending::default() || parts.last().is_some_and(ended) {
                break;
            }
        }
        let mut whole = parts.len() >= Step::ALL.len()
            && ending == Ending::default()
            && steps.next().is_none()
            && !matches!(parts.last(), Some(Part::Loop(measured)) if ended_early(measured));
        if whole && self.run.keep {
            let mut registry = Registry::new(&mut self.control, NAME);
            if let Err(error) = registry.complete(self.home.id(), &[]) {
                ending.failure = Some(format!("the table is not kept: {error}"));
                whole = false;
            }
        }
        let parameters = DatasetPlan::Cbc(self.dataset.clone());
        self.context.target.dataset.parameters = parameters;
        Ok(All { parts, checks, ending, whole })
    }

    fn local_processes(&self) -> Vec<i32> {
        let process = self.work.greeting().process;
        self.ground.local_data().map(|_| process).into_iter().collect()
    }

    /// Empties the caches before a select that is meant to find nothing there, where that was asked for.
    fn empty_caches(&mut self, step: Step) -> Result<Option<CacheState>> {
        if !self.run.cold || !step.is_uncached() {
            return Ok(None);
        }
        let tables = [TABLE.to_owned()];
        let state = caches::cool(&mut self.control, &tables, self.ground.local_data())?;
        tell_caches(&state, self.setting.ui);
        Ok(Some(state))
    }

    /// Sets the sampler on a step, and shows what it sees.
    fn watch(&mut self, step: Step) -> Arc<StepProgress> {
        let process = self.work.greeting().process;
        let progress = match step.progress_sql(process, self.dataset.rows()) {
            Some(sql) => Progress::Query(sql),
            None if step == Step::CreateTable => Progress::DatabaseSize,
            None => Progress::Unknown,
        };
        let growth = self.expected_growth(step);
        let shown = Arc::new(StepProgress::new(self.setting.ui, step.key(), growth));
        let show = Arc::clone(&shown);
        let on_point: OnPoint = Arc::new(move |point: &ProbePoint| show.show(point));
        self.sampler.watch(process, progress, Some(on_point));
        shown
    }

    /// One statement, and what its answer proves.
    fn step(&mut self, step: Step, checks: &mut Vec<Check>) -> Result<Part> {
        let state = self.empty_caches(step)?;
        let sql = cbc::sql_of(step, self.run.size_gb);
        let progress = self.watch(step);
        let (tables, local_data) = ([TABLE.to_owned()], self.ground.local_data());
        let processes = self.local_processes();
        let database = DatabaseProbe::new(&mut self.control, &tables)?;
        let mut probe = Probe::machine(local_data)
            .with_database(database)
            .with_sampler(&mut self.sampler)
            .with_processes(processes);
        let result = run_once(&mut self.work, &sql, &mut probe)
            .with_context(|| format!("{} did not end", step.key()))?;
        let usage = probe.usage();
        drop(probe);
        progress.done(result.seconds);
        let json: String = if step.is_select() {
            result.answer.rows.iter().flatten().flatten().map(String::as_str).collect()
        } else {
            String::new()
        };
        let plan = StatementPlan::parse(&json);
        let rows = match (&plan, result.answer.tags.first()) {
            (Some(plan), _) => plan.rows_looked_at(),
            (None, Some(tag)) => rows_of_tag(tag),
            (None, None) => 0,
        };
        checks.extend(cbc::check(step, &self.dataset, rows, plan.as_ref()));
        self.note_sizes()?;
        let finding = step.access().zip(step.judge(&json));
        let vacuum = result.notices.iter().find_map(|notice| VacuumRates::parse(notice));
        Ok(Part::Statement(Box::new(MeasuredStatement {
            name: step.key().to_owned(),
            sql,
            result,
            rows,
            plan,
            vacuum: vacuum.filter(|_| step == Step::Vacuum),
            finding,
            usage,
            caches: state,
        })))
    }

    /// The selects that belong behind a step, by so many sessions at a time.
    fn queries_after(&mut self, step: Step, parts: &mut Vec<Part>) -> Result<()> {
        let queries: &[Query] = match step {
            Step::SelectR => &Query::BEFORE_CLUSTER,
            Step::SelectC2 => &[Query::IndexedSelectMax],
            _ => &[],
        };
        for &query in queries {
            for sessions in self.run.query_sessions.clone() {
                let measured = self.query(query, sessions)?;
                let over = ended_early(&measured);
                parts.push(Part::Loop(Box::new(measured)));
                if over {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn query(&mut self, query: Query, sessions: u32) -> Result<Measured> {
        let Setting { interrupt, ui, .. } = self.setting;
        let plan = RunPlan { sessions, workers: cores().min(sessions), ..self.plan.clone() };
        let stage = query.stage(self.run.size_gb, &plan);
        ui.notice(&format!("stage: {}", stage.name));
        self.sampler.watch_none();
        let tables = [TABLE.to_owned()];
        let database = DatabaseProbe::new(&mut self.control, &tables)?;
        let mut probe = Probe::machine(self.ground.local_data())
            .with_database(database)
            .with_sampler(&mut self.sampler);
        let mut result = run_stage(
            stage,
            query.accesses(self.run.size_gb),
            &plan,
            &Nodes::single(&self.home.conninfo),
            interrupt,
            &mut probe,
            &mut RunProgress::new(*ui, &plan),
        )
        .with_context(|| format!("{} with {sessions} sessions", query.script()))?;
        let usage = probe.usage();
        drop(probe);
        self.give_up(&mut result)?;
        let work = self.plan.work.clone();
        Ok(Measured { work, result, usage, caches: None, row_bytes: None })
    }

    /// A select over a whole table may take longer than anybody waits for at the end of a stage: then it is one
    /// that did not end, and no failure. The server knows nothing of that, and is told to leave it.
    fn give_up(&mut self, result: &mut StageResult) -> Result<()> {
        if !matches!(result.failure, Some(SessionError::Drain(_))) || result.interrupted {
            return Ok(());
        }
        result.failure = None;
        for session in &result.sessions {
            let sql = format!("select pg_terminate_backend({})", session.process);
            self.control.execute(&sql)?;
        }
        Ok(())
    }

    /// By how many bytes the database grows, where that is the step's progress.
    fn expected_growth(&mut self, step: Step) -> Option<(u64, u64)> {
        if step != Step::CreateTable {
            return None;
        }
        let size = self.control.query_value("select pg_database_size(current_database())");
        let before = size.ok().flatten()?.parse().ok()?;
        let growth = self.dataset.copies * copy_bytes(&mut self.control).ok()?;
        Some((before, growth))
    }

    fn note_sizes(&mut self) -> Result<()> {
        let row = self.work.query(&cbc::sizes_sql())?.into_iter().next().unwrap_or_default();
        let mut bytes = row.into_iter().map(|value| value.and_then(|text| text.parse().ok()));
        self.dataset.table_bytes = bytes.next().flatten();
        self.dataset.index_bytes = bytes.next().flatten();
        Ok(())
    }
}

/// The number at the end of a tag: `SELECT 1000`.
fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_ends_with_its_rows_or_has_none() {
        assert_eq!((rows_of_tag("SELECT 451361"), rows_of_tag("VACUUM")), (451_361, 0));
    }
}
