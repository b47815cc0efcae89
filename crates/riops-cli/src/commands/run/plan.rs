//! From the options of `riops run` to a plan: the defaults are filled in here.

use anyhow::Result;
use riops::host::machine;
use riops::plan::{
    ErrorPolicy, LatencyLimit, OnError, Protocol, RunPlan, Schedule, Stop, WorkPlan,
};

use super::super::prepare::random_seed;
use crate::args::{self, LoopOptions, RunOptions};
use crate::failure::UsageError;

/// The number of processors.
pub(super) fn cores() -> u32 {
    u32::try_from(machine::cpus()).unwrap_or(1)
}

/// What all runs have in common; it ends by `stop`.
pub(super) fn common(run: &RunOptions, work: WorkPlan, stop: Stop) -> Result<RunPlan> {
    let sessions = run.sessions.unwrap_or_else(cores);
    let defaults = ErrorPolicy::default();
    Ok(RunPlan {
        work,
        sessions,
        workers: run.workers.unwrap_or_else(|| cores().min(sessions)),
        protocol: match run.protocol {
            None | Some(args::Protocol::Prepared) => Protocol::Prepared,
            Some(args::Protocol::Extended) => Protocol::Extended,
            Some(args::Protocol::Simple) => Protocol::Simple,
        },
        errors: ErrorPolicy {
            max_retries: run.max_retries.unwrap_or(defaults.max_retries),
            ..defaults
        },
        thresholds: run.threshold.clone(),
        strict: run.strict,
        warmup_s: 0.0,
        stop,
        spread: run.nodes.spread.clone().unwrap_or_default(),
        rebalance: run.nodes.rebalance,
        metrics_port: run.nodes.metrics_port.unwrap_or(RunPlan::default().metrics_port),
        connect_within_s: run.record.thread_init_timeout.map(|span| span.0.as_secs_f64()),
        percentile: run.percentile.unwrap_or(RunPlan::default().percentile),
        interval_s: run.record.interval.map_or(1.0, |span| span.0.as_secs_f64()),
        seed: run.seed.map_or_else(random_seed, Ok)?,
        verify: !run.no_verify,
        keep_samples: run.picture.graph.is_some(),
        label: run.record.label.clone(),
        tags: run.record.tag.iter().cloned().collect(),
        ..RunPlan::default()
    })
}

/// The same for sessions that repeat their transactions.
pub(super) fn looped(run: &RunOptions, drive: &LoopOptions, work: WorkPlan) -> Result<RunPlan> {
    let stop = match (drive.duration, drive.transactions, drive.total_rows) {
        (_, Some(count), _) => Stop::Transactions(count.0),
        (_, _, Some(count)) => Stop::Rows(count.0),
        (duration, _, _) => Stop::DurationS(duration.map_or(10.0, |span| span.0.as_secs_f64())),
    };
    let plan = common(run, work, stop)?;
    Ok(RunPlan {
        schedule: match (drive.rate, drive.poisson) {
            (None, _) => Schedule::Closed,
            (Some(per_s), false) => Schedule::Constant { per_s },
            (Some(per_s), true) => Schedule::Poisson { per_s },
        },
        // Sysbench says never with 0.
        reconnect_every: drive.reconnect.map(|count| count.0).filter(|&every| every > 0),
        errors: ErrorPolicy {
            on_error: match drive.on_error {
                None | Some(args::OnError::Stop) => OnError::Stop,
                Some(args::OnError::Continue) => OnError::Continue,
            },
            reconnect_timeout_s: drive
                .reconnect_timeout
                .map_or(plan.errors.reconnect_timeout_s, |span| span.0.as_secs_f64()),
            ..plan.errors
        },
        latency_limit: drive
            .latency_limit
            .map(|limit| LatencyLimit { limit_s: limit.0.as_secs_f64(), skip: drive.skip_late }),
        abort_on_threshold: drive.abort_on_threshold,
        warmup_s: drive.warmup.map_or(2.0, |span| span.0.as_secs_f64()),
        ..plan
    })
}

/// Files that riops has open beside its sessions and workers.
const OTHER_FILES: u64 = 64;

/// Each session is an open file, and each worker has a few for its poll.
pub(crate) fn allow_sessions(sessions: u32, workers: u32) -> Result<()> {
    let files = u64::from(sessions) + 4 * u64::from(workers) + OTHER_FILES;
    machine::allow_files(files).map_err(|highest| {
        let text = format!(
            "{sessions} sessions need {files} open files, and the limit is {highest}: raise it with ulimit -n"
        );
        UsageError(text).into()
    })
}
