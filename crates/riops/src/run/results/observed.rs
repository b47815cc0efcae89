//! The stage record of what riops observed.

use std::os::unix::process::ExitStatusExt as _;

use super::client::{ClientUse, client_cpu};
use super::cost::cost;
use super::io;
use super::sessions::fairness;
use super::stage::{throughput, with_counters};
use crate::plan::Plan;
use crate::record::{
    ClientRecord, CountRecord, LoopRecord, ObservedRecord, QuerySeries, StageRecord,
};
use crate::run::parts::MeasuredObservation;

/// Returns the stage. What the first query counted is its transactions, at the times at which the values were read.
pub(in crate::run) fn observed(
    measured: MeasuredObservation,
    plan: &Plan,
    client: &ClientRecord,
) -> StageRecord {
    let MeasuredObservation { seconds, status, command_cpu_s, counts, series, mut usage, .. } =
        measured;
    let counted: Vec<CountRecord> =
        usage.queries.iter().take(counts).map(|each| count(each, seconds)).collect();
    usage.queries = usage.queries.split_off(counts.min(usage.queries.len()));
    let sessions = usage.sampled.as_ref().and_then(|sampled| sampled.observed_sessions);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of sessions"
    )]
    let sessions = sessions.unwrap_or(0.0).round() as u32;
    let main = counted.first().cloned().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let transactions = main.count.max(0.0).round() as u64;
    let mut throughput = throughput(seconds, transactions, 0, 0);
    throughput.transactions_per_s = main.per_s;
    let work = io::Work {
        rows_per_s: 0.0,
        rows_acknowledged: 0,
        failed: 0,
        seconds,
        index_only: false,
        only_index_scans: false,
    };
    let client_use = ClientUse {
        usage: &usage,
        workers_s: &[],
        seconds,
        transactions,
        sessions: 0,
        stalls: None,
        latency: None,
        shares_processors: client.shares_processors(),
    };
    let stage = StageRecord {
        name: "observe".to_owned(),
        kind: "observed".to_owned(),
        observed: Some(ObservedRecord {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            command_cpu_s: command_cpu_s.filter(|_| status.is_some()),
            counts: counted,
        }),
        seconds,
        sessions,
        transactions,
        throughput,
        session_loop: LoopRecord {
            // Stored for every kind of stage since schema 1.
            sessions_fairness: fairness(&[]),
            series,
            ..LoopRecord::default()
        },
        io: io::io(&usage, work, None),
        client_cpu: client_cpu(&client_use, plan),
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
