//! `cbc`: a sequence of statements that run once, and queries by several sessions.

mod location;
mod statement;

use super::active::ActiveRun;
use super::conductor::{FinishedStage, Runner};
use super::error::{Context as _, RunError};
use super::stage::LoopStage;
use crate::dataset::Registry;
use crate::engine::{SessionError, StageResult};
use crate::probe::database::checkpoints_sql;
use crate::probe::sampler::Sampler;
use crate::run::parts::{Ending, Measured, Part};
use crate::server::{Connection, ConnectionError, Feature, Nodes};
use crate::workload::Workload as _;
use crate::workload::access::Access;
use crate::workload::cbc::{self, NAME, QueryLoop};
use location::{TableLocation, auto_size, copy_bytes, require_space};
use riops_model::plan::{CbcDataset, CbcRun, Plan};
use riops_model::plan::{CbcQuery, CbcStep};
use riops_model::record::{Check, DatasetRecord, Events, RunEvent};
use riops_model::units::Span;

/// A planned stage of the run.
#[derive(Debug, Clone, Copy)]
enum PlannedStage {
    /// A statement that runs once.
    Step(CbcStep),
    /// A query and its number of sessions.
    Query(CbcQuery, u32),
}

/// Returns the stages of a run, in execution order.
fn planned_stages(run: &CbcRun) -> Vec<PlannedStage> {
    let mut stages = Vec::new();
    for step in CbcStep::ALL {
        stages.push(PlannedStage::Step(step));
        let queries: &[CbcQuery] = match step {
            CbcStep::SelectR => &CbcQuery::BEFORE_CLUSTER,
            CbcStep::SelectC2 => &[CbcQuery::IndexedSelectMax],
            _ => &[],
        };
        for &query in queries {
            let sessions = run.query_sessions.iter();
            stages.extend(sessions.map(|&sessions| PlannedStage::Query(query, sessions)));
        }
    }
    stages
}

/// A run of `cbc`.
pub(super) struct Steps {
    run: CbcRun,
    stages: Vec<PlannedStage>,
    location: Option<TableLocation>,
    open: Option<Open>,
    /// Whether the table is kept.
    kept: bool,
}

/// The open connections to the database of the table.
struct Open {
    dataset: CbcDataset,
    work: Connection,
    sampler: Sampler,
}

impl Steps {
    pub(super) fn new(run: &CbcRun) -> Self {
        let stages = planned_stages(run);
        Self { run: run.clone(), stages, location: None, open: None, kept: false }
    }

    /// Checks all preconditions before anything is created, and determines the size.
    fn check(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let dialect = active.control.dialect();
        if !dialect.has(Feature::Heap) {
            let flavor = dialect.flavor();
            return Err(RunError::Unsuitable(format!(
                "the workload cbc is not supported by {flavor}: it consists of VACUUM, CLUSTER and similar statements of PostgreSQL"
            )));
        }
        let copy_bytes = copy_bytes(&mut active.control)?;
        if self.run.auto_size {
            self.run.size_gb = auto_size(copy_bytes, &active.environment)?;
            let text =
                format!("size: {} GB, three times the memory of the server host", self.run.size_gb);
            active.hooks.notice(&text);
            active.plan.work = self.run.clone().into();
        }
        if !self.run.skip_space_check {
            require_space(self.run.size_gb, copy_bytes, active)?;
        }
        Ok(active.control.execute(&cbc::session_sql())?)
    }

    /// Creates the location of the table and moves the control connection there.
    fn open_location(&mut self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let location = self.location.insert(TableLocation::create(active, self.run.place)?);
        let (mut control, dataset) = location.register_table(&self.run, active)?;
        let mut work = Connection::open_measured(&location.server.conninfo, active.interrupt)?;
        work.execute(&cbc::session_sql())?;
        // READ_RATE and WRITE_RATE are parsed from an English message. Without the privilege to set
        // lc_messages they may be missing.
        match work.execute("set lc_messages = 'C'") {
            Err(ConnectionError::Server(_)) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        let plan = &active.plan;
        let sampler = Sampler::new(plan.interval(), plan.point_length()).with_server(
            &location.server.conninfo,
            active.environment.local_data().is_some(),
            checkpoints_sql(&mut control)?,
            true,
            active.interrupt,
        )?;
        active.control = control;
        active.server = location.server.clone();
        active.nodes = Nodes::single(&location.server.conninfo);
        self.open = Some(Open { dataset, work, sampler });
        Ok(())
    }

    fn require_open(&mut self) -> Result<&mut Open, RunError> {
        let missing = || RunError::Precondition("the run has not started".to_owned());
        self.open.as_mut().ok_or_else(missing)
    }

    /// Pauses before a stage. The statistics of the probes begin after the pause.
    fn cool_down(&self, active: &mut ActiveRun<'_>) -> Result<(), RunError> {
        let time = Span::of_seconds(self.run.cooldown_s).0;
        if !time.is_zero() {
            active.hooks.notice(&format!("cool-down of {}", Span(time)));
        }
        let has_passed = active.interrupt.pause(time);
        Ok(has_passed.then_some(()).ok_or(ConnectionError::Interrupted)?)
    }

    fn query(
        &self,
        query: CbcQuery,
        sessions: u32,
        active: &mut ActiveRun<'_>,
    ) -> Result<Measured, RunError> {
        let workload = Box::new(QueryLoop { query, size_gb: self.run.size_gb });
        let stage = LoopStage { workload, work: active.plan.work.clone() };
        let workers = active.plan.workers.min(sessions);
        let of_stage = Plan { sessions, workers, ..active.plan.clone() };
        let run_plan = std::mem::replace(&mut active.plan, of_stage);
        let measured = active.run_loop(&stage, true);
        active.plan = run_plan;
        let mut measured =
            measured.with_context(|| format!("{} with {sessions} sessions", query.script()))?;
        terminate_unfinished(&mut measured.result, &mut active.control)?;
        Ok(measured)
    }
}

/// Terminates sessions whose query was still running when the drain phase timed out. A query over a whole
/// table may take longer than its stage: it counts as unfinished, not as a failure.
fn terminate_unfinished(
    result: &mut StageResult,
    control: &mut Connection,
) -> Result<(), RunError> {
    if !matches!(result.workers.failure, Some(SessionError::Drain(_))) || result.interrupted {
        return Ok(());
    }
    result.workers.failure = None;
    for backend in result.workers.sessions.iter().filter_map(|session| session.backend.as_ref()) {
        backend.terminate(control)?;
    }
    Ok(())
}

impl Runner for Steps {
    fn begin(&mut self, active: &mut ActiveRun<'_>) -> Result<usize, RunError> {
        self.check(active)?;
        self.open_location(active)?;
        Ok(self.stages.len())
    }

