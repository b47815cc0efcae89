//! One record of runs that took place at the same time on the same server, from several clients.
//!
//! Counts and histograms are added, so percentiles cover all transactions. Values that cannot be added are absent:
//! percentiles without a histogram. Counters of the server come from the first client, because each client reads the
//! same ones. Pure: reads records, and returns one.

/// Adds these fields of another value to the fields of a sum.
macro_rules! add {
    ($sum:ident, $value:expr, $($field:ident),+ $(,)?) => {
        { $($sum.$field += $value.$field;)+ }
    };
}

/// Returns the sum of these fields over the values that have the part.
macro_rules! total {
    ($values:ident, $part:ident: $($field:ident),+) => {
        $values.iter().filter_map(|value| value.$part).reduce(|mut sum, value| {
            add!(sum, value, $($field),+);
            sum
        })
    };
}

mod fit;
mod series;
mod session_loop;
mod stage;
mod verdict;

use uuid::Uuid;

pub use fit::{MergeError, Part, differing_plans};
pub use series::merged_point;

use riops_model::plan::{Plan, Stop};
use riops_model::record::{
    AgentPoint, AgentRecord, AgentStage, Check, Point, Record, StageRecord, Status, Verdict,
};

/// Merges runs that took place at the same time. `full_plan` is the plan that they share, with its thresholds; without it,
/// the sessions and rates of their plans are added.
///
/// # Errors
/// [`MergeError::Unfit`] if the runs are not parts of one load: their plans, servers or datasets differ, or they did not
/// take place at the same time.
pub fn merge(
    id: Uuid,
    mut parts: Vec<Part>,
    full_plan: Option<&Plan>,
) -> Result<Record, MergeError> {
    parts.sort_by_key(|part| part.agent.number);
    if full_plan.is_some() {
        // Runs that are given by hand are complete, or refused.
        parts.iter_mut().for_each(Part::leave_out_unmeasured);
    }
    let records: Vec<&Record> = parts.iter().filter_map(|part| part.record.as_ref()).collect();
    let Some(first) = records.first() else {
        return Err(MergeError::Unfit("no client has a result".to_owned()));
    };
    fit::require_fit(&records)?;
    let plan = full_plan.cloned().unwrap_or_else(|| plan_of_all(&records));
    let mut merged = Record {
        id,
        started_at: records
            .iter()
            .map(|record| record.started_at)
            .min()
            .unwrap_or(first.started_at),
        label: plan.label.clone(),
        tags: plan.tags.clone(),
        status: worst(&records),
        failure: records.iter().find_map(|record| record.failure.clone()),
        agents: Vec::new(),
        stages: Vec::new(),
        accesses: Vec::new(),
        unknown_outcomes: total!(records, unknown_outcomes: applied, not_applied, unresolved),
        checks: checks(&parts),
        thresholds: Vec::new(),
        verdict: Verdict::default(),
        plan,
        ..(*first).clone()
    };
    merged.client.workers = records.iter().map(|record| record.client.workers).sum();
    let lengths = || records.iter().map(|record| record.stages.len());
    let common = lengths().min().unwrap_or(0);
    if lengths().any(|length| length > common) {
        merged.verdict.reasons.push(format!(
            "not all agents did all stages: those after the first {common} are left out"
        ));
    }
    let mut judge = verdict::Judge::new(&parts, &mut merged);
    for position in 0..common {
        let stages: Vec<&StageRecord> =
            records.iter().filter_map(|record| record.stages.get(position)).collect();
        let plan = &judge.merged.plan;
        let window = fit::Window::from_stages(&stages, plan)?;
        let stage = stage::merged(&stages, &window, plan)?;
        judge.add(stage, &window)?;
    }
    judge.finish();
    let keeps = merged.plan.keep_agents;
    merged.agents = parts.iter().map(|part| agent(part, keeps)).collect();
    Ok(merged)
}

/// Returns the plan of clients that were started by hand.
fn plan_of_all(records: &[&Record]) -> Plan {
    let Some(first) = records.first() else {
        return Plan::default();
    };
    let sum = |pick: fn(&Plan) -> u32| records.iter().map(|record| pick(&record.plan)).sum::<u32>();
    let per_s = |plan: &Plan| plan.schedule.per_s().unwrap_or(0.0);
    let all: f64 = records.iter().map(|record| per_s(&record.plan)).sum();
    let count = |pick: fn(Stop) -> u64| records.iter().map(|record| pick(record.plan.stop)).sum();
    Plan {
        sessions: match first.plan.share {
            Some(_) => first.plan.sessions,
            None => sum(|plan| plan.sessions),
        },
        workers: sum(|plan| plan.workers),
        share: None,
        schedule: first.plan.schedule.scaled(all / per_s(&first.plan).max(f64::MIN_POSITIVE)),
        stop: match first.plan.stop {
            Stop::DurationS(seconds) => Stop::DurationS(seconds),
            Stop::Transactions(_) => Stop::Transactions(count(Stop::count)),
            Stop::Rows(_) => Stop::Rows(count(Stop::count)),
        },
        ..first.plan.clone()
    }
}

/// Returns the status of the client whose run ended worst.
fn worst(records: &[&Record]) -> Status {
    let has = |status| records.iter().any(|record| record.status == status);
    [Status::Failed, Status::Interrupted]
        .into_iter()
        .find(|&status| has(status))
        .unwrap_or(Status::Done)
}

/// Returns the checks of all clients. If only one client checked the data, its checks cover the data of all clients.
fn checks(parts: &[Part]) -> Vec<Check> {
    let checked = || {
        let records = parts.iter().filter_map(|part| Some((part, part.record.as_ref()?)));
        records.filter(|(_, record)| !record.checks.is_empty())
    };
    let several = checked().count() > 1;
    let named = |part: &Part, check: &Check| {
        let name = format!("agent {}: {}", part.agent.number, check.name);
        if several { Check { name, ..check.clone() } } else { check.clone() }
    };
    checked()
        .flat_map(|(part, record)| record.checks.iter().map(|check| named(part, check)))
        .collect()
}

/// Returns the client with its share of each stage; with its time series and its histogram if the plan `keeps` them.
fn agent(part: &Part, keeps: bool) -> AgentRecord {
    let Some(record) = &part.record else {
        return part.agent.clone();
    };
    let point = |point: &Point| AgentPoint {
        t_s: point.t_s,
        seconds: point.seconds,
        transactions: point.transactions,
    };
    let stage = |stage: &StageRecord| AgentStage {
        started_at: stage.started_at,
        seconds: stage.seconds,
        sessions: stage.sessions,
        transactions: stage.transactions,
        transactions_per_s: stage.throughput.transactions_per_s,
        latency_us: stage.session_loop.latency_us().cloned(),
        client_cpu: stage.client_cpu.clone(),
        histogram: stage.session_loop.latency_histogram().filter(|_| keeps).cloned(),
        series: stage.session_loop.series.iter().filter(|_| keeps).map(point).collect(),
    };
    AgentRecord {
        run: Some(record.id),
        client: Some(record.client.clone()),
        status: Some(record.status),
        failure: part.agent.failure.clone().or_else(|| record.failure.clone()),
        stages: record.stages.iter().map(stage).collect(),
        ..part.agent.clone()
    }
}

#[cfg(test)]
mod tests;
