//! From what the engine measured to the record: rates, summaries, the verdict. Pure.

use jiff::Timestamp;
use uuid::Uuid;

use super::io;
use super::nodes::{imbalance_of, nodes};
use super::parts::{Ending, MeasuredStatement, Part, probes, statement};
use super::sessions::{execution, fairness, session_details};
use super::{
    AccessRecord, ClientCpu, ClientRecord, DrainedRecord, LateRecord, OperationRecord, Outcomes,
    Record, SCHEMA, ScheduleRecord, StageRecord, Status, TargetRecord, ThresholdRecord, Throughput,
    Verdict,
};
use crate::engine::{AccessFinding, Moment, SessionError, SessionTally, StageResult};
use crate::metrics::{
    Counter, Counters, Figures, Histogram, HistogramError, OperationTotals, Queries,
};
use crate::plan::{LoopSide, Method, RunPlan, Stop, Threshold, WorkPlan};
use crate::probe::MachineUse;
use crate::probe::caches::CacheState;
use crate::probe::database::DatabaseUse;
use crate::workload::access::Access;
use crate::workload::check::Check;

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

/// A stage that was run: what was measured of it, and what it was meant to do.
#[derive(Debug)]
pub struct Measured {
    /// What its sessions did: the part of the plan that is this stage's.
    pub work: WorkPlan,
    /// The engine's result.
    pub result: StageResult,
    /// What the probes have counted.
    pub usage: MachineUse,
    /// What was done to the caches before it.
    pub caches: Option<CacheState>,
    /// Bytes of one row, where somebody wants to know.
    pub row_bytes: Option<u64>,
}

/// What of a stage's work stands in its record.
#[derive(Default)]
struct WorkFacts {
    batch: Option<u64>,
    update_batch: Option<u64>,
    method: Option<String>,
    in_server: bool,
    index_only: bool,
}

impl WorkFacts {
    fn of(work: &WorkPlan) -> Self {
        match work {
            WorkPlan::Rows(run) => Self {
                batch: Some(run.batch),
                update_batch: run.updates().then(|| run.update_batch()),
                in_server: run.loop_side == LoopSide::Server,
                index_only: run.index_only,
                ..Self::default()
            },
            WorkPlan::Load(run) => Self {
                // A file is one statement, however many rows it has.
                batch: (run.method != Method::CopyFile).then_some(run.batch_size),
                method: Some(run.method.as_str().to_owned()),
                ..Self::default()
            },
            WorkPlan::Point(_) | WorkPlan::Oltp(_) | WorkPlan::Cbc(_) => Self::default(),
        }
    }
}

/// Makes the record of a run whose parts are loops.
///
/// # Errors
/// [`HistogramError`] where a histogram cannot be written.
pub fn build(
    context: RunContext,
    measured: Vec<Measured>,
    checks: Vec<Check>,
) -> Result<Record, HistogramError> {
    let parts = measured.into_iter().map(|each| Part::Loop(Box::new(each))).collect();
    build_parts(context, parts, checks, Ending::default())
}

/// Makes the record of a run.
///
/// # Errors
/// [`HistogramError`] where a histogram cannot be written.
pub fn build_parts(
    context: RunContext,
    parts: Vec<Part>,
    checks: Vec<Check>,
    ending: Ending,
) -> Result<Record, HistogramError> {
    let mut builder = Builder {
        several: parts.len() > 1,
        context: &context,
        stages: Vec::new(),
        accesses: Vec::new(),
        thresholds: Vec::new(),
        reasons: Vec::new(),
        failure: None,
        status: Status::Done,
    };
    for part in parts {
        match part {
            Part::Loop(measured) => builder.add_loop(*measured)?,
            Part::Statement(measured) => builder.add_statement(*measured),
        }
    }
    let Builder { stages, accesses, thresholds, mut reasons, mut failure, mut status, .. } =
        builder;
    if ending.interrupted && status == Status::Done {
        status = Status::Interrupted;
    }
    if let Some(reason) = ending.failure {
        status = Status::Failed;
        reasons.push(reason.clone());
        failure.get_or_insert(reason);
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
        stages,
        accesses,
        checks,
        thresholds,
        verdict: Verdict { valid: reasons.is_empty(), reasons },
    })
}

