//! The session loops of all clients as one.

use std::collections::BTreeMap;

use super::fit::Window;
use super::series::{heatmap, queries, series};
use crate::metrics::{Slot, steadiness};
use crate::run::results::latencies::latencies;
use crate::run::results::nodes::imbalance_of;
use crate::run::results::operations::SESSIONS_STORED_MAX;
use crate::run::results::session_loop::mix_of;
use riops_model::plan::Plan;
use riops_model::record::{
    CommandRecord, DrainedRecord, Effects, EndedSessionRecord, ErrorEntry, Execution, Fairness,
    Histogram, HistogramError, Latencies, LatencyKind, LatencySummary, LockWaits, LoopRecord,
    NodeRecord, OperationRecord, Queries, ScheduleRecord, SessionRecord, StageRecord, StepRecord,
    StoredHistogram, TableEffects,
};

/// Maximum number of other error messages, as in the run of one client.
const SAMPLES_MAX: usize = 4;

/// Merges the loops of all clients into one. Values that only the clients' own histograms could provide are absent.
pub(super) fn merged(
    stages: &[&StageRecord],
    window: &Window,
    plan: &Plan,
) -> Result<LoopRecord, HistogramError> {
    let loops: Vec<&LoopRecord> = stages.iter().map(|stage| &stage.session_loop).collect();
    let Some(first) = loops.first() else {
        return Ok(LoopRecord::default());
    };
    let sum = |pick: fn(&LoopRecord) -> u64| loops.iter().map(|record| pick(record)).sum::<u64>();
    let times = times(&loops, window, plan)?;
    let series = series(stages, window, plan)?;
    let operations = operations(&loops, times.response_us.as_ref())?;
    let sessions = stages.iter().map(|stage| stage.sessions).sum();
    let transactions = stages.iter().map(|stage| stage.transactions).sum::<u64>();
    let nodes = nodes(&loops, transactions);
    let rows_each =
        stages.iter().map(|stage| stage.rows).sum::<u64>() as f64 / (transactions as f64).max(1.0);
    let statements = loops.iter().map(|record| record.queries);
    let lock_waits = loops.iter().filter_map(|record| record.lock_waits);
    let connecting = loops.iter().filter_map(|record| record.connecting_s);
    let steps_s = loops.iter().filter_map(|record| record.server_clock_step_s);
    Ok(LoopRecord {
        batch: first.batch,
        update_batch: first.update_batch,
        method: first.method.clone(),
        row_bytes: first.row_bytes,
        outcomes: total!(loops, outcomes: attempted, succeeded, failed, unknown),
        retries: sum(|record| record.retries),
        retried: sum(|record| record.retried),
        connecting_s: connecting.max_by(f64::total_cmp),
        ended_sessions: ended_sessions(&loops),
        notices: sum(|record| record.notices),
        reconnects: sum(|record| record.reconnects),
        queries: statements.fold(Queries::default(), queries),
        execution_s: execution(stages),
        // Each client samples its own sessions.
        lock_waits: lock_waits.reduce(|sum, waits| LockWaits {
            samples: sum.samples.max(waits.samples),
            waiting: sum.waiting + waits.waiting,
        }),
        imbalance: imbalance_of(&nodes),
        nodes,
        late: loops.iter().filter_map(|record| record.late).reduce(|mut sum, late| {
            sum.transactions =
                sum.transactions.zip(late.transactions).map(|(a, b)| a.saturating_add(b));
            sum.skipped = sum.skipped.saturating_add(late.skipped);
            sum
        }),
        schedule: schedule(&loops),
        steps: steps(&loops),
        warmup_in_flight: total!(loops, warmup_in_flight: transactions, occupied_s),
        server_clock_step_s: steps_s.max_by(|one, two| one.abs().total_cmp(&two.abs())),
        mix: plan.work.traits().mix.and_then(|mix| mix_of(&mix, &operations, sessions)),
        operations,
        commands: commands(&loops)?,
        // Response times of single transactions are not known.
        steadiness: (times.response_us.is_none())
            .then(|| steadiness(&Slot::of_series(&series), rows_each, false))
            .flatten(),
        errors: errors(&loops),
        unknown_commits: sum(|record| record.unknown_commits),
        drained: drained(&loops),
        sessions_fairness: fairness(stages),
        session_details: session_details(&loops),
        series,
        ..times
    })
}

