//! Loads: each method fills the table anew, and the table is verified after each.

mod room;

use super::conductor::{Runner, Staged};
use super::error::{Part as _, RunError};
use super::scene::Scene;
use super::settle::{
    changes, checks_or_reason, connect_with_retries, interrupt_after, not_verified,
};
use super::stage::LoopStage;
use crate::dataset::{DatasetError, Entry, Registry};
use crate::engine::SessionError;
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, LoadDataset, LoadRun, Method, PlanError};
use crate::record::{DatasetRecord, Ending, Measured, Part};
use crate::server::{Connection, Server};
use crate::workload::Workload;
use crate::workload::access::Access;
use crate::workload::check::{Check, Ledger};
use crate::workload::load::{Load, NAME};
use room::{missing_file, require_files, require_room};

/// A run whose stages each fill a table of their own.
pub(super) struct Fill {
    run: LoadRun,
    stages: Vec<Load>,
    /// The table that the plan describes, until one was filled.
    table: LoadDataset,
    /// The generation id of the table that was filled last.
    id: String,
}

impl Fill {
    pub(super) fn new(run: &LoadRun) -> Self {
        let table = LoadDataset::default();
        Self { run: run.clone(), stages: Vec::new(), table, id: String::new() }
    }

    /// Refuses everything that can be refused before a table is dropped.
    fn make_room(&self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let sessions = scene.plan.sessions;
        let most = scene.control.query_value("show max_connections")?;
        if let Some(most) = most.filter(|most| most.parse().is_ok_and(|most: u32| sessions > most))
        {
            return Err(RunError::Unsuitable(format!(
                "--sessions {sessions} is more than the server's max_connections, {most}"
            )));
        }
        for load in &self.stages {
            let flavor = load.table().flavor();
            if let Some(option) = load.unsupported(flavor) {
                return Err(DatasetError::Unsupported { option, flavor }.into());
            }
            require_files(&mut scene.control, &load.files(sessions), &scene.server)?;
        }
        let mut registry = Registry::new(&mut scene.control, NAME);
        registry.lock(true)?;
        registry.ensure()?;
        self.install(&mut registry).inspect_err(|_| {
            // What was made for this load alone.
            let _ = registry.drop_registry_if_empty();
        })
    }

    fn install(&self, registry: &mut Registry<'_>) -> Result<(), RunError> {
        require_room(registry, &self.run, &self.table)?;
        for routines in self.stages.iter().filter_map(Workload::routines) {
            registry
                .install(&routines)
                .part(|| "cannot make the procedure in the server".to_owned())?;
        }
        Ok(())
    }
}

impl Runner for Fill {
    fn begin(&mut self, scene: &mut Scene<'_>) -> Result<usize, RunError> {
        let wanted = scene.plan.prepared()?;
        let table: Option<&LoadDataset> = wanted.as_ref().and_then(DatasetPlan::get);
        self.table = table
            .cloned()
            .ok_or_else(|| PlanError("the plan of a load has no table".to_owned()))?;
        let flavor = scene.environment.facts.flavor;
        let stages = self.run.stages().into_iter().map(|run| {
            let table = LoadDataset {
                contents: run.method.contents(),
                non_transactional: run.non_transactional,
                ..self.table.clone()
            };
            Load::new(table, run).on(flavor)
        });
        self.stages = stages.collect();
        self.make_room(scene)?;
        Ok(self.stages.len())
    }

    fn stage(&mut self, number: usize, scene: &mut Scene<'_>) -> Result<Staged, RunError> {
        let several = self.stages.len() > 1;
        let load =
            self.stages.get(number).cloned().ok_or_else(|| {
                RunError::Unsuitable(format!("the load has no stage {}", number + 1))
            })?;
        let entry = begin_table(scene, &load)?;
        let stage = LoopStage { workload: Box::new(load.clone()), work: load.run().clone().into() };
        let mut measured = scene.run_loop(&stage, several).inspect_err(|error| {
            if error.came_before_any_statement() {
                drop_empty(scene, &entry);
            }
        })?;
        // The record is about the last table that was filled.
        self.table = load.table().dataset().clone();
        self.id.clone_from(&entry.id);
        explain(&mut measured, &load, &scene.server);
        let mut checks = settle(scene, &load, &entry, &mut measured);
        let all_held = checks.iter().all(|check| check.held);
        if several {
            let method = load.run().method.as_str();
            for check in &mut checks {
                check.name = format!("{method}: {}", check.name);
            }
        }
        let part = Part::Loop(Box::new(measured));
        let is_last = part.ended_early() || !all_held;
        Ok(Staged { part, checks, is_last })
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        Some(DatasetRecord { id: self.id.clone(), parameters: self.table.clone().into() })
    }

