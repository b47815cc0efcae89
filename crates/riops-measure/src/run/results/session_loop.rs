//! The stage record of a session loop.
//! Also how the mix of transactions compares with the requested one.

use super::client::{ClientUse, client_cpu};
use super::cost::cost;
use super::io;
use super::latencies::{latencies, steadiness_of};
use super::nodes::{imbalance_of, nodes};
use super::operations::{
    blocks_per_transaction, commands, execution, operations, outcomes, session_details,
};
use super::stage::with_counters;
use crate::engine::{SessionTally, StageResult};
use crate::metrics::{Counter, Fate};
use crate::probe::MachineUse;
use crate::run::parts::Measured;
use riops_model::plan::{Mix, Plan, Traits};
use riops_model::record::{
    ClientRecord, DrainedRecord, Fairness, Histogram, HistogramError, LateRecord, LoopRecord,
    MixRecord, OperationRecord, Queries, ScheduleRecord, StageKind, StageRecord, StepRecord,
    Throughput, WarmupRecord,
};

pub(in crate::run) fn stage(
    measured: Measured,
    plan: &Plan,
    client: &ClientRecord,
) -> Result<StageRecord, HistogramError> {
    let Measured { work, mut result, usage, caches, row_bytes } = measured;
    let heatmap = result.heatmap.take();
    let traits = work.traits();
    let counters = result.workers.recorder.counters();
    let transactions = counters.get(Counter::Transactions);
    let rows = counters.get(Counter::Rows);
    let statements = counters.get(Counter::Statements);
    let (service, response) = result.workers.recorder.latencies()?;
    let latencies = latencies(&service, response.as_ref(), heatmap, plan)?;
    let seconds = result.seconds;
    let throughput = Throughput::over(seconds, transactions, rows, statements);
    // A server-side loop that was interrupted did more work than it reported.
    let is_complete = !traits.has_server_loop
        || (!result.interrupted
            && result.workers.failure.is_none()
            && counters.get(Counter::Reconnects) == 0);
    let acknowledged = || result.workers.acknowledged.iter().filter(|_| is_complete);
    // A server-side loop reports only the failures of the measurement.
    let measured_failed = [Counter::Failed, Counter::Unknown, Counter::Retries];
    let measured_failed = measured_failed.map(|counter| counters.get(counter)).iter().sum();
    let work = io::Work {
        rows_per_s: throughput.rows_per_s,
        rows_acknowledged: acknowledged().map(|operation| operation.rows).sum(),
        failed: result.workers.unsuccessful.max(measured_failed),
        seconds,
        index_only: traits.index_only,
        only_index_scans: io::has_only_index_scans(&result.workers.findings),
    };
    let client_use = ClientUse {
        workers_s: &result.workers.worker_cpu_s,
        seconds,
        transactions,
        sessions: result.workers.sessions.len(),
        stalls: result.workers.recorder.poll_stalls.summary(),
        latency: latencies.latency_us().cloned(),
        shares_processors: client.shares_processors(),
    };
    let acknowledged = acknowledged().map(|operation| operation.transactions).sum();
    let storage = result.workers.findings.iter().find_map(|check| check.finding.storage);
    let started_at = Some(result.started_at);
    let stage = StageRecord {
        name: result.name.clone(),
        kind: if traits.has_server_loop { StageKind::ServerLoop } else { StageKind::Loop },
        database_s: Some(service.observed.total_s()),
        seconds,
        // A stage may have fewer sessions than the maximum of the plan.
        sessions: u32::try_from(result.workers.sessions.len()).unwrap_or(plan.sessions),
        transactions,
        rows,
        statements,
        throughput,
        io: io::io(&usage, work, storage),
        client_cpu: client_cpu(&usage, &client_use, plan),
        session_loop: session_loop(result, &usage, plan, &traits, row_bytes, latencies)?,
        started_at,
        ..with_counters(usage, caches, client)
    };
    Ok(StageRecord { cost: cost(&stage, acknowledged), ..stage })
}