/// A record whose parts come one by one.
struct Builder<'a> {
    context: &'a RunContext,
    /// Whether there are several, so that each has to be named.
    several: bool,
    stages: Vec<StageRecord>,
    accesses: Vec<AccessRecord>,
    thresholds: Vec<ThresholdRecord>,
    reasons: Vec<String>,
    failure: Option<String>,
    status: Status,
}

impl Builder<'_> {
    fn add_loop(&mut self, each: Measured) -> Result<(), HistogramError> {
        let plan = &self.context.plan;
        let name = self.several.then(|| each.result.name.clone());
        let of_stage = name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let (stage_status, stage_failure) = ending(&each.result);
        if self.status == Status::Done {
            self.status = stage_status;
        }
        let wrong_replies = each.result.wrong_replies;
        let looks = accesses_of(&each.result.findings, &self.context.accesses, name.as_deref());
        self.thresholds.extend(thresholds_of(&each.result, plan, name.as_deref())?);
        let is_local = self.context.client.shares_machine_with_server;
        let stage = stage(each, plan, is_local)?;
        let mut add = |reason: String| self.reasons.push(format!("{of_stage}{reason}"));
        if let Some(stage_failure) = stage_failure {
            add(stage_failure.clone());
            self.failure.get_or_insert(stage_failure);
        }
        if let (WorkPlan::Load(_), Stop::Rows(rows)) = (&plan.work, plan.stop)
            && stage.rows < rows
        {
            add(format!("{} of {rows} rows were loaded", stage.rows));
        }
        // A select over a whole table may take longer than its stage: that is a result.
        if stage.transactions == 0 && !matches!(plan.work, WorkPlan::Cbc(_)) {
            add("no transaction ended within the measurement".to_owned());
        }
        for access in looks.iter().filter(|access| !access.held) {
            add(not_kept(access));
        }
        if wrong_replies > 0 {
            let what = match plan.work {
                WorkPlan::Point(_) => "no row, more than one, or a text of a wrong length",
                WorkPlan::Rows(_) | WorkPlan::Load(_) => "fewer or more rows than were asked for",
                WorkPlan::Oltp(_) => {
                    "fewer or more rows than were asked for, or a text of a wrong length: rows of the load are missing"
                }
                WorkPlan::Cbc(_) => "no row, or more than one",
            };
            add(format!("{wrong_replies} replies had {what}"));
        }
        if plan.strict && stage.client_cpu.as_ref().is_some_and(|cpu| cpu.limited) {
            add("the client was the limit: a worker had no idle time (--strict)".to_owned());
        }
        self.accesses.extend(looks);
        self.stages.push(stage);
        Ok(())
    }

    fn add_statement(&mut self, each: MeasuredStatement) {
        if let Some((access, finding)) = &each.finding {
            let record = AccessRecord {
                statement: access.statement.clone(),
                stage: Some(each.name.clone()),
                moment: "after".to_owned(),
                expected: access.expected.to_string(),
                found: finding.outline.clone(),
                held: finding.held,
                sessions: 1,
                storage: None,
            };
            if !record.held {
                self.reasons.push(format!("{}: {}", each.name, not_kept(&record)));
            }
            self.accesses.push(record);
        }
        self.stages.push(statement(each, self.context.client.shares_machine_with_server));
    }
}

fn not_kept(access: &AccessRecord) -> String {
    format!(
        "the access path of {} was not kept ({} the run)",
        access.statement,
        if access.moment == "middle" { "in the middle of" } else { &access.moment }
    )
}

/// How a stage ended, and why where that was not as planned.
fn ending(result: &StageResult) -> (Status, Option<String>) {
    let failure = result.failure.as_ref().map(ToString::to_string);
    // Who asks for the end during the drain ends the drain: that is no failure.
    let given_up = matches!(result.failure, Some(SessionError::Drain(_))) && result.interrupted;
    let status = match (&failure, result.interrupted) {
        (Some(_), _) if !given_up => Status::Failed,
        (None, false) => Status::Done,
        _ => Status::Interrupted,
    };
    (status, failure)
}

fn accesses_of(
    findings: &[AccessFinding],
    promised: &[Access],
    stage: Option<&str>,
) -> Vec<AccessRecord> {
    findings
        .iter()
        .map(|found| AccessRecord {
            statement: found.statement.clone(),
            stage: stage.map(str::to_owned),
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
            storage: found.finding.storage,
        })
        .collect()
}

