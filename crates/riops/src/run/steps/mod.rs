//! `cbc`: statements that run once, one after the other, and the selects by several sessions.

mod home;
mod statement;

use super::conductor::{Runner, Staged};
use super::error::{Part as _, RunError};
use super::observer::Observer;
use super::scene::Scene;
use crate::dataset::Registry;
use crate::engine::{SessionError, StageResult, run_stage};
use crate::plan::{CbcDataset, CbcRun, Plan};
use crate::probe::Probe;
use crate::probe::database::{DatabaseProbe, checkpoints_sql};
use crate::probe::sampler::Sampler;
use crate::record::{DatasetRecord, Ending, Measured, Part};
use crate::server::{Connection, ConnectionError, Flavor, Nodes};
use crate::workload::access::Access;
use crate::workload::cbc::{self, NAME, Query, Step, TABLE};
use crate::workload::check::Check;
use home::{Home, auto_size, copy_bytes, require_space};

/// A stage of the run.
#[derive(Debug, Clone, Copy)]
enum Piece {
    /// A statement that runs once.
    Step(Step),
    /// A select by so many sessions.
    Query(Query, u32),
}

/// The stages of a run, in their order.
fn pieces(run: &CbcRun) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for step in Step::ALL {
        pieces.push(Piece::Step(step));
        let queries: &[Query] = match step {
            Step::SelectR => &Query::BEFORE_CLUSTER,
            Step::SelectC2 => &[Query::IndexedSelectMax],
            _ => &[],
        };
        for &query in queries {
            pieces.extend(run.query_sessions.iter().map(|&sessions| Piece::Query(query, sessions)));
        }
    }
    pieces
}

/// A run of `cbc`.
pub(super) struct Steps {
    run: CbcRun,
    pieces: Vec<Piece>,
    home: Option<Home>,
    open: Option<Open>,
    /// Whether the table stays.
    kept: bool,
}

/// What a run has open in the database of its table.
struct Open {
    dataset: CbcDataset,
    work: Connection,
    sampler: Sampler,
}

impl Steps {
    pub(super) fn new(run: &CbcRun) -> Self {
        Self { run: run.clone(), pieces: pieces(run), home: None, open: None, kept: false }
    }

    /// Refuses what can be refused before anything is made, and settles the size.
    fn check(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let flavor = scene.environment.facts.flavor;
        if flavor != Flavor::PostgreSql {
            return Err(RunError::Unsuitable(format!(
                "the workload cbc is made of VACUUM, CLUSTER and the like, which {flavor} does not have: it is for PostgreSQL"
            )));
        }
        let copy_bytes = copy_bytes(&mut scene.control)?;
        if self.run.auto_size {
            self.run.size_gb = auto_size(copy_bytes, &scene.environment)?;
            let text = format!("size: {} GB, three times the memory", self.run.size_gb);
            scene.observer.notice(&text);
            scene.plan.work = self.run.clone().into();
        }
        if !self.run.skip_space_check {
            require_space(self.run.size_gb, copy_bytes, scene)?;
        }
        Ok(scene.control.execute(&cbc::session_sql())?)
    }

