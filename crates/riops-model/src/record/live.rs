//! The state of a run in progress, which its events change (`event`).
//!
//! The process of the run publishes the events, and other processes rebuild the state from them. It is not a part of
//! the record, and everything in it is bounded: old points are dropped, and the sums remain.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::run::Status;
use super::series::Point;
use crate::plan::{Plan, Stop};
use crate::units::texts;

/// Version of the published data. A reader ignores runs with a newer version.
pub const LIVE_VERSION: u32 = 1;
/// Points of a run that are kept, over all stages: enough for a chart.
pub const LIVE_POINTS_MAX: usize = 1_000;
/// Stages of a run that are kept. Only `cbc` has more than a few.
pub(super) const STAGES_MAX: usize = 200;
/// Notices of a run that are kept.
pub(super) const NOTICES_MAX: usize = 20;
/// Longest text in characters: the length of notices, labels and errors is not limited otherwise.
const TEXT_CHARS_MAX: usize = 500;

/// Phase of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum LivePhase {
    #[default]
    Starting,
    Preparing,
    Connecting,
    WarmingUp,
    Measuring,
    Draining,
    /// A statement that is a separate stage.
    Step,
    /// After the last stage of a run that was stored or printed.
    Completed,
    Failed,
}

texts!(
    /// Returns the spelling in JSON, which is also a label value of the metrics.
    LivePhase::as_str {
        Starting: "starting",
        Preparing: "preparing",
        Connecting: "connecting",
        WarmingUp: "warming_up",
        Measuring: "measuring",
        Draining: "draining",
        Step: "step",
        Completed: "completed",
        Failed: "failed",
    }
);

impl LivePhase {
    /// Returns the phase in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::WarmingUp => "warming up",
            Self::Draining => "waiting for transactions in flight",
            Self::Step => "running a statement",
            other => other.as_str(),
        }
    }
}

/// Sums over the intervals of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "as in the points of the series")]
pub struct LiveTotals {
    pub seconds: f64,
    pub transactions: u64,
    pub rows: u64,
    pub errors: u64,
    pub failed: u64,
    pub late: u64,
    pub skipped: u64,
    pub retries: u64,
    pub reconnects: u64,
}

impl LiveTotals {
    /// Adds an interval.
    pub fn add(&mut self, point: &Point) {
        // The file of another process may contain any numbers.
        self.seconds += point.seconds;
        self.transactions = self.transactions.saturating_add(point.transactions);
        self.rows = self.rows.saturating_add(point.rows);
        self.errors = self.errors.saturating_add(point.errors);
        self.failed = self.failed.saturating_add(point.failed);
        self.late = self.late.saturating_add(point.late.unwrap_or_default());
        self.skipped = self.skipped.saturating_add(point.skipped);
        self.retries = self.retries.saturating_add(point.retries);
        self.reconnects = self.reconnects.saturating_add(point.reconnects);
    }
}

/// A stage that has started.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveStage {
    /// Name.
    pub name: String,
    /// Sums over its intervals.
    #[serde(default)]
    pub totals: LiveTotals,
    /// Its last interval, if it repeats transactions.
    pub last: Option<Point>,
    /// Duration of a single statement so far, in seconds.
    pub statement_s: Option<f64>,
    /// Share of a single statement that is done, 0 to 1.
    pub share: Option<f64>,
}

/// A point with its position in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LivePoint {
    /// Number of the point in the run, from 1.
    pub number: u64,
    /// Number of the stage in the run, from 1.
    pub stage: u64,
    /// The point.
    #[serde(flatten)]
    pub point: Point,
}

/// The state of a run in progress.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveRun {
    /// Version of the published data: [`LIVE_VERSION`].
    pub version: u32,
    /// Id that the record will have.
    pub id: Uuid,
    /// Start of the run.
    pub started_at: Timestamp,
    /// Name of the workload.
    pub workload: String,
    /// Title as in lists of runs.
    pub title: String,
    /// Label.
    pub label: Option<String>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Flavor, version and database of the server.
    pub server: String,
    /// Machine and process of the run.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Sessions of the plan.
    pub sessions: u32,
    /// Interval of the series, in seconds.
    pub interval_s: f64,
    /// When the measurement of a stage stops.
    pub stop: Stop,
    /// Intended rate, in transactions per second; absent in a closed loop.
    pub rate_per_s: Option<f64>,
    /// Phase of the run.
    #[serde(default)]
    pub phase: LivePhase,
    /// Rows of the preparation: loaded, all.
    pub prepared_rows: Option<(u64, u64)>,
    /// The stages that have started.
    #[serde(default)]
    pub stages: Vec<LiveStage>,
    /// Number of started stages, including stages that are not kept.
    #[serde(default)]
    pub stages_started: u64,
    /// The last points.
    #[serde(default)]
    pub points: VecDeque<LivePoint>,
    /// Number of all points.
    #[serde(default)]
    pub points_seen: u64,
    /// The last notices.
    #[serde(default)]
    pub notices: VecDeque<String>,
    /// How the run ended, and whether its result is valid.
    pub result: Option<(Status, bool)>,
}

