//! From what the engine measured to the record: rates, summaries, the verdict. Pure.

use jiff::Timestamp;
use uuid::Uuid;

use super::record::{
    AccessRecord, ClientCpu, ClientRecord, DrainedRecord, Fairness, IoRecord, OperationRecord,
    Record, SCHEMA, StageRecord, Status, TargetRecord, Throughput, Verdict,
};
use crate::engine::{AccessFinding, Moment, StageResult};
use crate::metrics::{Histogram, HistogramError, OperationTotals};
use crate::plan::RunPlan;
use crate::probe::MachineUse;
use crate::workload::access::Access;
use crate::workload::verify::Check;

/// A worker this busy has no time left: what it measures may be itself.
const WORKER_BUSY_SHARE: f64 = 0.9;

/// Everything around the measurement.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The run's id.
    pub id: Uuid,
    /// When it started.
    pub started_at: Timestamp,
    /// The workload's name.
    pub workload: String,
    /// The plan.
    pub plan: RunPlan,
    /// The target.
    pub target: TargetRecord,
    /// The client.
    pub client: ClientRecord,
    /// The promises of the statements.
    pub accesses: Vec<Access>,
}

/// Makes the record of a run with one stage.
///
/// # Errors
/// [`HistogramError`] where a histogram cannot be written.
pub fn build(
    context: RunContext,
    result: StageResult,
    usage: MachineUse,
    checks: Vec<Check>,
) -> Result<Record, HistogramError> {
    let accesses = accesses(&result.findings, &context.accesses);
    let failure = result.failure.as_ref().map(ToString::to_string);
    let status = match (&failure, result.interrupted) {
        (Some(_), _) => Status::Failed,
        (None, true) => Status::Interrupted,
        (None, false) => Status::Done,
    };
    let wrong_replies = result.wrong_replies;
    let stage = stage(result, usage, &context.plan)?;
    let mut reasons = Vec::new();
    if let Some(failure) = &failure {
        reasons.push(failure.clone());
    }
    if stage.transactions == 0 {
        reasons.push("no transaction ended within the measurement".to_owned());
    }
    for access in accesses.iter().filter(|access| !access.held) {
        reasons.push(format!(
            "the access path of {} was not kept ({} the run)",
            access.statement,
            if access.moment == "middle" { "in the middle of" } else { &access.moment }
        ));
    }
    if wrong_replies > 0 {
        reasons.push(format!("{wrong_replies} replies had fewer or more rows than were asked for"));
    }
    for check in checks.iter().filter(|check| !check.held) {
        reasons.push(format!("{}: expected {}, found {}", check.name, check.expected, check.found));
    }
    Ok(Record {
        schema: SCHEMA,
        id: context.id,
        started_at: context.started_at,
        workload: context.workload,
        label: context.plan.label.clone(),
        tags: context.plan.tags.clone(),
        plan: context.plan,
        status,
        failure,
        target: context.target,
        client: context.client,
        stages: vec![stage],
        accesses,
        checks,
        verdict: Verdict { valid: reasons.is_empty(), reasons },
    })
}

fn accesses(findings: &[AccessFinding], promised: &[Access]) -> Vec<AccessRecord> {
    findings
        .iter()
        .map(|found| AccessRecord {
            statement: found.statement.clone(),
            moment: match found.moment {
                Moment::Before => "before",
                Moment::Middle => "middle",
                Moment::After => "after",
            }
            .to_owned(),
            expected: promised
                .iter()
                .find(|access| access.statement == found.statement)
                .map(|access| access.expected.to_string())
                .unwrap_or_default(),
            found: found.finding.outline.clone(),
            held: found.finding.held,
            sessions: found.sessions,
        })
        .collect()
}

