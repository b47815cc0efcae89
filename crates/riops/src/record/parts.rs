//! The parts of a run that repeats nothing: statements that ran once, beside loops. Pure.

use super::build::{Measured, client_cpu};
use super::io;
use super::sessions::fairness;
use super::{StageRecord, StatementRecord, Throughput};
use crate::engine::OnceResult;
use crate::probe::MachineUse;
use crate::probe::caches::CacheState;
use crate::probe::sampler::Sampled;
use crate::workload::access::{Access, Finding};
use crate::workload::cbc::{StatementPlan, VacuumRates};

/// A statement that was run once.
#[derive(Debug)]
pub struct MeasuredStatement {
    /// The stage's name.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// What came of it.
    pub result: OnceResult,
    /// Its rows, as its tag says.
    pub rows: u64,
    /// What it says of its plan, where it was asked.
    pub plan: Option<StatementPlan>,
    /// The rates that it prints of itself.
    pub vacuum: Option<VacuumRates>,
    /// What became of its promise, where it makes any.
    pub finding: Option<(Access, Finding)>,
    /// What the probes have counted.
    pub usage: MachineUse,
    /// What was done to the caches before it.
    pub caches: Option<CacheState>,
}

/// A part of a run with a result of its own.
#[derive(Debug)]
pub enum Part {
    /// Sessions that repeat transactions.
    Loop(Box<Measured>),
    /// A statement that was run once.
    Statement(Box<MeasuredStatement>),
}

/// How a run ended, where none of its parts says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Why the part that should have come next did not.
    pub failure: Option<String>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// The stage of a statement that ran once: one transaction of one session.
pub(super) fn statement(measured: MeasuredStatement, is_local: bool) -> StageRecord {
    let MeasuredStatement { name, sql, result, rows, plan, vacuum, usage, caches, .. } = measured;
    let seconds = result.seconds;
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let work = io::Work {
        rows_per_s: per_second(rows as f64),
        rows_acknowledged: rows,
        seconds,
        index_only: false,
    };
    let process_cpu_share =
        usage.processes_cpu_s.map(|cpu_s| cpu_s / usage.seconds.max(f64::MIN_POSITIVE));
    let mut io = io::io(&usage, work, None);
    if let Some(io) = &mut io {
        // Of the reads of other processes (parallel workers, those that read for it) its own account knows
        // nothing.
        io.sources = None;
    }
    StageRecord {
        io,
        name,
        kind: "statement".to_owned(),
        statement: Some(StatementRecord {
            sql,
            tag: result.answer.tags.into_iter().next().unwrap_or_default(),
            plan,
            vacuum,
            process_cpu_share,
        }),
        database_s: Some(seconds),
        caches,
        started_at: usage.started_at,
        seconds,
        sessions: 1,
        transactions: 1,
        rows,
        statements: 1,
        throughput: Throughput {
            transactions_per_s: per_second(1.0),
            rows_per_s: work.rows_per_s,
            statements_per_s: per_second(1.0),
        },
        memory: usage.memory.filter(|_| is_local),
        pressure: usage.pressure.filter(|_| is_local),
        database: usage.database,
        client_cpu: client_cpu(usage.client_cpu_s, &[], seconds, 1),
        machine_busy_share: usage.machine_busy_share,
        process_io: usage.session_reads,
        probes: probes(usage.sampled, is_local),
        sessions_fairness: fairness(&[1]),
        ..StageRecord::default()
    }
}

/// What the machine did says nothing of a server that is not on it.
pub(super) fn probes(sampled: Option<Sampled>, is_local: bool) -> Option<Sampled> {
    let mut sampled = sampled?;
    for point in sampled.points.iter_mut().filter(|_| !is_local) {
        (point.machine_busy_share, point.dirty_bytes) = (None, None);
    }
    Some(sampled)
}