    fn accesses(&self) -> Vec<Access> {
        self.stages.iter().flat_map(Workload::accesses).collect()
    }
}

/// Makes the empty table, registered as being loaded.
fn begin_table(scene: &mut Scene<'_>, load: &Load) -> Result<Entry, RunError> {
    let mut registry = Registry::new(&mut scene.control, NAME);
    // What the stage before has loaded was measured and verified.
    registry.drop_dataset()?;
    let dataset = load.dataset(scene.environment.facts.flavor);
    let id = registry.begin(&dataset).part(|| "cannot make the table".to_owned())?;
    let entry = registry.entry()?.filter(|entry| entry.id == id);
    let entry = entry.ok_or(DatasetError::InUse(NAME))?;
    registry
        .begin_run(&scene.id.to_string(), &entry.id)
        .part(|| "cannot enter the load into riops.run".to_owned())?;
    Ok(entry)
}

/// Drops a table into which nothing came, and its entry. Where the server does not answer, the
/// registry's "loading" has to be enough.
fn drop_empty(scene: &Scene<'_>, entry: &Entry) {
    let _ = connect_with_retries(&scene.server, &scene.plan)
        .map(|mut connection| Registry::new(&mut connection, NAME).drop_unfinished(&entry.id));
}

/// After a load: the ledger, the end of the table, the verification, and only then the word "complete". What
/// a load has left that did not end stays as it is, for `verify`.
fn settle(
    scene: &mut Scene<'_>,
    load: &Load,
    entry: &Entry,
    measured: &mut Measured,
) -> Vec<Check> {
    let result = &mut measured.result;
    let changed = changes(scene.plan.work.spec(), result);
    let interrupt = interrupt_after(result.interrupted, scene.interrupt);
    let whole = result.failure.is_none() && !result.interrupted && result.wrong_replies == 0;
    let id = scene.id.to_string();
    if result.failure.is_some() {
        scene.observer.notice("noting what was acknowledged, as soon as the server answers");
    }
    let settled = (|| -> Result<Vec<Check>, RunError> {
        let mut connection = connect_with_retries(&scene.server, &scene.plan)?;
        Registry::new(&mut connection, NAME).end_run(&id, &changed)?;
        if whole { complete(scene, load, entry, &interrupt) } else { Ok(Vec::new()) }
    })();
    if settled.is_err() && interrupt.requested() && whole {
        // The load was over, and whether the table is whole is unknown.
        result.interrupted = true;
        return vec![not_verified("interrupted")];
    }
    let mut ending = Ending::default();
    let checks = checks_or_reason(settled, &interrupt, result, &mut ending);
    result.interrupted |= ending.interrupted;
    checks
}

/// Finishes and verifies a table that has all its rows, and registers it as complete.
fn complete(
    scene: &mut Scene<'_>,
    load: &Load,
    entry: &Entry,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, RunError> {
    scene.observer.notice(if scene.plan.verify {
        "statistics of the table, then reading it to verify it"
    } else {
        "statistics of the table"
    });
    let mut connection = Connection::open(&scene.server.conninfo, interrupt)?;
    connection.execute(&load.table().finish_sql())?;
    let mut registry = Registry::new(&mut connection, NAME);
    let (mut baseline, mut checks) = (Vec::new(), Vec::new());
    if scene.plan.verify {
        baseline = registry.contents(&load.contents_sql())?;
        // Texts that riops does not know can only be compared with themselves, which shows nothing yet.
        checks = load.checks(&baseline, &[], &Ledger::default());
    }
    if checks.iter().all(|check| check.held) {
        registry.complete(&entry.id, &baseline)?;
        // Its rows are the dataset itself now, and no change of it.
        registry.forget_run(&scene.id.to_string())?;
    }
    Ok(checks)
}

/// Adds to an error of a load what its user can do about it.
fn explain(measured: &mut Measured, load: &Load, server: &Server) {
    let Some(SessionError::Server(error)) = &mut measured.result.failure else {
        return;
    };
    let table = load.table().dataset().table_name.clone();
    let hint = match error.sqlstate.as_str() {
        "23505" if load.run().method == Method::CopyFile => format!(
            "an id is in the files twice, or another client writes into riops.{table}: write the files again with riops generate csv --force, and load them with --drop"
        ),
        "23505" => format!(
            "another client writes into riops.{table}: load it again with --drop, and keep others away"
        ),
        // It disappeared between the check and the load.
        "58P01" => missing_file("of that name", server).to_string(),
        _ => return,
    };
    error.hint.get_or_insert(hint);
}