fn stage(
    result: StageResult,
    usage: MachineUse,
    plan: &RunPlan,
) -> Result<StageRecord, HistogramError> {
    let totals = result.recorder.operations();
    let sum = |pick: fn(&OperationTotals) -> u64| totals.iter().map(pick).sum::<u64>();
    let transactions = sum(|totals| totals.transactions);
    let rows = sum(|totals| totals.rows);
    let statements = sum(|totals| totals.statements);
    let service = merged(totals, |totals| Some(&totals.service))?;
    let response = merged(totals, |totals| totals.response.as_ref())?;
    let seconds = result.seconds;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    Ok(StageRecord {
        kind: "loop".to_owned(),
        seconds,
        sessions: plan.sessions,
        transactions,
        rows,
        statements,
        throughput: Throughput {
            transactions_per_s: per_second(transactions),
            rows_per_s: per_second(rows),
            statements_per_s: per_second(statements),
        },
        service_us: service.summary(),
        response_us: response.summary(),
        histogram: Some(service.to_base64()?),
        operations: operations(&result)?,
        errors: result.recorder.errors().entries().to_vec(),
        unknown_commits: result.acknowledged.iter().map(|each| each.transactions_unknown).sum(),
        drained: DrainedRecord {
            transactions: result.drained,
            max_us: result.drained_max.as_micros(),
        },
        sessions_fairness: fairness(&result.session_transactions),
        io: usage.device.map(|device| IoRecord { piops: device.reads_per_s, device }),
        client_cpu: client_cpu(usage.client_cpu_s, &result.worker_cpu_s, seconds, transactions),
        machine_busy_share: usage.machine_busy_share,
        name: result.name,
        series: result.series,
    })
}

/// The operations that occurred.
fn operations(result: &StageResult) -> Result<Vec<OperationRecord>, HistogramError> {
    result
        .operations
        .iter()
        .zip(result.recorder.operations())
        .zip(&result.acknowledged)
        .filter(|((_, totals), acknowledged)| {
            totals.transactions + acknowledged.transactions + acknowledged.transactions_unknown > 0
        })
        .map(|((name, totals), acknowledged)| {
            Ok(OperationRecord {
                name: (*name).to_owned(),
                transactions: totals.transactions,
                rows: totals.rows,
                acknowledged_transactions: acknowledged.transactions,
                acknowledged_rows: acknowledged.rows,
                unknown_rows: acknowledged.rows_unknown,
                service_us: totals.service.summary(),
                histogram: Some(totals.service.to_base64()?),
            })
        })
        .collect()
}

fn merged<'a>(
    totals: &'a [OperationTotals],
    pick: impl Fn(&'a OperationTotals) -> Option<&'a Histogram>,
) -> Result<Histogram, HistogramError> {
    let mut all = Histogram::new()?;
    for histogram in totals.iter().filter_map(pick) {
        all.merge(histogram)?;
    }
    Ok(all)
}

fn client_cpu(
    process_s: Option<f64>,
    workers_s: &[f64],
    seconds: f64,
    transactions: u64,
) -> Option<ClientCpu> {
    let process_s = process_s?;
    if seconds <= 0.0 {
        return None;
    }
    let share_of_client = workers_s.iter().copied().fold(0.0, f64::max) / seconds;
    Some(ClientCpu {
        seconds: process_s,
        us_per_transaction: (transactions > 0).then(|| process_s * 1e6 / transactions as f64),
        share_of_client,
        limited: share_of_client >= WORKER_BUSY_SHARE,
    })
}

fn fairness(transactions: &[u64]) -> Fairness {
    let count = transactions.len().max(1) as f64;
    let mean = transactions.iter().sum::<u64>() as f64 / count;
    let variance =
        transactions.iter().map(|&each| (each as f64 - mean).powi(2)).sum::<f64>() / count;
    Fairness {
        min: transactions.iter().copied().min().unwrap_or(0),
        mean,
        max: transactions.iter().copied().max().unwrap_or(0),
        stdev: variance.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_the_spread_over_the_sessions() {
        let found = fairness(&[10, 20, 30]);
        assert_eq!((found.min, found.max), (10, 30));
        assert!((found.mean - 20.0).abs() < 1e-9 && (found.stdev - 8.165).abs() < 1e-3);
    }

    #[test]
    fn a_worker_without_idle_time_is_a_limit() {
        let free = client_cpu(Some(5.0), &[2.0, 3.0], 10.0, 1_000).unwrap();
        assert!(!free.limited);
        assert_eq!(free.us_per_transaction, Some(5_000.0));
        let busy = client_cpu(Some(12.0), &[2.0, 9.5], 10.0, 0).unwrap();
        assert!(busy.limited);
        assert_eq!(busy.us_per_transaction, None);
    }
}