/// Returns a text of bounded length.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

impl LiveRun {
    /// Returns the state of a run that starts: with the id of its record and its start, with machine and id of the process, and
    /// with flavor, version and database of the server.
    pub fn new(
        plan: &Plan,
        id: Uuid,
        started_at: Timestamp,
        host: &str,
        pid: u32,
        server: &str,
    ) -> Self {
        let tags = plan.tags.iter().map(|(key, value)| (bounded(key), bounded(value)));
        Self {
            version: LIVE_VERSION,
            id,
            started_at,
            workload: plan.work.traits().name.to_owned(),
            title: plan.work.spec().title(),
            label: plan.label.as_deref().map(bounded),
            tags: tags.take(NOTICES_MAX).collect(),
            server: bounded(server),
            host: bounded(host),
            pid,
            sessions: plan.sessions,
            interval_s: plan.interval_s,
            stop: plan.stop,
            rate_per_s: plan.schedule.per_s(),
            phase: LivePhase::Starting,
            prepared_rows: None,
            stages: Vec::new(),
            stages_started: 0,
            points: VecDeque::new(),
            points_seen: 0,
            notices: VecDeque::new(),
            result: None,
        }
    }
}

pub(super) fn push_bounded<T>(queue: &mut VecDeque<T>, value: T, length_max: usize) {
    if queue.len() >= length_max {
        queue.pop_front();
    }
    queue.push_back(value);
}

/// A run in progress for tests.
#[cfg(any(test, feature = "examples"))]
pub fn example_live_run(plan: &Plan) -> LiveRun {
    let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_00aa);
    let started_at = Timestamp::UNIX_EPOCH;
    LiveRun::new(plan, id, started_at, "bench", 7, "PostgreSQL 18.1 (embedded)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunEvent;

    fn point(transactions: u64) -> RunEvent {
        RunEvent::Point(Box::new(Point { seconds: 1.0, transactions, ..Point::default() }))
    }

    fn stage(name: &str) -> RunEvent {
        RunEvent::Stage { name: name.to_owned() }
    }

    #[test]
    fn sums_are_kept_for_each_stage_after_its_points_were_dropped() {
        let mut run = example_live_run(&Plan::default());
        run.apply(&stage("one"));
        for _ in 0..LIVE_POINTS_MAX + 5 {
            run.apply(&point(2));
        }
        run.apply(&stage("two"));
        run.apply(&point(7));
        assert_eq!(run.points.len(), LIVE_POINTS_MAX);
        let last = run.points.back().unwrap();
        assert_eq!((last.number, last.stage), (LIVE_POINTS_MAX as u64 + 6, 2));
        let sums: Vec<u64> = run.stages.iter().map(|stage| stage.totals.transactions).collect();
        assert_eq!(sums, [2 * (LIVE_POINTS_MAX as u64 + 5), 7]);
    }

    #[test]
    fn any_numbers_of_a_file_are_added_without_overflow() {
        let mut run = example_live_run(&Plan::default());
        (run.points_seen, run.stages_started) = (u64::MAX, u64::MAX);
        run.apply(&RunEvent::Stage { name: "a".to_owned() });
        for _ in 0..2 {
            let point = Point { transactions: u64::MAX, rows: u64::MAX, ..Point::default() };
            run.apply(&RunEvent::Point(Box::new(point)));
        }
        assert_eq!(run.stages.last().unwrap().totals.transactions, u64::MAX);
    }

    #[test]
    fn the_phase_follows_the_events() {
        let mut run = example_live_run(&Plan::default());
        let preparing = RunEvent::Preparing { rows: 1, total: 2 };
        let completed = RunEvent::Completed { status: Status::Done, valid: true };
        for (event, phase) in [
            (preparing, LivePhase::Preparing),
            (stage("a"), LivePhase::Connecting),
            (RunEvent::Connected { sessions: 2 }, LivePhase::WarmingUp),
            (RunEvent::Measuring, LivePhase::Measuring),
            (point(1), LivePhase::Measuring),
            (RunEvent::Draining, LivePhase::Draining),
            (RunEvent::Step { name: "vacuum".to_owned() }, LivePhase::Step),
            (completed, LivePhase::Completed),
        ] {
            run.apply(&event);
            assert_eq!(run.phase, phase, "{event:?}");
        }
    }

    #[test]
    fn state_and_events_survive_json() {
        let mut run = example_live_run(&Plan::default());
        for event in [stage("a"), point(3), RunEvent::StepDone { seconds: 0.5 }] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), event, "{text}");
            run.apply(&event);
        }
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<LiveRun>(&text).unwrap(), run);
    }

    #[test]
    fn texts_are_bounded() {
        let mut run = example_live_run(&Plan::default());
        for _ in 0..100 {
            run.apply(&RunEvent::Notice { text: "ä".repeat(10_000), is_important: false });
        }
        assert_eq!(run.notices.len(), NOTICES_MAX);
        assert_eq!(run.notices[0].chars().count(), TEXT_CHARS_MAX);
    }
}