fn session_loop(
    result: StageResult,
    usage: &MachineUse,
    plan: &Plan,
    traits: &Traits,
    row_bytes: Option<u64>,
    latencies: LoopRecord,
) -> Result<LoopRecord, HistogramError> {
    let (workers, recorder) = (&result.workers, &result.workers.recorder);
    let counters = recorder.counters();
    let outcomes = outcomes(&counters);
    let retries = counters.get(Counter::Retries);
    let sampled = usage.sampled.as_ref().filter(|sampled| sampled.looks > 0);
    let nodes = nodes(&result, &usage.nodes, outcomes.succeeded, traits.has_server_loop);
    let blocks_per_transaction = blocks_per_transaction(&result, usage.database.as_ref());
    let per_session: Vec<u64> = workers.sessions.iter().map(SessionTally::transactions).collect();
    let warmup = &workers.warmup_in_flight;
    let operations = operations(&result, &blocks_per_transaction)?;
    let sessions = u32::try_from(workers.sessions.len()).unwrap_or(plan.sessions);
    Ok(LoopRecord {
        batch: traits.batch,
        update_batch: traits.update_batch,
        method: traits.method.map(str::to_owned),
        row_bytes,
        outcomes: Some(outcomes),
        retries,
        retried: counters.get(Counter::Retried),
        connecting_s: Some(result.connecting.as_seconds()).filter(|_| !traits.has_server_loop),
        notices: result.notices,
        reconnects: counters.get(Counter::Reconnects),
        queries: Queries::from(&counters),
        attempt_us: (retries > 0).then(|| recorder.attempts.summary()).flatten(),
        longest_pause_s: recorder.gaps.longest_s().filter(|_| !traits.has_server_loop),
        execution_s: (!traits.has_server_loop).then(|| execution(&workers.sessions)),
        // If the wait events of the sessions were sampled.
        lock_waits: sampled.map(|sampled| sampled.lock_waits),
        imbalance: imbalance_of(&nodes),
        nodes,
        late: plan.latency_limit.map(|limit| LateRecord {
            limit_us: Some(limit.limit_s * 1e6),
            transactions: Some(counters.get(Counter::Late)),
            skipped: counters.get(Counter::Skipped),
        }),
        schedule: schedule(&result),
        steps: steps(&result, plan)?,
        warmup_in_flight: (warmup.transactions > 0).then(|| WarmupRecord {
            transactions: warmup.transactions,
            occupied_s: warmup.occupied.as_seconds(),
        }),
        server_clock_step_s: Some(workers.clock_step_s).filter(|&step_s| step_s != 0.0),
        connect_us: recorder.connects.summary(),
        mix: traits.mix.and_then(|mix| mix_of(&mix, &operations, sessions)),
        steadiness: steadiness_of(&result, traits),
        operations,
        commands: commands(&result)?,
        errors: recorder.errors.entries.clone(),
        unknown_commits: workers.unknown_transactions(),
        drained: DrainedRecord {
            transactions: workers.drained,
            max_us: (workers.drained > 0).then(|| workers.drained_max.as_micros()),
            lost: workers.drained_lost,
        },
        sessions_fairness: Fairness::from_transactions(&per_session),
        session_details: session_details(&result),
        ended_sessions: result.workers.ended_sessions,
        samples: result.samples,
        series: result.series,
        ..latencies
    })
}

/// The steps of the profile of the rate, if it has one.
fn steps(result: &StageResult, plan: &Plan) -> Result<Vec<StepRecord>, HistogramError> {
    let mut start_s = 0.0;
    let steps = plan.schedule.steps().iter().zip(&result.workers.recorder.steps.totals);
    steps
        .map(|(&step, totals)| {
            let counts = [Fate::Answered, Fate::Failed, Fate::Skipped, Fate::NotStarted];
            let [answered, failed, skipped, not_started] = counts.map(|fate| totals.count(fate));
            let unanswered = totals.count(Fate::Drained) + totals.count(Fate::Lost);
            let record = StepRecord {
                step,
                start_s,
                due: answered + failed + skipped + unanswered + not_started,
                answered,
                failed,
                skipped,
                unanswered,
                not_started,
                response_us: totals.response.summary()?,
            };
            start_s += step.seconds;
            Ok(record)
        })
        .collect()
}

fn schedule(result: &StageResult) -> Option<ScheduleRecord> {
    let starts = result.workers.starts?;
    let skipped = result.workers.recorder.counters().get(Counter::Skipped);
    Some(ScheduleRecord {
        intended: starts.intended,
        sent: starts.intended.saturating_sub(starts.waiting + skipped),
        skipped,
        waiting: starts.waiting,
        unanswered: result.workers.drained + result.workers.drained_lost,
        oldest_wait_us: starts.oldest_wait.as_micros(),
        backlog_at_start: starts.backlog_before,
        lag_max_us: Some(result.workers.recorder.lag_max.as_micros()),
        start_lag_us: result.workers.recorder.start_lag.as_ref().and_then(Histogram::summary),
    })
}

// Compares the executed mix of transactions with the requested one.