/// Returns the part of the record with the latencies.
fn times(
    loops: &[&LoopRecord],
    window: &Window,
    plan: &Plan,
) -> Result<LoopRecord, HistogramError> {
    let has_rate = loops.iter().any(|record| record.response_histogram.is_some());
    let (mut service, mut response) = (Latencies::new()?, Latencies::new()?);
    for record in loops {
        for (kind, all) in
            [(LatencyKind::Service, &mut service), (LatencyKind::Response, &mut response)]
        {
            if let Some(latencies) = record.times(Some(kind)).latencies()? {
                all.merge(&latencies)?;
            }
        }
    }
    let mut all = latencies(&service, has_rate.then_some(&response), heatmap(loops, window), plan)?;
    let summaries = |pick: fn(&LoopRecord) -> Option<&LatencySummary>| {
        loops.iter().filter_map(|record| pick(record)).collect::<Vec<_>>()
    };
    make_exact(all.service_us.as_mut(), &summaries(|record| record.service_us.as_ref()));
    make_exact(all.response_us.as_mut(), &summaries(|record| record.response_us.as_ref()));
    Ok(all)
}

/// Replaces what a stored histogram knows only to its buckets by what the summaries of the clients know.
fn make_exact(merged: Option<&mut LatencySummary>, parts: &[&LatencySummary]) {
    let Some(merged) = merged else {
        return;
    };
    merged.min = parts.iter().map(|part| part.min).fold(f64::MAX, f64::min);
    merged.max = parts.iter().map(|part| part.max).fold(0.0, f64::max);
    // With lower bounds, the number of values of a mean is not known.
    if merged.lower_bound_from.is_none() {
        let sum: f64 = parts.iter().map(|part| part.mean * part.count as f64).sum();
        merged.mean = sum / (merged.count as f64).max(1.0);
    }
    let successful: Vec<_> = parts.iter().map(|part| part.of_successful()).collect();
    make_exact(merged.successful.as_deref_mut(), &successful);
}

/// Returns the summary of histograms that were stored, with the exact values of their summaries.
fn summary<'a>(
    parts: impl Iterator<Item = (&'a Option<StoredHistogram>, &'a Option<LatencySummary>)>,
) -> Result<(Option<LatencySummary>, Option<StoredHistogram>), HistogramError> {
    let (histograms, summaries): (Vec<_>, Vec<_>) = parts.unzip();
    let Some(all) = Histogram::merged(histograms.into_iter().flatten())? else {
        return Ok((None, None));
    };
    let mut summary = all.summary();
    make_exact(summary.as_mut(), &summaries.into_iter().flatten().collect::<Vec<_>>());
    Ok((summary, Some(all.stored()?)))
}

/// Returns mean and standard deviation over all sessions, from the mean and standard deviation of each client.
fn execution(stages: &[&StageRecord]) -> Option<Execution> {
    let parts: Option<Vec<_>> = stages
        .iter()
        .map(|stage| {
            let execution = stage.session_loop.execution_s?;
            Some((f64::from(stage.sessions), execution.mean, execution.stdev))
        })
        .collect();
    let (mean, stdev) = mean_stdev(&parts?);
    Some(Execution { mean, stdev })
}

fn fairness(stages: &[&StageRecord]) -> Fairness {
    let all = || stages.iter().map(|stage| (stage.sessions, stage.session_loop.sessions_fairness));
    let weighted = all().map(|(count, fairness)| (f64::from(count), fairness.mean, fairness.stdev));
    let (mean, stdev) = mean_stdev(&weighted.collect::<Vec<_>>());
    let min = all().map(|(_, fairness)| fairness.min).min().unwrap_or(0);
    let max = all().map(|(_, fairness)| fairness.max).max().unwrap_or(0);
    Fairness { min, mean, max, stdev }
}

/// Returns mean and standard deviation over groups with a known number, mean and standard deviation.
fn mean_stdev(groups: &[(f64, f64, f64)]) -> (f64, f64) {
    let count = groups.iter().map(|(count, ..)| count).sum::<f64>().max(1.0);
    let mean = groups.iter().map(|(count, mean, _)| count * mean).sum::<f64>() / count;
    let squares = groups.iter().map(|(count, mean, stdev)| count * (mean * mean + stdev * stdev));
    (mean, (squares.sum::<f64>() / count - mean * mean).max(0.0).sqrt())
}

fn nodes(loops: &[&LoopRecord], transactions: u64) -> Vec<NodeRecord> {
    let mut nodes: Vec<NodeRecord> = Vec::new();
    for part in loops.iter().flat_map(|record| &record.nodes) {
        let Some(node) = nodes.iter_mut().find(|node| node.node == part.node) else {
            nodes.push(NodeRecord { service_us: None, longest_pause_s: None, ..part.clone() });
            continue;
        };
        node.down |= part.down;
        add!(node, part, sessions, transactions, transactions_per_s, errors, retries, failed);
        add!(node, part, unknown_commits, reconnects);
        node.outages.extend(part.outages.iter().cloned());
        node.usage = node.usage.or(part.usage);
    }
    for node in &mut nodes {
        node.share = node.transactions as f64 / (transactions as f64).max(1.0);
    }
    nodes
}