    /// Makes the place of the table, and connects to it: from now on the run is there.
    fn settle_in(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let home = self.home.insert(Home::make(scene, self.run.place)?);
        let (mut control, dataset) = home.begin(&self.run, scene.interrupt)?;
        let mut work = Connection::open(&home.server.conninfo, scene.interrupt)?;
        work.execute(&cbc::session_sql())?;
        // READ_RATE and WRITE_RATE are read from a text; a role that may not have it in English has none.
        match work.execute("set lc_messages = 'C'") {
            Err(ConnectionError::Server(_)) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        let sampler = Sampler::new(scene.plan.interval()).with_server(
            &home.server.conninfo,
            checkpoints_sql(&mut control)?,
            scene.environment.local_data().is_some(),
            scene.interrupt,
        )?;
        scene.control = control;
        scene.server = home.server.clone();
        scene.nodes = Nodes::single(&home.server.conninfo);
        self.open = Some(Open { dataset, work, sampler });
        Ok(())
    }

    fn opened(&mut self) -> Result<&mut Open, RunError> {
        let missing = || RunError::Precondition("the run has not begun".to_owned());
        self.open.as_mut().ok_or_else(missing)
    }

    fn query(
        &mut self,
        query: Query,
        sessions: u32,
        scene: &mut Scene<'_>,
    ) -> Result<Measured, RunError> {
        let size_gb = self.run.size_gb;
        let open = self.opened()?;
        let workers = scene.plan.workers.min(sessions);
        let plan = Plan { sessions, workers, ..scene.plan.clone() };
        let stage = query.stage(size_gb, &plan);
        scene.observer.notice(&format!("stage: {}", stage.name));
        scene.observer.stage(&plan);
        open.sampler.watch_none();
        let tables = [TABLE.to_owned()];
        let database = DatabaseProbe::new(&mut scene.control, &tables)?;
        let mut probe = Probe::machine(scene.environment.local_data())
            .with_database(database)
            .with_sampler(&mut open.sampler);
        let mut result = run_stage(
            stage,
            query.accesses(size_gb),
            &plan,
            &scene.nodes,
            scene.interrupt,
            &mut probe,
            scene.observer,
        )
        .part(|| format!("{} with {sessions} sessions", query.script()))?;
        let usage = probe.usage();
        drop(probe);
        give_up(&mut result, &mut scene.control)?;
        let work = scene.plan.work.clone();
        Ok(Measured { work, result, usage, caches: None, row_bytes: None })
    }
}

/// A select over a whole table may take longer than the end of a stage waits: then it is one that did not
/// end, and no failure. The server does not know that, and is told to cancel it.
fn give_up(result: &mut StageResult, control: &mut Connection) -> Result<(), RunError> {
    if !matches!(result.failure, Some(SessionError::Drain(_))) || result.interrupted {
        return Ok(());
    }
    result.failure = None;
    for session in &result.sessions {
        let sql = format!("select pg_terminate_backend({})", session.process);
        control.execute(&sql)?;
    }
    Ok(())
}

impl Runner for Steps {
    fn begin(&mut self, scene: &mut Scene<'_>) -> Result<usize, RunError> {
        self.check(scene)?;
        self.settle_in(scene)?;
        Ok(self.pieces.len())
    }

    fn stage(&mut self, number: usize, scene: &mut Scene<'_>) -> Result<Staged, RunError> {
        let piece = self.pieces.get(number).copied();
        match piece.ok_or_else(|| RunError::Precondition("no such stage".to_owned()))? {
            Piece::Step(step) => self.step(step, scene),
            Piece::Query(query, sessions) => {
                let measured = self.query(query, sessions, scene)?;
                Ok(Staged::of(Part::Loop(Box::new(measured))))
            }
        }
    }

    fn end(&mut self, scene: &mut Scene<'_>, parts: &[Part], ending: &mut Ending) -> Vec<Check> {
        if scene.interrupt.requested() {
            ending.interrupted = true;
            return Vec::new();
        }
        let whole = parts.len() == self.pieces.len()
            && *ending == Ending::default()
            && !parts.iter().any(Part::ended_early);
        if let (true, Some(home)) = (whole && self.run.keep, &self.home) {
            let mut registry = Registry::new(&mut scene.control, NAME);
            match registry.complete(home.id(), &[]) {
                Ok(()) => self.kept = true,
                Err(error) => {
                    let text = format!("the table cannot be registered as complete: {error}");
                    ending.failure = Some(text);
                }
            }
        }
        Vec::new()
    }

    fn dataset(&self) -> Option<DatasetRecord> {
        let (home, open) = (self.home.as_ref()?, self.open.as_ref()?);
        let parameters = open.dataset.clone().into();
        Some(DatasetRecord { id: home.id().to_owned(), parameters })
    }

    fn accesses(&self) -> Vec<Access> {
        let queries = Query::BEFORE_CLUSTER.into_iter().chain([Query::IndexedSelectMax]);
        queries.flat_map(|query| query.accesses(self.run.size_gb)).collect()
    }

    fn clean_up(&mut self, plan: &Plan, observer: &mut dyn Observer) {
        // Its sessions would keep the database from being dropped.
        self.open = None;
        if let (Some(home), false) = (&self.home, self.kept)
            && let Err(error) = home.drop(plan)
        {
            observer.left_behind(&format!(
                "cannot drop what the run made: {error}; drop it with: riops cleanup cbc"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_follow_the_steps_that_make_their_table() {
        let run = CbcRun { query_sessions: vec![1, 4], ..CbcRun::default() };
        let names: Vec<_> = pieces(&run)
            .into_iter()
            .map(|piece| match piece {
                Piece::Step(step) => step.key().to_owned(),
                Piece::Query(query, sessions) => format!("{} {sessions}", query.script()),
            })
            .collect();
        assert_eq!(names.len(), 9 + 6);
        assert_eq!(
            names[5..10],
            ["SELECT_r", "t03-select-max 1", "t03-select-max 4", "t04-selectr 1", "t04-selectr 4"]
        );
        assert_eq!(names[13..], ["t06-iselect-max 1", "t06-iselect-max 4"]);
    }
}
