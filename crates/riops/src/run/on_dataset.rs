//! Runs on a dataset that was prepared, or on none.

use super::conductor::{Runner, Staged};
use super::error::{Part as _, RunError};
use super::find;
use super::scene::Scene;
use super::settle::{settle, settle_open_runs};
use super::stage::LoopStage;
use crate::dataset::{Changes, DatasetError, Entry, Registry};
use crate::host::Interrupt;
use crate::plan::{DatasetPlan, Spec, WorkPlan};
use crate::record::{DatasetRecord, Ending, Part};
use crate::server::{Connection, Flavor};
use crate::workload::access::Access;
use crate::workload::check::Check;
use crate::workload::{Build, BuildFor};

/// A run whose stages are loops of sessions.
pub(super) struct OnDataset<T> {
    run: T,
    stages: Vec<LoopStage>,
    found: Option<Found>,
    /// Holds the lock on the dataset where the control connection cannot.
    guard: Option<Connection>,
    /// Whether a stage may have changed rows without saying how many.
    unreported: bool,
}

/// The dataset of the run.
struct Found {
    name: &'static str,
    entry: Entry,
    plan: DatasetPlan,
}

impl<T: Build + Spec + Clone + Into<WorkPlan>> OnDataset<T> {
    pub(super) fn new(run: &T) -> Self {
        Self { run: run.clone(), stages: Vec::new(), found: None, guard: None, unreported: false }
    }

    fn find(&mut self, name: &'static str, scene: &mut Scene<'_>) -> Result<(), RunError> {
        // Through a transaction pool the lock needs a session of its own, which holds it by its transaction.
        if scene.environment.by_transaction() {
            self.guard = Some(scene.connect()?);
        }
        let entry = find::find(name, scene, self.guard.as_mut())?;
        let plan = find::plan_of(name, &entry)?;
        self.found = Some(Found { name, entry, plan });
        Ok(())
    }

    fn build_stages(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let flavor = scene.environment.facts.flavor;
        for run in self.run.stages() {
            let found = BuildFor {
                dataset: self.found.as_ref().map(|found| &found.plan),
                flavor,
                protocol: scene.plan.protocol,
            };
            let mut workload = run.build(found)?;
            if let Some(option) = workload.unsupported(flavor) {
                return Err(DatasetError::Unsupported { option, flavor }.into());
            }
            let questions = workload.questions();
            if !questions.is_empty() {
                let mut connection = scene.connect()?;
                workload.learn(&find::answers(&mut connection, &questions)?);
            }
            self.stages.push(LoopStage { workload, work: run.into() });
        }
        Ok(())
    }

    /// Makes sure of the dataset's tables, and makes in the server what the workload needs beside them.
    fn make_ready(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let own_sessions = !scene.environment.by_transaction();
        let (Some(found), Some(first)) = (&self.found, self.stages.first()) else {
            return Ok(());
        };
        let mut registry = Registry::new(&mut scene.control, found.name);
        registry.require(&first.workload.table_names(), first.workload.is_adopted())?;
        find::note_changes(&mut registry, found.name, first.workload.as_ref(), own_sessions)?;
        for routines in self.stages.iter().filter_map(|stage| stage.workload.routines()) {
            registry.install(&routines).part(|| "cannot make the loop in the server".to_owned())?;
        }
        Ok(())
    }

    /// Enters the run into the ledger before it changes rows.
    fn open_ledger(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let spec = scene.plan.work.spec();
        let (Some(found), true) = (&mut self.found, spec.writes()) else {
            return Ok(());
        };
        let Found { name, entry, .. } = found;
        let mut registry = Registry::new(&mut scene.control, name);
        settle_open_runs(&mut registry, entry, scene.observer.history())?;
        // On YugabyteDB there may be no locks that would show another riops at work.
        let locks_show_others = scene.environment.facts.flavor == Flavor::PostgreSql
            && !scene.environment.by_transaction();
        if spec.counts_effects() && locks_show_others && !registry.open_runs(&entry.id)?.is_empty()
        {
            let first = self.stages.first().map(|stage| stage.workload.contents_sql());
            if registry.count_anew(entry, &first.unwrap_or_default())? {
                scene.observer.notice("a run before this one did not report: what it has changed is unknown, and the tables are counted again");
            }
        }
        let mut registry = Registry::new(&mut scene.control, name);
        registry
            .begin_run(&scene.id.to_string(), &entry.id)
            .part(|| "cannot enter the run, which changes rows, into riops.run".to_owned())
    }
}

impl<T: Build + Spec + Clone + Into<WorkPlan>> Runner for OnDataset<T> {
    fn begin(&mut self, scene: &mut Scene<'_>) -> Result<usize, RunError> {
        if let Some(name) = scene.plan.work.spec().dataset() {
            self.find(name, scene)?;
        }
        self.build_stages(scene)?;
        self.make_ready(scene)?;
        self.open_ledger(scene)?;
        Ok(self.stages.len())
    }

    fn stage(&mut self, number: usize, scene: &mut Scene<'_>) -> Result<Staged, RunError> {
        let several = self.stages.len() > 1;
        let stage = self
            .stages
            .get(number)
            .ok_or_else(|| RunError::Unsuitable(format!("the run has no stage {}", number + 1)))?;
        let measured = scene.run_loop(stage, several)?;
        Ok(Staged::of(Part::Loop(Box::new(measured))))
    }

    fn without_result(&mut self, error: &RunError, nothing_measured: bool, scene: &mut Scene<'_>) {
        self.unreported = !error.came_before_any_statement();
        let Some(found) = &self.found else {
            return;
        };
        if nothing_measured && !self.unreported && scene.plan.work.spec().writes() {
            // The connection that was used until now may be the one that was interrupted.
            let _ = Connection::open(&scene.server.conninfo, &Interrupt::new()).map(|mut fresh| {
                let mut registry = Registry::new(&mut fresh, found.name);
                registry.end_run(&scene.id.to_string(), &Changes::default())
            });
        }
    }

    fn end(&mut self, scene: &mut Scene<'_>, parts: &[Part], ending: &mut Ending) -> Vec<Check> {
        let mut checks = Vec::new();
        // A stage that never reported leaves the ledger open.
        if let (Some(found), Some(last), false) = (&self.found, self.stages.last(), self.unreported)
        {
            checks =
                settle(scene, found.name, &found.entry, last.workload.as_ref(), (parts, ending));
        }
        if let Some(mut guard) = self.guard.take()
            && let Err(error) = guard.query_value("select 1")
        {
            checks.push(Check {
                name: "lock of the dataset".to_owned(),
                expected: "held to the end".to_owned(),
                found: error.to_string(),
                held: false,
            });
        }
        checks
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        let Found { entry, plan, .. } = self.found.as_ref()?;
        Some(DatasetRecord { id: entry.id.clone(), parameters: plan.clone() })
    }

    fn accesses(&self) -> Vec<Access> {
        self.stages.first().map(|stage| stage.workload.accesses()).unwrap_or_default()
    }
}