fn schedule(loops: &[&LoopRecord]) -> Option<ScheduleRecord> {
    let latest = |one: Option<LatencySummary>, two: Option<LatencySummary>| {
        one.into_iter().chain(two).max_by(|one, two| one.p99.total_cmp(&two.p99))
    };
    let schedules = loops.iter().filter_map(|record| record.schedule.clone());
    schedules.reduce(|mut sum, other| {
        add!(sum, other, intended, sent, skipped, waiting, unanswered, backlog_at_start);
        sum.oldest_wait_us = sum.oldest_wait_us.max(other.oldest_wait_us);
        sum.lag_max_us = longest(sum.lag_max_us, other.lag_max_us);
        // The delay of the client that delayed its starts the most.
        sum.start_lag_us = latest(sum.start_lag_us, other.start_lag_us);
        sum
    })
}

fn longest(one: Option<f64>, two: Option<f64>) -> Option<f64> {
    one.into_iter().chain(two).max_by(f64::total_cmp)
}

fn steps(loops: &[&LoopRecord]) -> Vec<StepRecord> {
    let count = loops.first().map_or(0, |first| first.steps.len());
    let of_step = |position: usize| {
        let same = loops.iter().filter_map(move |record| record.steps.get(position).cloned());
        same.reduce(|mut sum, other| {
            sum.step.from_per_s += other.step.from_per_s;
            sum.step.to_per_s += other.step.to_per_s;
            add!(sum, other, due, answered, failed, skipped, unanswered, not_started);
            sum.response_us = None;
            sum
        })
    };
    (0..count).filter_map(of_step).collect()
}

fn drained(loops: &[&LoopRecord]) -> DrainedRecord {
    loops.iter().fold(DrainedRecord::default(), |sum, record| DrainedRecord {
        transactions: sum.transactions + record.drained.transactions,
        max_us: [sum.max_us, record.drained.max_us].into_iter().flatten().reduce(f64::max),
        lost: sum.lost + record.drained.lost,
    })
}

fn tables<'a>(all: impl Iterator<Item = &'a TableEffects>) -> Vec<TableEffects> {
    let mut tables: BTreeMap<u32, Effects> = BTreeMap::new();
    for entry in all {
        let sum = tables.entry(entry.table).or_default();
        *sum = sum.and(entry.effects);
    }
    tables.into_iter().map(|(table, effects)| TableEffects { table, effects }).collect()
}

/// Returns the kinds of transactions. With a rate, earlier records do not have the response times of one of several kinds.
fn operations(
    loops: &[&LoopRecord],
    response_us: Option<&LatencySummary>,
) -> Result<Vec<OperationRecord>, HistogramError> {
    let mut groups: BTreeMap<(usize, &str), Vec<&OperationRecord>> = BTreeMap::new();
    for operation in loops.iter().flat_map(|record| &record.operations) {
        groups.entry((operation.number, &operation.name)).or_default().push(operation);
    }
    let is_single = groups.len() == 1;
    let merged = groups.into_iter().map(|((position, name), parts)| {
        let mut sum = OperationRecord {
            number: position,
            name: name.to_owned(),
            ..OperationRecord::default()
        };
        for part in &parts {
            add!(sum, part, transactions, rows, acknowledged_transactions, acknowledged_rows);
            add!(sum, part, unknown_rows, failed, retried, unknown, skipped);
            sum.effects = sum.effects.and(part.effects);
            sum.unknown_effects = sum.unknown_effects.and(part.unknown_effects);
        }
        let service = of_kind(&parts, LatencyKind::Service, |part| part.service_us.as_ref())?;
        let response = of_kind(&parts, LatencyKind::Response, |part| part.response_us.as_ref())?;
        let is_known = is_single || response_us.is_none() || response.summary.is_some();
        Ok(OperationRecord {
            tables: tables(parts.iter().flat_map(|part| &part.tables)),
            unknown_tables: tables(parts.iter().flat_map(|part| &part.unknown_tables)),
            service_us: service.summary.filter(|_| is_known),
            response_us: if is_single { response_us.cloned() } else { response.summary },
            histogram: service.histogram,
            unfinished_histogram: match response.histogram {
                Some(_) => response.unfinished,
                None => service.unfinished.clone(),
            },
            unfinished_service_histogram: service
                .unfinished
                .filter(|_| response.histogram.is_some()),
            response_histogram: response.histogram,
            ..sum
        })
    });
    merged.collect()
}