/// What each threshold found.
fn thresholds_of(
    result: &StageResult,
    plan: &RunPlan,
    stage: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let totals = result.recorder.operations();
    let service = merged(totals, |totals| Some(&totals.service))?;
    let response = merged(totals, |totals| totals.response.as_ref())?;
    let response = plan.schedule.per_s().map(|_| &response);
    let figures = Figures {
        waiting: result.starts.map(|starts| starts.waiting),
        ..Figures::of_stage(&result.recorder, result.seconds, &service, response)
    };
    let judge = |threshold: &Threshold| {
        let found = figures.get(threshold.metric);
        let ended_run = result.breached.as_ref() == Some(threshold);
        ThresholdRecord {
            stage: stage.map(str::to_owned),
            threshold: threshold.clone(),
            found,
            // What ended the run was breached, whatever the last transactions made of it.
            held: !ended_run && found.is_some_and(|found| threshold.is_held_by(found)),
            ended_run,
        }
    };
    Ok(plan.thresholds.iter().map(judge).collect())
}

fn stage(
    measured: Measured,
    plan: &RunPlan,
    is_local: bool,
) -> Result<StageRecord, HistogramError> {
    let Measured { work, result, usage, caches, row_bytes } = measured;
    let facts = WorkFacts::of(&work);
    let totals = result.recorder.operations();
    let counters = result.recorder.counters();
    let transactions = counters.get(Counter::Transactions);
    let rows = counters.get(Counter::Rows);
    let statements = counters.get(Counter::Statements);
    let retries = counters.get(Counter::Retries);
    let reconnects = counters.get(Counter::Reconnects);
    let service = merged(totals, |totals| Some(&totals.service))?;
    let response = merged(totals, |totals| totals.response.as_ref())?;
    let seconds = result.seconds;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let transactions_each: Vec<u64> =
        result.sessions.iter().map(SessionTally::transactions).collect();
    let rows_per_s = per_second(rows);
    // A call that was given up has done more than it could say.
    let all_said =
        !facts.in_server || (!result.interrupted && result.failure.is_none() && reconnects == 0);
    let acknowledged = result.acknowledged.iter().filter(|_| all_said);
    let work = io::Work {
        rows_per_s,
        rows_acknowledged: acknowledged.map(|each| each.rows).sum(),
        seconds,
        index_only: facts.index_only,
    };
    let nodes = nodes(&result, &usage.nodes, (transactions, facts.in_server));
    let storage = result.findings.iter().find_map(|found| found.finding.storage);
    let blocks_per_transaction = blocks_per_transaction(&result, usage.database.as_ref());
    Ok(StageRecord {
        kind: if facts.in_server { "server_loop" } else { "loop" }.to_owned(),
        batch: facts.batch,
        update_batch: facts.update_batch,
        method: facts.method,
        caches,
        row_bytes,
        database_s: Some(service.total_s()),
        started_at: usage.started_at,
        seconds,
        // A stage may have fewer than the plan has at most.
        sessions: u32::try_from(result.sessions.len()).unwrap_or(plan.sessions),
        transactions,
        rows,
        statements,
        throughput: Throughput {
            transactions_per_s: per_second(transactions),
            rows_per_s,
            statements_per_s: per_second(statements),
        },
        service_us: service.summary(),
        response_us: response.summary(),
        histogram: Some(service.to_base64()?),
        response_histogram: (response.count() > 0).then(|| response.to_base64()).transpose()?,
        outcomes: Some(outcomes(&counters)),
        retries,
        reconnects,
        queries: Queries::from(&counters),
        attempt_us: (retries > 0).then(|| result.recorder.attempts.summary()).flatten(),
        percentile_us: [&response, &service]
            .into_iter()
            .find(|histogram| histogram.count() > 0)
            .map(|histogram| histogram.quantile(plan.percentile / 100.0).as_micros()),
        execution_s: (!facts.in_server).then(|| execution(&result.sessions)),
        lock_waits: usage.lock_waits,
        imbalance: imbalance_of(&nodes),
        nodes,
        late: plan.latency_limit.map(|limit| LateRecord {
            limit_us: limit.limit_s * 1e6,
            transactions: counters.get(Counter::Late),
            skipped: counters.get(Counter::Skipped),
        }),
        schedule: schedule(&result, counters.get(Counter::Skipped)),
        connect_us: result.recorder.connects.summary(),
        operations: operations(&result, &blocks_per_transaction)?,
        errors: result.recorder.errors().entries().to_vec(),
        unknown_commits: result.acknowledged.iter().map(|each| each.transactions_unknown).sum(),
        drained: DrainedRecord {
            transactions: result.drained,
            max_us: result.drained_max.as_micros(),
            lost: result.drained_lost,
        },
        sessions_fairness: fairness(&transactions_each),
        session_details: session_details(&result),
        io: io::io(&usage, work, storage),
        memory: usage.memory.filter(|_| is_local),
        pressure: usage.pressure.filter(|_| is_local),
        database: usage.database,
        client_cpu: client_cpu(usage.client_cpu_s, &result.worker_cpu_s, seconds, transactions)
            .map(|cpu| ClientCpu { away_us: result.recorder.away.summary(), ..cpu }),
        machine_busy_share: usage.machine_busy_share,
        process_io: usage.session_reads,
        probes: probes(usage.sampled, is_local),
        statement: None,
        name: result.name,
        samples: result.samples,
        series: result.series,
    })
}

