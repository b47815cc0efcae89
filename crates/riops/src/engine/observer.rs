//! The interface through which a run reports its progress and queries earlier runs.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::dataset::prepare::{Prepared, Progress};
use crate::plan::{Plan, Threshold};
use crate::probe::sampler::OnPoint;
use crate::record::{DiskLimit, LiveRun, Point, Record};
use crate::workload::OnMessage;

/// Callback for the progress of a preparation, called from several threads.
pub type OnLoaded = Arc<dyn Fn(Progress) + Send + Sync>;

/// What several clients agree on before a stage.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// When the first transaction starts.
    pub start: Instant,
    /// Set when all clients together have breached a threshold that ends the run.
    pub breach: Arc<OnceLock<Breach>>,
}

/// A breach of a threshold by all clients together.
#[derive(Debug, Clone)]
pub struct Breach {
    /// The threshold.
    pub threshold: Threshold,
    /// When all clients end.
    pub end: Instant,
}

/// Receives the events of a run. All methods have defaults that do nothing.
pub trait Observer {
    /// Called when the server is connected, before anything is prepared or measured.
    fn started(&mut self, _run: &LiveRun) {}

    /// Receives a notice or warning for the user.
    fn notice(&mut self, _text: &str) {}

    /// Receives a warning about objects that the run could not drop. It must always be shown.
    fn left_behind(&mut self, text: &str) {
        self.notice(text);
    }

    /// Called before a dataset is prepared. Returns the callback for its progress.
    fn preparing(&mut self) -> OnLoaded {
        Arc::new(|_| {})
    }

    /// Called after a dataset was prepared.
    fn prepared(&mut self, _prepared: &Prepared) {}

    /// Called before the stage with this name, whose sessions repeat transactions according to `plan`. Returns the callback
    /// for the counters that are sampled meanwhile.
    fn stage(&mut self, _name: &str, _plan: &Plan) -> OnPoint {
        Arc::new(|_| {})
    }

    /// Called before a stage. Returns the callback for the output of `debug()` in its scripts.
    fn messages(&mut self) -> OnMessage {
        Arc::new(|_| {})
    }

    /// Called when all sessions of the stage are connected.
    fn connected(&mut self, _sessions: usize) {}

    /// Called when all sessions of a stage are connected. Returns what several clients have agreed on: all start at the same
    /// time. `None` for a single client, which starts at once.
    ///
    /// # Errors
    /// The reason why the stage cannot start.
    fn agree_start(&mut self) -> Result<Option<Agreement>, String> {
        Ok(None)
    }

    /// Called when the measurement starts.
    fn measuring(&mut self) {}

    /// Called for each completed interval.
    fn point(&mut self, _point: &Point) {}

    /// Called when the measurement has ended and transactions are still in flight.
    fn draining(&mut self) {}

    /// Called before a statement that is a separate stage. Returns the callback for its progress. `growth`
    /// is the size of the database before the statement and its expected growth, in bytes, if known.
    fn step(&mut self, _name: &'static str, _growth: Option<(u64, u64)>) -> OnPoint {
        Arc::new(|_| {})
    }

    /// Called after such a statement, with its duration in seconds.
    fn step_done(&mut self, _seconds: f64) {}

    /// Called when the changes of the run are in the ledger. Returns whether this run verifies the data: of several clients,
    /// one does, when the changes of all are in the ledger.
    fn settled(&mut self) -> bool {
        true
    }

    /// Receives the complete record, which must be stored here: the run cleans up afterwards, and a failure
    /// of the cleanup must not lose the result.
    fn complete(&mut self, _record: &Record) {}

    /// Returns the earlier runs.
    fn history(&self) -> &dyn History {
        &NoHistory
    }
}

/// An observer that shows nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Earlier runs, and the device limits measured on their machines.
pub trait History {
    /// Returns the record of a run.
    fn record(&self, id: &str) -> Option<Record>;

    /// Returns the measured limits of a device of a machine. The names of host and device are used only for
    /// limits without identity.
    fn disk_limit(&self, host: &str, device: &str, identity: Option<&str>) -> Option<DiskLimit>;
}

/// A history without earlier runs.
#[derive(Debug, Clone, Copy)]
pub struct NoHistory;

impl History for NoHistory {
    fn record(&self, _: &str) -> Option<Record> {
        None
    }

    fn disk_limit(&self, _: &str, _: &str, _: Option<&str>) -> Option<DiskLimit> {
        None
    }
}
