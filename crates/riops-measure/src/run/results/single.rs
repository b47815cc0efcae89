//! The stage records without a session loop: of a statement that ran once, and of what riops observed.

use std::os::unix::process::ExitStatusExt as _;

use super::client::{ClientUse, client_cpu};
use super::cost::cost;
use super::io::{Work, io};
use super::stage::with_counters;
use crate::run::parts::{MeasuredObservation, MeasuredStatement};
use riops_model::plan::Plan;
use riops_model::record::{
    ClientRecord, CountRecord, Fairness, IoRecord, LoopRecord, ObservedRecord, QuerySeries,
    StageKind, StageRecord, StatementRecord, Throughput,
};
use riops_model::units::nearest_integer;

/// Returns the stage of a statement that ran once: one transaction of one session.
pub(in crate::run) fn statement(
    measured: MeasuredStatement,
    plan: &Plan,
    client: &ClientRecord,
) -> StageRecord {
    let MeasuredStatement {
        name, sql, result, rows, plan: server_plan, vacuum, usage, caches, ..
    } = measured;
    let seconds = result.seconds;
    let throughput = Throughput::over(seconds, 1, rows, 1);
    let rows_per_s = throughput.rows_per_s;
    let work = Work { rows_per_s, rows_acknowledged: rows, seconds, ..Work::default() };
    let process_cpu_share =
        usage.processes_cpu_s.map(|cpu_s| cpu_s / usage.seconds.max(f64::MIN_POSITIVE));
    // The counters of the process do not include reads by parallel workers and I/O workers.
    let io = io(&usage, work, None).map(|io| IoRecord { sources: None, ..io });
    let shares_processors = client.shares_processors();
    let own = ClientUse { seconds, transactions: 1, shares_processors, ..ClientUse::default() };
    let client_cpu = client_cpu(&usage, &own, plan);
    let stage = StageRecord {
        name,
        kind: StageKind::Statement,
        statement: Some(StatementRecord {
            sql,
            tag: result.answer.tags.into_iter().next().unwrap_or_default(),
            plan: server_plan,
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
            sessions_fairness: Fairness::from_transactions(&[1]),
            ..LoopRecord::default()
        },
        io,
        client_cpu,
        ..with_counters(usage, caches, client)
    };
    StageRecord { cost: cost(&stage, 1), ..stage }
}

/// Returns the stage. The counts of the first query are its transactions, at the times at which the values were read.
pub(in crate::run) fn observed(
    measured: MeasuredObservation,
    plan: &Plan,
    client: &ClientRecord,
) -> StageRecord {
    let MeasuredObservation { seconds, status, command_cpu_s, counts, series, mut usage, .. } =
        measured;
    let counted: Vec<CountRecord> =
        usage.queries.iter().take(counts).map(|query| count(query, seconds)).collect();
    usage.queries = usage.queries.split_off(counts.min(usage.queries.len()));
    let sessions = usage.sampled.as_ref().and_then(|sampled| sampled.observed_sessions);
    let sessions = u32::try_from(nearest_integer(sessions.unwrap_or(0.0))).unwrap_or(u32::MAX);
    let main = counted.first().cloned().unwrap_or_default();
    let transactions = nearest_integer(main.count);
    let mut throughput = Throughput::over(seconds, transactions, 0, 0);
    throughput.transactions_per_s = main.per_s;
    let shares_processors = client.shares_processors();
    let own = ClientUse { seconds, transactions, shares_processors, ..ClientUse::default() };
    let stage = StageRecord {
        name: "observe".to_owned(),
        kind: StageKind::Observed,
        observed: Some(ObservedRecord {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            // Counted in ticks of 10 ms.
            command_cpu_s: command_cpu_s.filter(|&cpu_s| status.is_some() && cpu_s > 0.0),
            counts: counted,
        }),
        seconds,
        sessions,
        transactions,
        throughput,
        session_loop: LoopRecord { series, ..LoopRecord::default() },
        io: io(&usage, Work { seconds, ..Work::default() }, None),
        client_cpu: client_cpu(&usage, &own, plan),
        ..with_counters(usage, None, client)
    };
    StageRecord { cost: cost(&stage, transactions), ..stage }
}

/// The difference of the first and the last value, and its rate between them.
fn count(series: &QuerySeries, seconds: f64) -> CountRecord {
    let ends = series.points.first().zip(series.points.last());
    let (count, time_s) = ends
        .map_or((0.0, seconds), |(first, last)| (last.value - first.value, last.t_s - first.t_s));
    let per_s = if time_s > 0.0 { count / time_s } else { 0.0 };
    CountRecord { name: series.name.clone(), count, per_s }
}