fn outcomes(counters: &Counters) -> Outcomes {
    let succeeded = counters.get(Counter::Transactions);
    let failed = counters.get(Counter::Failed);
    let unknown = counters.get(Counter::Unknown);
    Outcomes { attempted: succeeded + failed + unknown, succeeded, failed, unknown }
}

fn schedule(result: &StageResult, skipped: u64) -> Option<ScheduleRecord> {
    let starts = result.starts?;
    Some(ScheduleRecord {
        intended: starts.intended,
        sent: starts.intended.saturating_sub(starts.waiting + skipped),
        skipped,
        waiting: starts.waiting,
        oldest_wait_us: starts.oldest_wait.as_micros(),
        start_lag_us: result.recorder.start_lag.as_ref().and_then(Histogram::summary),
    })
}

/// Block accesses of one transaction, by operation. Where there is one kind only, those of the stage
/// divided by its number; where there are two, those of a read as measured by themselves, and the
/// rest.
fn blocks_per_transaction(
    result: &StageResult,
    database: Option<&DatabaseUse>,
) -> Vec<Option<f64>> {
    let counts: Vec<f64> =
        result.acknowledged.iter().map(|each| each.transactions as f64).collect();
    let blocks = database.and_then(|database| database.blocks);
    let total = blocks.map(|blocks| blocks.accesses() as f64).filter(|&total| total > 0.0);
    let each = |total: f64, count: f64| (count > 0.0).then(|| total / count);
    match (total, counts.as_slice()) {
        (Some(total), &[reads, updates]) if reads > 0.0 && updates > 0.0 => {
            let per_read = database.and_then(|database| database.blocks_per_read);
            let rest = per_read.map(|per_read| (total - reads * per_read).max(0.0));
            vec![per_read, rest.and_then(|rest| each(rest, updates))]
        }
        (Some(total), counts) => counts.iter().map(|&count| each(total, count)).collect(),
        (None, counts) => vec![None; counts.len()],
    }
}

/// The operations that occurred.
fn operations(
    result: &StageResult,
    blocks: &[Option<f64>],
) -> Result<Vec<OperationRecord>, HistogramError> {
    result
        .operations
        .iter()
        .zip(result.recorder.operations())
        .zip(result.acknowledged.iter().zip(blocks))
        .filter(|((_, totals), (acknowledged, _))| {
            totals.counters.get(Counter::Transactions)
                + totals.counters.get(Counter::Failed)
                + acknowledged.transactions
                + acknowledged.transactions_unknown
                > 0
        })
        .map(|((name, totals), (acknowledged, &blocks_per_transaction))| {
            Ok(OperationRecord {
                blocks_per_transaction,
                name: (*name).to_owned(),
                transactions: totals.counters.get(Counter::Transactions),
                rows: totals.counters.get(Counter::Rows),
                acknowledged_transactions: acknowledged.transactions,
                acknowledged_rows: acknowledged.rows,
                unknown_rows: acknowledged.rows_unknown,
                effects: acknowledged.effects,
                unknown_effects: acknowledged.effects_unknown,
                failed: totals.counters.get(Counter::Failed),
                unknown: totals.counters.get(Counter::Unknown),
                response_us: totals.response.as_ref().and_then(Histogram::summary),
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

pub(super) fn client_cpu(
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
        worker_shares: workers_s.iter().map(|worker| worker / seconds).collect(),
        away_us: None,
        limited: share_of_client >= WORKER_BUSY_SHARE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
