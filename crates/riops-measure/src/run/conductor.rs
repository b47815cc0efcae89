//! Conducts a run: runs its stages in order and builds the record.

use super::active::ActiveRun;
use super::clean_start::clean_start;
use super::error::RunError;
use crate::run::parts::{Ending, Part};
use crate::run::verdict::judge;
use crate::workload::access::Access;
use riops_model::plan::Plan;
use riops_model::record::{Check, DatasetRecord, Events, Record};

/// The reasons why cost and blocks are only about right behind a pooler whose transactions share the connections.
const OF_SHARED: (&str, &str) = (
    "the counters of the server include the work of other clients, whose sessions share the connections of the pooler",
    "other clients of the pooler",
);
/// The reasons behind a pooler with a connection per session. It remains open after the session, and an idle server process
/// reports its counts up to 10 s later (PostgreSQL documentation, "The Cumulative Statistics System").
const OF_DEDICATED: (&str, &str) = (
    "the connections of the pooler remain open, and report the last second of their work late: a part of this run is missing, and a part of the work before it is included",
    "earlier sessions of the pooler",
);

/// The interface of the three kinds of runs: on a dataset, with dedicated tables, and of single
/// statements.
pub(super) trait Runner {
    /// Prepares the first stage and returns the number of stages. All preconditions are checked here, before
    /// anything is changed.
    fn begin(&mut self, active: &mut ActiveRun<'_>) -> Result<usize, RunError>;

    /// Runs the stage at this position, counted from 0.
    fn stage(
        &mut self,
        position: usize,
        active: &mut ActiveRun<'_>,
    ) -> Result<FinishedStage, RunError>;

    /// Handles a stage without a result. If `nothing_measured`, it was the first one.
    fn handle_failed_stage(
        &mut self,
        _: &RunError,
        _nothing_measured: bool,
        _: &mut ActiveRun<'_>,
    ) {
    }

    /// Enters the changes of the run into the ledger and verifies them, even if the run stopped early.
    fn end(&mut self, _: &mut ActiveRun<'_>, _: &[Part], _: &mut Ending) -> Vec<Check> {
        Vec::new()
    }

    /// Returns the dataset for the record.
    fn dataset(&self) -> Option<DatasetRecord> {
        None
    }

    /// Returns the expected access paths of the statements.
    fn accesses(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Drops temporary objects. Called last, after the record is stored and the control connection with its
    /// locks is closed, and also after an error.
    fn clean_up(&mut self, _: &Plan, _: &Events) {}
}

/// A finished stage with its result.
pub(super) struct FinishedStage {
    pub(super) part: Part,
    pub(super) checks: Vec<Check>,
    /// Whether the run stops after this stage, even if more stages are planned.
    pub(super) is_last: bool,
}

impl FinishedStage {
    /// Returns a stage without checks.
    pub(super) fn new(part: Part) -> Self {
        let is_last = part.has_ended_early();
        Self { part, checks: Vec::new(), is_last }
    }
}

/// Runs all stages and cleans up. The complete record is passed on before the cleanup.
pub(super) fn conduct(
    mut active: ActiveRun<'_>,
    runner: &mut dyn Runner,
) -> Result<Record, RunError> {
    let record = measure(&mut active, runner);
    let ActiveRun { plan, mut hooks, control, .. } = active;
    // Releases the locks before the record is printed.
    drop(control);
    if let (Ok(record), Some(complete)) = (&record, &mut hooks.complete) {
        complete(record);
    }
    runner.clean_up(&plan, &hooks.events);
    record
}

fn measure(active: &mut ActiveRun<'_>, runner: &mut dyn Runner) -> Result<Record, RunError> {
    let stages = runner.begin(active)?;
    clean_start(active)?;
    let (mut parts, mut checks, mut ending) = (Vec::new(), Vec::new(), Ending::default());
    for position in 0..stages {
        match runner.stage(position, active) {
            Ok(FinishedStage { part, checks: stage_checks, is_last }) => {
                parts.push(part);
                checks.extend(stage_checks);
                if is_last {
                    break;
                }
            }
            Err(error) => {
                runner.handle_failed_stage(&error, parts.is_empty(), active);
                if parts.is_empty() {
                    return Err(error);
                }
                // The earlier stages are a result. The record contains the reason why the run stopped.
                if !active.interrupt.is_requested() {
                    ending.failure = Some(if error.is_start_failure() {
                        format!("the next stage failed to start: {error}")
                    } else {
                        error.to_string()
                    });
                }
                ending.interrupted = active.interrupt.is_requested();
                break;
            }
        }
        if active.interrupt.is_requested() && position + 1 < stages {
            ending.interrupted = true;
            break;
        }
    }
    checks.extend(runner.end(active, &parts, &mut ending));
    let record = active.record(runner.dataset());
    let mut record = judge(record, &runner.accesses(), parts, checks, ending)?;
    if let Some(pooler) = active.environment.pooler {
        let (of_cost, of_blocks) = if pooler.by_transaction { OF_SHARED } else { OF_DEDICATED };
        for stage in &mut record.stages {
            if let Some(cost) = &mut stage.cost {
                cost.includes = Some(of_cost.to_owned());
            }
            if let Some(io) = stage.io.as_mut().filter(|io| io.liops.is_some()) {
                io.blocks_include.push(of_blocks.to_owned());
            }
        }
    }
    Ok(record)
}
