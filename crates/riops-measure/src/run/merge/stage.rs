//! One stage of all clients.

use super::fit::{MergeError, Window};
use super::session_loop;
use crate::run::results::cost::cost;
use riops_model::plan::Plan;
use riops_model::record::{ClientCpu, ClientLimit, IoRecord, StageRecord, Throughput};

/// Returns the stage of all clients.
pub(super) fn merged(
    stages: &[&StageRecord],
    window: &Window,
    plan: &Plan,
) -> Result<StageRecord, MergeError> {
    let Some(first) = stages.first() else {
        return Ok(StageRecord::default());
    };
    let sum = |pick: fn(&StageRecord) -> u64| stages.iter().map(|stage| pick(stage)).sum::<u64>();
    let (transactions, rows) = (sum(|stage| stage.transactions), sum(|stage| stage.rows));
    let statements = sum(|stage| stage.statements);
    let seconds = window.seconds();
    let session_loop = session_loop::merged(stages, window, plan)?;
    let rates = Throughput::over(seconds, transactions, rows, statements);
    let rates = match common_rates(&session_loop.series, statements, transactions) {
        Some(of_intervals) if !window.is_one() => of_intervals,
        _ => rates,
    };
    let acknowledged =
        session_loop.operations.iter().map(|operation| operation.acknowledged_transactions);
    let acknowledged = acknowledged.sum();
    let seconds_of_sessions = stages.iter().filter_map(|stage| stage.database_s);
    let stage = StageRecord {
        database_s: window.is_one().then(|| seconds_of_sessions.sum()),
        started_at: stages.iter().filter_map(|stage| stage.started_at).max(),
        seconds,
        sessions: stages.iter().map(|stage| stage.sessions).sum(),
        transactions,
        rows,
        statements,
        throughput: rates,
        io: first.io.clone().map(|io| io_of_all(io, rates.rows_per_s)),
        client_cpu: client_cpu(stages, transactions),
        server_cpu_s: stages.iter().find_map(|stage| stage.server_cpu_s),
        server_run_queue_s: stages.iter().find_map(|stage| stage.server_run_queue_s),
        // Each client observes only its own machine.
        neighbors: None,
        machine_busy_share: None,
        context_switches: None,
        pressure: stages.iter().find_map(|stage| stage.pressure),
        // These values cover one client only.
        network: first.network.filter(|_| stages.len() == 1),
        process_io: first.process_io.filter(|_| stages.len() == 1),
        server_instructions_per_s: stages.iter().find_map(|stage| stage.server_instructions_per_s),
        profile: stages.iter().find_map(|stage| stage.profile.clone()),
        session_loop,
        ..(*first).clone()
    };
    // If the windows differ, counters and counts cover different times.
    let cost = cost(&stage, acknowledged).filter(|_| window.is_one());
    Ok(StageRecord { cost, ..stage })
}

/// Returns the rates over the intervals that all clients have in common; `None` without any.
fn common_rates(
    series: &[riops_model::record::Point],
    statements: u64,
    transactions: u64,
) -> Option<Throughput> {
    let seconds: f64 = series.iter().map(|point| point.seconds).sum();
    let counted: u64 = series.iter().map(|point| point.transactions).sum();
    let rows = series.iter().map(|point| point.rows).sum();
    // Statements are not counted by interval.
    let statements = u128::from(statements) * u128::from(counted) / u128::from(transactions.max(1));
    let statements = u64::try_from(statements).unwrap_or(u64::MAX);
    (seconds > 0.0).then(|| Throughput::over(seconds, counted, rows, statements))
}

/// Returns the I/O of all clients. Each client counts the blocks of all clients, so that its own blocks per row are too
/// many.
fn io_of_all(io: IoRecord, rows_per_s: f64) -> IoRecord {
    let per_row = |liops: f64| (rows_per_s > 0.0).then(|| liops / rows_per_s);
    IoRecord {
        blocks_per_row: io.liops.and_then(per_row).filter(|_| io.blocks_per_row.is_some()),
        ..io
    }
}

fn client_cpu(stages: &[&StageRecord], transactions: u64) -> Option<ClientCpu> {
    let parts: Option<Vec<&ClientCpu>> =
        stages.iter().map(|stage| stage.client_cpu.as_ref()).collect();
    let parts = parts?;
    let most = |pick: fn(&ClientCpu) -> Option<f64>| {
        parts.iter().filter_map(|part| pick(part)).max_by(f64::total_cmp)
    };
    let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
    let is_known = parts.iter().all(|part| part.us_per_transaction.is_some());
    let has = |limit: &ClientLimit| parts.iter().any(|part| part.limits.contains(limit));
    Some(ClientCpu {
        seconds,
        us_per_transaction: (is_known && transactions > 0)
            .then(|| seconds * 1e6 / transactions as f64),
        share_of_client: most(|part| Some(part.share_of_client)).unwrap_or(0.0),
        worker_shares: parts.iter().flat_map(|part| part.worker_shares.clone()).collect(),
        run_queue_share: most(|part| part.run_queue_share),
        connector_share: most(|part| part.connector_share),
        throttled_share: most(|part| part.throttled_share),
        // The stalls of each client are compared with its own latency.
        away_us: None,
        limits: ClientLimit::ALL.into_iter().filter(has).collect(),
        limited: parts.iter().any(|part| part.limited),
    })
}
