//! The result of a stage: the merged reports of its workers.

use std::borrow::Cow;

use jiff::Timestamp;

use super::clock::larger_step_s;
use super::error::{EngineError, SessionError};
use super::findings::{self, AccessFinding, UncheckedPlan, note_unchecked};
use super::tally::SessionTally;
use super::window::Window;
use super::worker::{Acknowledged, Starts, WarmupInFlight, WorkerReport};
use crate::metrics::{Outage, Recorder, Samples, outage, rates};
use crate::plan::Threshold;
use crate::record::{EndedSessionRecord, HeatmapRecord, HistogramError, Point, SampleSet};
use crate::server::nodes::Node;
use crate::units::Nanos;
use crate::workload::ScriptCommand;
use crate::workload::unknown::Unknown;

/// Result of a stage.
#[derive(Debug)]
pub struct StageResult {
    /// Name of the stage.
    pub name: String,
    /// Names of the operations, in the order of the recorder.
    pub operations: Vec<Cow<'static, str>>,
    /// Commands of scripts, in the order of the recorder.
    pub commands: Vec<ScriptCommand>,
    /// Start of the measurement.
    pub started_at: Timestamp,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Counts and histograms of all workers.
    pub recorder: Recorder,
    /// Work that the database acknowledged, by operation, including the warm-up and the drain.
    pub acknowledged: Vec<Acknowledged>,
    /// Transactions with an unknown outcome, up to [`UNKNOWN_MAX`](crate::workload::unknown::UNKNOWN_MAX) for
    /// each worker.
    pub unknown: Vec<Unknown>,
    /// Number of replies with unexpected contents, including the warm-up and the drain.
    pub wrong_replies: u64,
    /// Findings of the plan checks before, during and after the run.
    pub findings: Vec<AccessFinding>,
    /// Plan checks without a verdict.
    pub unchecked: Vec<UncheckedPlan>,
    /// Largest step of a server's clock during a server-side loop, in seconds; negative if it was set back, 0 if
    /// no step was found.
    pub clock_step_s: f64,
    /// Transactions of the warm-up in flight at the start of the measurement; only for a run by count.
    pub warmup_in_flight: WarmupInFlight,
    /// Work of each session, ordered by session number.
    pub sessions: Vec<SessionTally>,
    /// Number of transactions that succeeded after the end of the measurement.
    pub drained: u64,
    /// Longest service time of these.
    pub drained_max: Nanos,
    /// Number of transactions in flight at the end that failed or have an unknown outcome.
    pub drained_lost: u64,
    /// Number of attempts that did not succeed, including the warm-up and the drain; 0 with a server-side loop.
    pub unsuccessful: u64,
    /// CPU time of each worker during the measurement, in seconds.
    pub worker_cpu_s: Vec<f64>,
    /// Intended starts; only with a rate.
    pub starts: Option<Starts>,
    /// Threshold whose breach ended the stage early.
    pub breached: Option<Threshold>,
    /// Time series with one point per interval.
    pub series: Vec<Point>,
    /// Latency over time; absent if no interval was complete.
    pub heatmap: Option<HeatmapRecord>,
    /// Error that ended the stage early.
    pub failure: Option<SessionError>,
    /// Whether the user interrupted the stage.
    pub interrupted: bool,
    /// Sessions that an error has ended, up to a maximum.
    pub ended_sessions: Vec<EndedSessionRecord>,
    /// Number of notices and warnings of the server.
    pub notices: u64,
    /// Time in which all sessions connected.
    pub connecting: Nanos,
    /// Samples of individual transactions, if they were recorded.
    pub samples: Option<SampleSet>,
    /// Nodes, indexed by their numbers.
    pub nodes: Vec<Node>,
    /// Outages of each node, with the SQLSTATE of the errors that caused them.
    pub node_outages: Vec<Vec<(String, Outage)>>,
}

impl StageResult {
    /// Sets the commands of the scripts, by which the sessions that an error has ended are shown.
    pub(super) fn name_commands(&mut self, commands: Vec<ScriptCommand>) {
        for ended in &mut self.ended_sessions {
            ended.command = ended.command.and_then(|command| Some(commands.get(command)?.number));
        }
        self.commands = commands;
    }
}

