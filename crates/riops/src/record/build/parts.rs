//! What a record is built from.

use jiff::Timestamp;
use uuid::Uuid;

use crate::engine::{OnceResult, StageResult};
use crate::plan::{Plan, WorkPlan};
use crate::probe::MachineUse;
use crate::probe::caches::CacheState;
use crate::record::client::ClientRecord;
use crate::record::target::TargetRecord;
use crate::workload::access::{Access, Finding};
use crate::workload::cbc::{StatementPlan, VacuumRates};

/// The circumstances of a run.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// Id of the run.
    pub id: Uuid,
    /// Start of the run.
    pub started_at: Timestamp,
    /// Name of the workload.
    pub workload: String,
    /// The plan.
    pub plan: Plan,
    /// The target.
    pub target: TargetRecord,
    /// The client.
    pub client: ClientRecord,
    /// The promised access paths of the statements.
    pub accesses: Vec<Access>,
}

/// A loop of sessions: what it had to do, and what was measured.
#[derive(Debug)]
pub struct Measured {
    /// The part of the plan that belongs to this stage.
    pub work: WorkPlan,
    /// The result of the engine.
    pub result: StageResult,
    /// The counters of the probes.
    pub usage: MachineUse,
    /// What was done to the caches before the stage.
    pub caches: Option<CacheState>,
    /// Bytes per row, if they were measured.
    pub row_bytes: Option<u64>,
}

/// A statement that ran once.
#[derive(Debug)]
pub struct MeasuredStatement {
    /// Name of the stage.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// The result of the engine.
    pub result: OnceResult,
    /// Rows, from the command tag or the plan.
    pub rows: u64,
    /// The plan, if it was run with EXPLAIN.
    pub plan: Option<StatementPlan>,
    /// The rates that VACUUM prints.
    pub vacuum: Option<VacuumRates>,
    /// The promised access path and the plan, if a path is promised.
    pub finding: Option<(Access, Finding)>,
    /// The counters of the probes.
    pub usage: MachineUse,
    /// What was done to the caches before the stage.
    pub caches: Option<CacheState>,
}

/// A part of a run with a result of its own.
#[derive(Debug)]
pub enum Part {
    /// Sessions that repeat transactions.
    Loop(Box<Measured>),
    /// A statement that ran once.
    Statement(Box<MeasuredStatement>),
}

impl Part {
    /// Whether no part may follow, whatever was planned.
    #[must_use]
    pub fn ended_early(&self) -> bool {
        match self {
            Self::Loop(measured) => {
                let result = &measured.result;
                result.interrupted || result.failure.is_some() || result.breached.is_some()
            }
            Self::Statement(_) => false,
        }
    }
}

/// How a run ended, as far as none of its parts has recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Why the next part failed to start.
    pub failure: Option<String>,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
}