/// The latencies of a kind of several clients.
#[derive(Default)]
struct MergedTimes {
    summary: Option<LatencySummary>,
    histogram: Option<StoredHistogram>,
    unfinished: Option<StoredHistogram>,
}

fn of_kind(
    parts: &[&OperationRecord],
    kind: LatencyKind,
    summary_of: fn(&OperationRecord) -> Option<&LatencySummary>,
) -> Result<MergedTimes, HistogramError> {
    let mut all: Option<Latencies> = None;
    for part in parts {
        if let Some(latencies) = part.times(Some(kind)).latencies()? {
            match &mut all {
                Some(all) => all.merge(&latencies)?,
                None => all = Some(latencies),
            }
        }
    }
    let Some(all) = all else {
        return Ok(MergedTimes::default());
    };
    let mut summary = all.summary()?;
    let summaries: Vec<_> = parts.iter().filter_map(|part| summary_of(part)).collect();
    make_exact(summary.as_mut(), &summaries);
    Ok(MergedTimes {
        summary,
        histogram: Some(all.observed.stored()?),
        unfinished: all.stored_bounds()?,
    })
}

fn commands(loops: &[&LoopRecord]) -> Result<Vec<CommandRecord>, HistogramError> {
    let mut groups: BTreeMap<(usize, usize), Vec<&CommandRecord>> = BTreeMap::new();
    for command in loops.iter().flat_map(|record| &record.commands) {
        groups.entry((command.script, command.number)).or_default().push(command);
    }
    let merged = groups.into_values().map(|parts| {
        let times = parts.iter().map(|part| (&part.histogram, &part.service_us));
        let (service_us, histogram) = summary(times)?;
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for (sqlstate, count) in parts.iter().flat_map(|part| &part.errors) {
            *errors.entry(sqlstate.clone()).or_default() += count;
        }
        Ok(CommandRecord {
            service_us,
            histogram,
            failures: parts.iter().map(|part| part.failures).sum(),
            retries: parts.iter().map(|part| part.retries).sum(),
            errors,
            ..parts.first().map(|part| (*part).clone()).unwrap_or_default()
        })
    });
    merged.collect()
}

fn errors(loops: &[&LoopRecord]) -> Vec<ErrorEntry> {
    let mut errors: Vec<ErrorEntry> = Vec::new();
    for entry in loops.iter().flat_map(|record| &record.errors) {
        let Some(sum) = errors.iter_mut().find(|sum| sum.sqlstate == entry.sqlstate) else {
            errors.push(entry.clone());
            continue;
        };
        add!(sum, entry, count, retried, attempts_s);
        for sample in std::iter::once(&entry.sample).chain(&entry.more_samples) {
            let is_new = sum.sample != *sample && !sum.more_samples.contains(sample);
            if is_new && sum.more_samples.len() < SAMPLES_MAX {
                sum.more_samples.push(sample.clone());
            }
        }
        sum.without_success_s = longest(sum.without_success_s, entry.without_success_s);
        sum.below_90_percent_s = longest(sum.below_90_percent_s, entry.below_90_percent_s);
        sum.until_90_percent_s = longest(sum.until_90_percent_s, entry.until_90_percent_s);
    }
    errors.sort_by(|one, two| two.count.cmp(&one.count).then(one.sqlstate.cmp(&two.sqlstate)));
    errors
}

fn ended_sessions(loops: &[&LoopRecord]) -> Vec<EndedSessionRecord> {
    let mut all: Vec<_> = loops.iter().flat_map(|record| record.ended_sessions.clone()).collect();
    all.sort_by_key(|ended| ended.session);
    all
}

/// Returns the sessions of all clients; none if there are too many.
fn session_details(loops: &[&LoopRecord]) -> Vec<SessionRecord> {
    let mut all: Vec<_> = loops.iter().flat_map(|record| record.session_details.clone()).collect();
    all.sort_by_key(|session| session.number);
    // Runs that were started by hand all count from 1.
    if all.windows(2).any(|two| matches!(two, [one, other] if one.number == other.number)) {
        (1..).zip(&mut all).for_each(|(position, session)| session.number = position);
    }
    let is_complete = loops.iter().all(|record| !record.session_details.is_empty());
    if all.len() <= SESSIONS_STORED_MAX && is_complete { all } else { Vec::new() }
}