/// Merges the reports of the workers. With `to_last_end` the measurement ends with the last counted
/// transaction, otherwise as its window says.
pub(super) fn merge_reports(
    reports: Vec<WorkerReport>,
    window: &Window,
    to_last_end: bool,
) -> Result<StageResult, EngineError> {
    let last_end = reports.iter().map(|report| report.last_end).max().unwrap_or_default();
    let end = if to_last_end { last_end } else { window.measured_end(last_end) };
    // A gap without success at the end of a worker's report lasts until the common end.
    let mut samples = Vec::new();
    let mut reports = reports.into_iter().map(|mut report| {
        report.recorder.gaps.success(end);
        report.recorder.nodes.iter_mut().for_each(|node| node.gaps.success(end));
        samples.extend(report.recorder.samples.take());
        report
    });
    let first = reports.next().ok_or(EngineError::WorkerLost)?;
    let mut result = StageResult {
        name: String::new(),
        operations: Vec::new(),
        commands: Vec::new(),
        started_at: Timestamp::UNIX_EPOCH,
        seconds: end.since(window.measure_start()).as_seconds(),
        recorder: first.recorder,
        acknowledged: first.acknowledged,
        unknown: first.unknown,
        wrong_replies: first.wrong_replies,
        findings: first.findings,
        unchecked: first.unchecked,
        clock_step_s: first.clock_step_s,
        warmup_in_flight: first.warmup_in_flight,
        sessions: first.sessions,
        drained: first.drained,
        drained_max: first.drained_max,
        drained_lost: first.drained_lost,
        unsuccessful: first.unsuccessful,
        worker_cpu_s: vec![first.cpu_s],
        starts: first.starts,
        breached: None,
        series: Vec::new(),
        heatmap: None,
        failure: first.failure,
        ended_sessions: first.ended,
        notices: 0,
        connecting: Nanos(0),
        interrupted: false,
        samples: None,
        nodes: Vec::new(),
        node_outages: Vec::new(),
    };
    for report in reports {
        merge_report(&mut result, report)?;
    }
    result.sessions.sort_by_key(|session| session.number);
    result.samples = (!samples.is_empty()).then(|| Samples::merge(samples, result.seconds));
    Ok(result)
}

/// Adds the report of another worker.
fn merge_report(result: &mut StageResult, report: WorkerReport) -> Result<(), HistogramError> {
    result.recorder.merge(&report.recorder)?;
    for (mine, theirs) in result.acknowledged.iter_mut().zip(&report.acknowledged) {
        mine.merge(theirs);
    }
    result.unknown.extend(report.unknown);
    result.wrong_replies += report.wrong_replies;
    findings::merge(&mut result.findings, report.findings);
    for unchecked in report.unchecked {
        note_unchecked(&mut result.unchecked, unchecked);
    }
    result.clock_step_s = larger_step_s(result.clock_step_s, report.clock_step_s);
    result.warmup_in_flight.merge(report.warmup_in_flight);
    result.sessions.extend(report.sessions);
    result.drained += report.drained;
    result.drained_lost += report.drained_lost;
    result.unsuccessful += report.unsuccessful;
    result.drained_max = result.drained_max.max(report.drained_max);
    result.worker_cpu_s.push(report.cpu_s);
    if let (Some(mine), Some(theirs)) = (&mut result.starts, report.starts) {
        mine.merge(theirs);
    }
    result.ended_sessions.extend(report.ended);
    result.failure = result.failure.take().or(report.failure);
    Ok(())
}

/// Adds the outages to the error entries and to the nodes: how long no transaction succeeded, and how long
/// throughput was reduced.
pub(super) fn note_outages(result: &mut StageResult, start: Nanos) {
    let recorder = &mut result.recorder;
    let (times, gaps) = (recorder.error_times.clone(), recorder.gaps.clone());
    let series = rates(&result.series, None);
    for entry in &mut recorder.errors.entries {
        if let Some(found) = outage(&entry.sqlstate, &times, &gaps, &series, start) {
            entry.without_success_s = Some(found.without_success_s);
            entry.below_90_percent_s = found.below_90_percent_s;
            entry.until_90_percent_s = found.until_90_percent_s;
        }
    }
    result.node_outages = (0..)
        .zip(&recorder.nodes)
        .map(|(number, node)| {
            let series = rates(&result.series, Some(number));
            node.error_times
                .kinds()
                .filter_map(|sqlstate| {
                    let found = outage(sqlstate, &node.error_times, &node.gaps, &series, start)?;
                    Some((sqlstate.to_owned(), found))
                })
                .collect()
        })
        .collect();
}
