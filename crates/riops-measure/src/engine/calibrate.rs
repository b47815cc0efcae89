//! Calibration: measures the maximum throughput of this client with the null server.

use super::{EngineError, Hooks, NullServer, StageResult, run_stage};
use crate::host::Interrupt;
use crate::metrics::Counter;
use crate::probe::Probe;
use crate::server::{ConnInfo, ConnectionError, Nodes};
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::values::BIGINT_OID;
use crate::workload::{Generator, SessionPlan, Stage, Statement, Work};
use riops_model::plan::{Plan, Stop};
use riops_model::record::diagnosis::Calibration;

/// Generates one-row reads, as the workload `rows` does.
struct OneRow;

impl Generator for OneRow {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(0, 1);
        tx.execute(0, &[1, 1]);
        tx.end_step();
        true
    }

    fn reply(&mut self, tx: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
        outcome.wrong |= reply.first_bigint() != Some(tx.expected_rows().cast_signed());
    }
}

/// Measures the client for `seconds`, after a warm-up of 0.5 s.
///
/// # Errors
/// Returns [`EngineError`] if the null server cannot be started or the measurement fails.
pub fn calibrate(
    sessions: u32,
    workers: u32,
    seconds: f64,
    interrupt: &Interrupt,
) -> Result<Calibration, EngineError> {
    let server = NullServer::start(sessions as usize)?;
    let target = ConnInfo::parse(&server.conninfo(), |_| None).map_err(|error| {
        let source = ConnectionError::Protocol(error.to_string());
        EngineError::Connect { session: 1, sessions: sessions as usize, source }
    })?;
    let statement = Statement {
        name: "read".to_owned(),
        sql: "select $1, $2".to_owned(),
        parameter_types: vec![BIGINT_OID; 2],
    };
    let session = |_| SessionPlan {
        settings: Vec::new(),
        statements: vec![statement.clone()],
        watched: 0..0,
        work: Work::Client(Box::new(OneRow)),
    };
    let stage = Stage {
        name: "null".to_owned(),
        operations: vec!["read".into()],
        changes: vec![false],
        sessions: (0..sessions).map(session).collect(),
        explain_by_name: true,
        ..Stage::default()
    };
    let plan = Plan {
        sessions,
        workers,
        warmup_s: 0.5,
        stop: Stop::DurationS(seconds),
        ..Plan::default()
    };
    let mut probe = Probe::machine(None);
    let result = run_stage(
        stage,
        Vec::new(),
        &plan,
        &Nodes::single(&target),
        interrupt,
        &mut probe,
        &mut Hooks::default(),
    )?;
    Ok(calibration(&plan, &result))
}

fn calibration(plan: &Plan, result: &StageResult) -> Calibration {
    let operations = &result.workers.recorder.operations;
    let transactions = result.workers.recorder.counters().get(Counter::Transactions);
    let worker_s: f64 = result.workers.worker_cpu_s.iter().sum();
    let cpu_us = worker_s * 1e6 / transactions.max(1) as f64;
    Calibration {
        sessions: plan.sessions,
        workers: plan.workers,
        seconds: result.seconds,
        transactions_per_s: transactions as f64 / result.seconds.max(f64::MIN_POSITIVE),
        cpu_us_per_transaction: cpu_us,
        transactions_per_s_and_cpu: 1e6 / cpu_us.max(f64::MIN_POSITIVE),
        service_us: operations.first().and_then(|totals| totals.service.observed.summary()),
        away_us: result.workers.recorder.poll_stalls.summary(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_throughput_and_cpu_cost_against_the_null_server() {
        let calibration = calibrate(3, 2, 0.2, &Interrupt::new()).unwrap();
        assert!(calibration.transactions_per_s > 0.0 && calibration.cpu_us_per_transaction > 0.0);
        let product = calibration.transactions_per_s_and_cpu * calibration.cpu_us_per_transaction;
        assert!((product - 1e6).abs() < 1.0);
        assert!(calibration.service_us.unwrap().p50 > 0.0);
    }
}
