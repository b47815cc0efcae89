//! The interface of a run to the other clients, the earlier runs and the receivers of its events.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::probe::sampler::OnPoint;
use crate::workload::OnMessage;
use riops_model::plan::Threshold;
use riops_model::record::{DiskLimit, Events, Record, RunEvent};

/// The start of a stage, on which several clients agree.
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

/// Several clients that run one plan together.
pub trait Coordination {
    /// Called when all sessions of a stage are connected. Returns what the clients have agreed on: all start at the same
    /// time.
    ///
    /// # Errors
    /// The reason why the stage cannot start.
    fn agree_start(&mut self) -> Result<Agreement, String>;

    /// Called when the changes of the run are in the ledger. Returns whether this run verifies the data: one client does, when
    /// the changes of all are in the ledger.
    fn settled(&mut self) -> bool;
}

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

/// The partners of a run besides the server. The default is a single client without earlier runs, whose events are ignored.
pub struct Hooks<'a> {
    /// Receives the events.
    pub events: Events,
    /// The other clients.
    pub coordination: Option<&'a mut dyn Coordination>,
    /// The earlier runs.
    pub history: &'a dyn History,
    /// Receives the complete record, which must be stored here: the run cleans up afterwards, and a failure of the cleanup must
    /// not lose the result.
    pub complete: Option<&'a mut dyn FnMut(&Record)>,
}

impl Default for Hooks<'_> {
    fn default() -> Self {
        Self { events: Events::ignored(), coordination: None, history: &NoHistory, complete: None }
    }
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hooks").finish_non_exhaustive()
    }
}

impl Hooks<'_> {
    /// Sends a notice or a warning for the user.
    pub fn notice(&self, text: &str) {
        self.events.notice(text);
    }

    /// Returns the callback for counters that are read during a stage.
    pub fn on_point(&self) -> OnPoint {
        let events = self.events.clone();
        Arc::new(move |point| events.send(&RunEvent::Sampled(Box::new(point.clone()))))
    }

    /// Returns the callback for the output of scripts.
    pub fn on_message(&self) -> OnMessage {
        let events = self.events.clone();
        Arc::new(move |text| events.send(&RunEvent::Message { text: text.to_owned() }))
    }

    /// Returns what several clients have agreed on; `None` for a single client, which starts at once.
    ///
    /// # Errors
    /// The reason why the stage cannot start.
    pub(super) fn agree_start(&mut self) -> Result<Option<Agreement>, String> {
        self.coordination.as_mut().map(|clients| clients.agree_start()).transpose()
    }

    /// Returns whether this run verifies the data, when its changes are in the ledger.
    pub fn settled(&mut self) -> bool {
        self.coordination.as_mut().is_none_or(|clients| clients.settled())
    }
}
