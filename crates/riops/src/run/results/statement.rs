//! The stage record of a statement that ran once.

use super::client::{ClientUse, client_cpu};
use super::cost::cost;
use super::io;
use super::sessions::fairness;
use super::stage::{throughput, with_counters};
use crate::plan::Plan;
use crate::record::{ClientRecord, LoopRecord, StageRecord, StatementRecord};
use crate::run::parts::MeasuredStatement;

/// Returns the stage of a statement that ran once: one transaction of one session.
pub(in crate::run) fn statement(
    measured: MeasuredStatement,
    plan: &Plan,
    client: &ClientRecord,
) -> StageRecord {
    let MeasuredStatement { name, sql, result, rows, plan: found, vacuum, usage, caches, .. } =
        measured;
    let seconds = result.seconds;
    let throughput = throughput(seconds, 1, rows, 1);
    let work = io::Work {
        rows_per_s: throughput.rows_per_s,
        rows_acknowledged: rows,
        failed: 0,
        seconds,
        index_only: false,
        only_index_scans: false,
    };
    let process_cpu_share =
        usage.processes_cpu_s.map(|cpu_s| cpu_s / usage.seconds.max(f64::MIN_POSITIVE));
    let mut io = io::io(&usage, work, None);
    if let Some(io) = &mut io {
        // The counters of the process do not include reads by parallel workers and I/O workers.
        io.sources = None;
    }
    let client_use = ClientUse {
        usage: &usage,
        workers_s: &[],
        seconds,
        transactions: 1,
        sessions: 1,
        stalls: None,
        latency: None,
        shares_processors: client.shares_processors(),
    };
    let client_cpu = client_cpu(&client_use, plan);
    let stage = StageRecord {
        name,
        kind: "statement".to_owned(),
        statement: Some(StatementRecord {
            sql,
            tag: result.answer.tags.into_iter().next().unwrap_or_default(),
            plan: found,
            vacuum,
            process_cpu_share,
        }),
        database_s: Some(seconds),
        seconds,
        sessions: 1,
        transactions: 1,
        rows,
        statements: 1,
        throughput,
        session_loop: LoopRecord {
            // Stored for every kind of stage since schema 1.
            sessions_fairness: fairness(&[1]),
            ..LoopRecord::default()
        },
        io,
        client_cpu,
        ..with_counters(usage, caches, client)
    };
    StageRecord { cost: cost(&stage, 1), ..stage }
}