    fn stage(
        &mut self,
        position: usize,
        active: &mut ActiveRun<'_>,
    ) -> Result<FinishedStage, RunError> {
        if position > 0 {
            self.cool_down(active)?;
        }
        let stage = self.stages.get(position).copied();
        match stage.ok_or_else(|| RunError::Precondition("the run has no such stage".to_owned()))? {
            PlannedStage::Step(step) => self.step(step, active),
            PlannedStage::Query(query, sessions) => {
                let measured = self.query(query, sessions, active)?;
                Ok(FinishedStage::new(Part::Loop(Box::new(measured))))
            }
        }
    }

    fn end(
        &mut self,
        active: &mut ActiveRun<'_>,
        parts: &[Part],
        ending: &mut Ending,
    ) -> Vec<Check> {
        if active.interrupt.is_requested() {
            ending.interrupted = true;
            if self.run.keep {
                self.kept = true;
                active.hooks.notice("the table is kept as it is (--keep), and registered as incomplete; drop it with: riops cleanup cbc");
            }
            return Vec::new();
        }
        let is_complete = parts.len() == self.stages.len()
            && *ending == Ending::default()
            && !parts.iter().any(Part::has_ended_early);
        if let (true, Some(location)) = (is_complete && self.run.keep, &self.location) {
            let mut registry = Registry::new(&mut active.control, NAME);
            match registry.complete(location.id(), &[]) {
                Ok(()) => self.kept = true,
                Err(error) => {
                    let text = format!("cannot register the table as complete: {error}");
                    ending.failure = Some(text);
                }
            }
        }
        Vec::new()
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        let (location, open) = (self.location.as_ref()?, self.open.as_ref()?);
        let parameters = open.dataset.clone().into();
        Some(DatasetRecord {
            id: location.id().to_owned(),
            condition: None,
            other_users: Vec::new(),
            parameters,
        })
    }

    fn accesses(&self) -> Vec<Access> {
        let size_gb = self.run.size_gb;
        CbcQuery::ALL
            .into_iter()
            .flat_map(|query| QueryLoop { query, size_gb }.accesses())
            .collect()
    }

    fn clean_up(&mut self, plan: &Plan, events: &Events) {
        // These connections would prevent the database from being dropped.
        self.open = None;
        if let (Some(location), false) = (&self.location, self.kept)
            && let Err(error) = location.drop(plan)
        {
            let text = format!(
                "cannot drop the objects created by the run: {error}; drop them with `riops cleanup cbc`"
            );
            events.send(&RunEvent::Notice { text, is_important: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_follow_the_steps_that_create_their_table() {
        let run = CbcRun { query_sessions: vec![1, 4], ..CbcRun::default() };
        let names: Vec<_> = planned_stages(&run)
            .into_iter()
            .map(|stage| match stage {
                PlannedStage::Step(step) => step.key().to_owned(),
                PlannedStage::Query(query, sessions) => format!("{} {sessions}", query.script()),
            })
            .collect();
        assert_eq!(names.len(), 9 + 6);
        assert_eq!(
            names[5..10],
            [
                "SELECT_r",
                "t03-select-max-no-explain 1",
                "t03-select-max-no-explain 4",
                "t04-selectr-no-explain 1",
                "t04-selectr-no-explain 4"
            ]
        );
        assert_eq!(names[13..], ["t06-iselect-max-no-explain 1", "t06-iselect-max-no-explain 4"]);
    }
}
