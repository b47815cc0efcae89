//! Measurements of the parts of a run.

use std::process::ExitStatus;

use crate::engine::{OnceResult, StageResult};
use crate::probe::MachineUse;
use crate::workload::access::{Access, Finding};
use riops_model::plan::WorkPlan;
use riops_model::record::{CacheState, Point, StatementPlan, UnknownOutcomes, VacuumRates};

/// A session loop: its part of the plan and its measurements.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The part of the plan that belongs to this stage.
    pub work: WorkPlan,
    /// The result of the engine.
    pub result: StageResult,
    /// Counters of the probes.
    pub usage: MachineUse,
    /// Preparation of the caches before the stage.
    pub caches: Option<CacheState>,
    /// Bytes per row, if they were measured.
    pub row_bytes: Option<u64>,
}

/// A statement that ran once, and its measurements.
#[derive(Debug)]
pub(crate) struct MeasuredStatement {
    /// Name of the stage.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// The result of the engine.
    pub result: OnceResult,
    /// Number of rows, from the command tag or the plan.
    pub rows: u64,
    /// The plan, if the statement ran under EXPLAIN.
    pub plan: Option<StatementPlan>,
    /// The rates reported by VACUUM.
    pub vacuum: Option<VacuumRates>,
    /// The expected access path and the actual plan, if a path is expected.
    pub finding: Option<(Access, Finding)>,
    /// Counters of the probes.
    pub usage: MachineUse,
    /// Preparation of the caches before the stage.
    pub caches: Option<CacheState>,
}

/// An observation by `observe`, and its measurements.
#[derive(Debug)]
pub(crate) struct MeasuredObservation {
    /// Time from the start to the end of the command, or the time that was planned.
    pub seconds: f64,
    /// How the command ended; absent without one.
    pub status: Option<ExitStatus>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// CPU time of the command, in seconds.
    pub command_cpu_s: Option<f64>,
    /// Processes that the command left behind.
    pub left_behind: Vec<String>,
    /// Whether the server restarted.
    pub restarted: bool,
    /// Number of counts, which are the first of the queries of the probes.
    pub counts: usize,
    /// The main count over time.
    pub series: Vec<Point>,
    /// Counters of the probes.
    pub usage: MachineUse,
}

/// A part of a run with one result.
#[derive(Debug)]
pub(crate) enum Part {
    /// Sessions that repeat transactions.
    Loop(Box<Measured>),
    /// A statement that ran once.
    Statement(Box<MeasuredStatement>),
    /// The load of others.
    Observed(Box<MeasuredObservation>),
}

impl Part {
    /// Returns whether the run ends with this part, even if the plan has more parts.
    pub(crate) fn has_ended_early(&self) -> bool {
        match self {
            Self::Loop(measured) => {
                let result = &measured.result;
                result.interrupted || result.workers.failure.is_some() || result.breached.is_some()
            }
            Self::Statement(_) | Self::Observed(_) => false,
        }
    }
}

/// How a run ended, if the end is not recorded in one of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Reason why the next part failed to start.
    pub failure: Option<String>,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
    /// Outcomes of the transactions that lost their connection; `None` if there were none.
    pub unknown: Option<UnknownOutcomes>,
}
