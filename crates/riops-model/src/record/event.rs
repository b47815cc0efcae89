//! The events of a run, as values, and the changes of the state of a run in progress. Screen, live view, metrics and the reports of
//! other tools are functions of an event.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::live::{
    LIVE_POINTS_MAX, LivePhase, LivePoint, LiveRun, LiveStage, NOTICES_MAX, STAGES_MAX, bounded,
    push_bounded,
};
use super::probes::ProbePoint;
use super::run::{Record, Status};
use super::series::Point;
use crate::plan::Plan;

/// An event of a run. Other processes learn of it in its JSON; an event without JSON is for the process of the run only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The server is connected. Nothing is prepared or measured yet.
    #[serde(skip)]
    Started {
        /// The state that the other events change.
        run: Box<LiveRun>,
        /// The plan of this client.
        plan: Box<Plan>,
    },
    /// A notice or a warning for the user.
    Notice {
        /// The text.
        text: String,
        /// Whether it is shown in any case: it is about objects that the run could not drop.
        #[serde(skip)]
        is_important: bool,
    },
    /// A dataset is being prepared.
    Preparing {
        /// Rows loaded so far.
        rows: u64,
        /// All rows; 0 while the number is not known.
        total: u64,
    },
    /// The rows are loaded, and indexes and statistics are being created.
    #[serde(skip)]
    Indexing,
    /// The rows are being counted.
    #[serde(skip)]
    Counting,
    /// The preparation has ended.
    #[serde(skip)]
    Prepared(Prepared),
    /// A stage starts, whose sessions repeat transactions.
    Stage {
        /// Name of the stage.
        name: String,
    },
    /// Counters were read during the stage.
    #[serde(skip)]
    Sampled(Box<ProbePoint>),
    /// Output of a script, or a message of the server.
    #[serde(skip)]
    Message {
        /// The text.
        text: String,
    },
    /// All sessions are connected.
    Connected {
        /// Number of sessions.
        sessions: u64,
    },
    /// The measurement starts.
    Measuring,
    /// An interval of the stage has ended.
    Point(Box<Point>),
    /// The measurement has ended, and transactions are still in flight.
    Draining,
    /// A statement that is a separate stage starts.
    Step {
        /// Name of the statement.
        name: String,
    },
    /// Progress of the statement.
    StepProgress {
        /// Time since its start, in seconds.
        t_s: f64,
        /// Share that is done, 0 to 1, if it is known.
        share: Option<f64>,
        /// The counters that were read.
        #[serde(skip)]
        sample: Box<ProbePoint>,
    },
    /// The statement has ended.
    StepDone {
        /// Its duration, in seconds.
        seconds: f64,
    },
    /// The run has ended, and its record is complete.
    Completed {
        /// How it ended.
        status: Status,
        /// Whether the result is valid.
        valid: bool,
    },
    /// The run ended without a record.
    Failed {
        /// The error.
        error: String,
    },
}

impl RunEvent {
    /// Returns the event for a complete record.
    pub fn completed(record: &Record) -> Self {
        Self::Completed { status: record.status, valid: record.verdict.valid }
    }

    /// Returns whether only the process of the run uses it.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Indexing
                | Self::Counting
                | Self::Prepared(_)
                | Self::Sampled(_)
                | Self::Message { .. }
        )
    }
}

impl LiveRun {
    /// Applies an event to the current run, if there is one. The first event of a run makes it the current one.
    pub fn follow(current: &mut Option<Self>, event: &RunEvent) {
        match (event, current) {
            (RunEvent::Started { run, .. }, current) => *current = Some(run.as_ref().clone()),
            (event, Some(run)) => run.apply(event),
            (_, None) => {}
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { run, .. } => self.clone_from(run),
            RunEvent::Indexing
            | RunEvent::Counting
            | RunEvent::Prepared(_)
            | RunEvent::Sampled(_)
            | RunEvent::Message { .. } => {}
            RunEvent::Notice { text, .. } => {
                push_bounded(&mut self.notices, bounded(text), NOTICES_MAX);
            }
            RunEvent::Preparing { rows, total } => {
                self.phase = LivePhase::Preparing;
                self.prepared_rows = Some((*rows, *total));
            }
            RunEvent::Stage { name } => self.start_stage(name, LivePhase::Connecting),
            RunEvent::Connected { .. } => self.phase = LivePhase::WarmingUp,
            RunEvent::Measuring => self.phase = LivePhase::Measuring,
            RunEvent::Point(point) => self.add(point),
            RunEvent::Draining => self.phase = LivePhase::Draining,
            RunEvent::Step { name } => self.start_stage(name, LivePhase::Step),
            RunEvent::StepProgress { t_s, share, .. } => self.step(*t_s, *share),
            RunEvent::StepDone { seconds } => self.step(*seconds, Some(1.0)),
            RunEvent::Completed { status, valid } => {
                self.phase = LivePhase::Completed;
                self.result = Some((*status, *valid));
            }
            RunEvent::Failed { error } => {
                self.phase = LivePhase::Failed;
                push_bounded(&mut self.notices, bounded(error), NOTICES_MAX);
            }
        }
    }

    fn start_stage(&mut self, name: &str, phase: LivePhase) {
        self.phase = phase;
        self.stages_started = self.stages_started.saturating_add(1);
        if self.stages.len() >= STAGES_MAX {
            self.stages.remove(0);
        }
        self.stages.push(LiveStage { name: bounded(name), ..LiveStage::default() });
    }

    fn add(&mut self, point: &Point) {
        self.points_seen = self.points_seen.saturating_add(1);
        if let Some(stage) = self.stages.last_mut() {
            stage.totals.add(point);
            stage.last = Some(point.clone());
        }
        let (position, stage) = (self.points_seen, self.stages_started);
        push_bounded(
            &mut self.points,
            LivePoint { number: position, stage, point: point.clone() },
            LIVE_POINTS_MAX,
        );
    }

    fn step(&mut self, seconds: f64, share: Option<f64>) {
        if let Some(stage) = self.stages.last_mut() {
            stage.statement_s = Some(seconds);
            stage.share = share;
        }
    }
}

/// The result of a preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// The dataset existed with the same parameters.
    Unchanged,
    /// The dataset was created.
    Created {
        /// Rows of the dataset.
        rows: u64,
        /// Duration of the load, without indexes and verification.
        loading: Duration,
        /// Total duration.
        total: Duration,
    },
}

/// Receives the events of a run, from several threads. It must not keep them waiting.
#[derive(Clone)]
pub struct Events(Arc<dyn Fn(&RunEvent) + Send + Sync>);

impl Events {
    /// Returns a receiver that calls a function.
    pub fn new(receive: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Returns a receiver that ignores all events.
    pub fn ignored() -> Self {
        Self::new(|_| {})
    }

    /// Sends an event.
    pub fn send(&self, event: &RunEvent) {
        (self.0)(event);
    }

    /// Sends a notice or a warning for the user.
    pub fn notice(&self, text: &str) {
        self.send(&RunEvent::Notice { text: text.to_owned(), is_important: false });
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Events")
    }
}
