//! The result of a stage: the merged reports of its workers.

use std::borrow::Cow;

use jiff::Timestamp;

use super::error::EngineError;
use super::window::Window;
use super::worker::WorkerReport;
use crate::metrics::{Outage, Samples, outage, rates};
use crate::server::nodes::Node;
use crate::workload::ScriptCommand;
use riops_model::plan::Threshold;
use riops_model::record::{HeatmapRecord, Point, SampleSet};
use riops_model::units::Nanos;

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
    /// Results of all workers.
    pub workers: WorkerReport,
    /// Threshold whose breach ended the stage early.
    pub breached: Option<Threshold>,
    /// Time series with one point per interval.
    pub series: Vec<Point>,
    /// Latency over time; absent if no interval was complete.
    pub heatmap: Option<HeatmapRecord>,
    /// Whether the user interrupted the stage.
    pub interrupted: bool,
    /// Number of notices and warnings of the server.
    pub notices: u64,
    /// Time that all sessions took to connect.
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
        for ended in &mut self.workers.ended_sessions {
            ended.command = ended.command.and_then(|command| Some(commands.get(command)?.ordinal));
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
    let mut workers = reports.next().ok_or(EngineError::WorkerLost)?;
    reports.try_for_each(|report| workers.merge(report))?;
    workers.sessions.sort_by_key(|session| session.id);
    let seconds = end.since(window.measure_start()).as_seconds();
    Ok(StageResult {
        name: String::new(),
        operations: Vec::new(),
        commands: Vec::new(),
        started_at: Timestamp::UNIX_EPOCH,
        seconds,
        workers,
        breached: None,
        series: Vec::new(),
        heatmap: None,
        notices: 0,
        connecting: Nanos(0),
        interrupted: false,
        samples: (!samples.is_empty()).then(|| Samples::merge(samples, seconds)),
        nodes: Vec::new(),
        node_outages: Vec::new(),
    })
}

/// Adds the outages to the error entries and to the nodes: how long no transaction succeeded, and how long
/// throughput was reduced.
pub(super) fn note_outages(result: &mut StageResult, start: Nanos) {
    let recorder = &mut result.workers.recorder;
    let (times, gaps) = (recorder.error_times.clone(), recorder.gaps.clone());
    let series = rates(&result.series, None);
    for entry in &mut recorder.errors.entries {
        if let Some(outage) = outage(&entry.sqlstate, &times, &gaps, &series, start) {
            entry.without_success_s = Some(outage.without_success_s);
            entry.below_90_percent_s = outage.below_90_percent_s;
            entry.until_90_percent_s = outage.until_90_percent_s;
        }
    }
    result.node_outages = (0..)
        .zip(&recorder.nodes)
        .map(|(position, node)| {
            let series = rates(&result.series, Some(position));
            node.error_times
                .kinds()
                .filter_map(|sqlstate| {
                    let outage = outage(sqlstate, &node.error_times, &node.gaps, &series, start)?;
                    Some((sqlstate.to_owned(), outage))
                })
                .collect()
        })
        .collect();
}
