//! Finds the outcomes of transactions that lost their connection, from the rows that they would have written.
//!
//! Costs nothing without such transactions. It must not claim an outcome that the rows do not prove: see
//! [`workload::unknown`](crate::workload::unknown).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::active::ActiveRun;
use super::stage::LoopStage;
use crate::dataset::{DatasetError, Entry, Registry};
use crate::engine::StageResult;
use crate::run::parts::Measured;
use crate::server::{Connection, Feature};
use crate::workload::transaction::{Statements, Transaction};
use crate::workload::unknown::{Evidence, Resolution, TransactionId, Unknown, Version};
use crate::workload::{Work, Workload};
use riops_model::plan::Plan;

/// Query for the first transaction id that the server has not assigned yet.
const NEXT_XID: &str = "select txid_snapshot_xmax(txid_current_snapshot()) % 4294967296";
/// Timeout for the sessions of the run to end. A transaction may be committed until then.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of transactions of the run that are generated again: some seconds of CPU time.
const TRANSACTIONS_MAX: u64 = 20_000_000;

/// Returns the first transaction id that is assigned after this; `None` if the server has no such ids.
pub(super) fn next_xid(connection: &mut Connection) -> Option<u32> {
    let has_ids = connection.dialect().has(Feature::Heap);
    has_ids.then(|| connection.query_value(NEXT_XID).ok()??.parse().ok())?
}

/// A stage that ran, with its description.
pub(super) type FinishedLoop<'a> = (&'a LoopStage, &'a Measured);

/// Returns the transactions whose outcome could be examined, with the outcome. `start` is the first
/// transaction id that was assigned after the run began.
///
/// # Errors
/// [`DatasetError`] if a query fails.
pub(super) fn resolve(
    connection: &mut Connection,
    active: &ActiveRun<'_>,
    dataset: &'static str,
    entry: &Entry,
    loops: &[FinishedLoop<'_>],
    start: Option<u32>,
) -> Result<Vec<(Unknown, Resolution)>, DatasetError> {
    let unknown = transactions(loops);
    let Some(start) = start.filter(|_| !unknown.is_empty() && is_possible(active, loops)) else {
        return Ok(Vec::new());
    };
    if !await_end_of_sessions(connection, active.control.session_info().process)?
        || !Registry::new(connection, dataset).is_only_writer(&active.id.to_string(), &entry.id)?
    {
        return Ok(Vec::new());
    }
    let (mut examined, mut row_versions) = (Vec::new(), Vec::new());
    for transaction in unknown {
        let Some((stage, _)) = loops.get(transaction.origin.stage) else {
            continue;
        };
        if let Some(versions) = versions(connection, stage.workload.as_ref(), &transaction)? {
            examined.push(transaction);
            row_versions.push(versions);
        }
    }
    let mut evidence = Evidence::new(&examined, &row_versions, start);
    if evidence.needs_all_transactions() {
        for (position, (stage, measured)) in loops.iter().enumerate() {
            repeat(
                position,
                stage.workload.as_ref(),
                &active.plan,
                &measured.result,
                &mut evidence,
            );
        }
    }
    let outcomes = evidence.outcomes();
    Ok(examined.into_iter().zip(outcomes).collect())
}

/// Returns the transactions with an unknown outcome that name the rows they write.
fn transactions(loops: &[FinishedLoop<'_>]) -> Vec<Unknown> {
    let marked = |(stage, (_, measured)): (usize, &FinishedLoop<'_>)| -> Vec<Unknown> {
        let unknown = measured
            .result
            .workers
            .unknown
            .iter()
            .filter(|transaction| !transaction.marks.is_empty());
        unknown
            .map(|transaction| Unknown {
                origin: TransactionId { stage, ..transaction.origin },
                ..transaction.clone()
            })
            .collect()
    };
    loops.iter().enumerate().flat_map(marked).collect()
}

/// Whether the sessions of the run can be observed, and all its transactions can be generated again.
fn is_possible(active: &ActiveRun<'_>, loops: &[FinishedLoop<'_>]) -> bool {
    let started = loops.iter().flat_map(|(_, measured)| &measured.result.workers.sessions);
    active.nodes.allowed().len() == 1
        && active.environment.pooler.is_none()
        && !active.plan.work.traits().has_server_loop
        && started.map(|session| session.started).sum::<u64>() <= TRANSACTIONS_MAX
}

/// Waits until no session of the run is left besides this connection and the control connection, whose
/// process id is `control`. Returns false if the timeout expires.
fn await_end_of_sessions(connection: &mut Connection, control: i32) -> Result<bool, DatasetError> {
    let sql = format!(
        "select 1 from pg_stat_activity
          where application_name = current_setting('application_name')
            and pid not in (pg_backend_pid(), {control}) limit 1"
    );
    let deadline = Instant::now() + SESSIONS_TIMEOUT;
    while connection.query_value(&sql)?.is_some() {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

/// Returns the versions of the rows of each mark; `None` if the workload has no query for them.
fn versions(
    connection: &mut Connection,
    workload: &dyn Workload,
    transaction: &Unknown,
) -> Result<Option<Vec<Vec<Version>>>, DatasetError> {
    let mut all = Vec::new();
    for mark in &transaction.marks {
        let Some(sql) = workload.writers_sql(mark) else {
            return Ok(None);
        };
        let rows = connection.query(&sql)?;
        let version = |row: &Vec<Option<String>>| match row.as_slice() {
            [Some(first), Some(last), Some(writer)] => Some(Version {
                first: first.parse().ok()?,
                last: last.parse().ok()?,
                writer: writer.parse().ok()?,
            }),
            _ => None,
        };
        let versions: Option<Vec<Version>> = rows.iter().map(version).collect();
        let unreadable = || DatasetError::Damaged(format!("unexpected result of `{sql}`"));
        all.push(versions.ok_or_else(unreadable)?);
    }
    Ok(Some(all))
}

/// Generates all transactions of a stage again, for their rows. The same plan gives the same transactions.
fn repeat(
    stage: usize,
    workload: &dyn Workload,
    plan: &Plan,
    result: &StageResult,
    evidence: &mut Evidence<'_>,
) {
    for (session, planned) in (0..).zip(workload.stage(plan).sessions) {
        let Work::Client(mut generator) = planned.work else {
            continue;
        };
        let tally = result.workers.sessions.iter().find(|tally| tally.id == session);
        let statements = Statements::new(plan.protocol, planned.statements);
        let mut tx = Transaction::new(Arc::new(statements));
        for transaction in 0..tally.map_or(0, |tally| tally.started) {
            if !generator.next(&mut tx) {
                break;
            }
            evidence.note(stage, session, transaction, tx.marks());
        }
    }
}