/// Number of standard errors that chance does not exceed: in 1 of 16,000 stages.
const STANDARD_ERRORS: f64 = 4.0;

/// Returns the requested and the executed share; `None` if nothing was executed.
pub(in crate::run) fn mix_of(
    asked: &Mix,
    operations: &[OperationRecord],
    sessions: u32,
) -> Option<MixRecord> {
    let transactions: u64 = operations.iter().map(|operation| operation.transactions).sum();
    if transactions == 0 {
        return None;
    }
    let amount = |operation: &OperationRecord| {
        if asked.of_rows { operation.rows } else { operation.transactions }
    };
    let all: u64 = operations.iter().map(amount).sum();
    let own = operations.iter().filter(|operation| operation.name == asked.operation).map(amount);
    let share = own.sum::<u64>() as f64 / all.max(1) as f64;
    let (own_weight, other_weight) = if asked.of_rows { asked.rows_each } else { (1, 1) };
    let one_each = own_weight.max(other_weight) as f64 * f64::from(sessions) / all.max(1) as f64;
    let asked_share = f64::from(asked.percent) / 100.0;
    let weights = Weights { own: own_weight as f64, other: other_weight as f64 };
    let error = standard_error(asked_share, &weights, transactions as f64);
    Some(MixRecord {
        operation: asked.operation.to_owned(),
        unit: if asked.of_rows { "rows" } else { "transactions" }.to_owned(),
        asked_percent: f64::from(asked.percent),
        executed_percent: 100.0 * share,
        chance_points: 100.0 * (STANDARD_ERRORS * error).max(one_each),
    })
}

/// Weights of a transaction of an operation, and of one of the other operations.
struct Weights {
    own: f64,
    other: f64,
}

/// Returns the standard error of the share of an operation in the sum of weights, if each of `transactions` is
/// chosen at random: the binomial error, multiplied by the derivative of the share (delta method).
fn standard_error(share: f64, weights: &Weights, transactions: f64) -> f64 {
    let Weights { own, other } = *weights;
    let chance = share / own / (share / own + (1.0 - share) / other);
    let mean = chance * own + (1.0 - chance) * other;
    own * other / (mean * mean) * (chance * (1.0 - chance) / transactions).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(percent: u8, of_rows: bool, reads: u64, updates: u64) -> MixRecord {
        let operation = |name: &str, transactions, rows| OperationRecord {
            name: name.to_owned(),
            transactions,
            rows,
            ..OperationRecord::default()
        };
        let asked = Mix { operation: "update", percent, of_rows, rows_each: (10, 100) };
        let operations =
            [operation("read", reads, 100 * reads), operation("update", updates, 10 * updates)];
        mix_of(&asked, &operations, 4).unwrap()
    }

    #[test]
    fn counts_rows_or_transactions() {
        let rows = executed(10, true, 900, 1_000);
        assert!((rows.executed_percent - 10.0).abs() < 1e-9 && rows.is_kept(), "{rows:?}");
        let transactions = executed(10, false, 900, 100);
        assert_eq!(
            (transactions.executed_percent, transactions.unit.as_str()),
            (10.0, "transactions")
        );
    }

    #[test]
    fn a_mix_is_missed_only_if_chance_is_excluded() {
        // One point off is accepted however many transactions there are.
        let near = executed(10, false, 910_000, 90_000);
        assert!(near.is_kept() && !near.is_missed());
        let missed = executed(10, false, 9_500, 500);
        assert!(!missed.is_kept() && missed.is_missed(), "{missed:?}");
        // 24 transactions explain no update at all; 1,000 do not.
        let short = executed(10, false, 24, 0);
        assert!(!short.is_kept() && !short.is_missed(), "{short:?}");
        assert!(executed(10, false, 1_000, 0).is_missed());
        // 5 transactions of each of 4 sessions, none of them an update.
        assert!(!executed(10, true, 20, 0).is_missed());
    }

    #[test]
    fn the_standard_error_is_binomial_for_equal_weights() {
        let weights = |other| Weights { own: 1_000.0, other };
        let error = standard_error(0.1, &weights(1_000.0), 900.0);
        assert!((error - 0.01).abs() < 1e-12, "{error}");
        // With rare updates of many rows, one transaction more or less changes the share more.
        assert!(standard_error(0.1, &weights(10.0), 900.0) > error);
    }

    #[test]
    fn a_stage_without_transactions_has_no_mix() {
        let asked = Mix { operation: "update", percent: 10, of_rows: true, rows_each: (1, 1) };
        assert_eq!(mix_of(&asked, &[], 1), None);
    }
}
