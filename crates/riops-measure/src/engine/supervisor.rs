//! The supervision of a running stage: ends its intervals and its measurement on time, and merges the
//! intervals of the workers.
//!
//! It has its own thread and never sends an event to the receiver, which may block: a stuck terminal must not delay the
//! end of the measurement.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::clock::Clock;
use super::error::EngineError;
use super::hooks::Breach;
use super::shared::{Shared, Signal, WorkerHandle};
use super::window::Window;
use super::worker::{WorkerEvent, WorkerReport};
use crate::metrics::{IntervalPart, Timeline};
use crate::probe::Probe;
use riops_model::plan::Threshold;
use riops_model::record::RunEvent;
use riops_model::units::Nanos;

/// Maximum time between two checks for an interrupt by the user.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A drain that takes longer is shown to the user.
const DRAIN_NOTICE_AFTER: Duration = Duration::from_secs(1);

/// The stage that is supervised.
#[derive(Clone, Copy)]
pub(super) struct Supervised<'a> {
    pub(super) shared: &'a Shared,
    pub(super) handles: &'a [WorkerHandle],
    pub(super) window: &'a Window,
    /// Set when several clients together have breached a threshold that ends the run.
    pub(super) breach: Option<&'a OnceLock<Breach>>,
}

/// The reports of all workers.
pub(super) struct SupervisionResult {
    pub(super) reports: Vec<WorkerReport>,
    pub(super) breached: Option<Threshold>,
    pub(super) timeline: Timeline,
}

/// The supervision of a running stage.
pub(super) struct Supervisor<'a> {
    stage: Supervised<'a>,
    received: Receiver<(usize, WorkerEvent)>,
    /// Events for the main thread. Not bounded: an event is as small as a point of the series.
    events: Sender<RunEvent>,
    result: SupervisionResult,
    /// End of the current interval, when the workers must be woken.
    next_wake_up: Nanos,
    measuring: bool,
    /// `Some` from the end of the measurement on.
    drain: Option<Drain>,
    /// When all clients end because of a breach, once it is known.
    end_of_all: Option<Nanos>,
    /// Whether the probe has read its counters at the end of the measurement.
    has_probed_end: bool,
}

/// The wait for the transactions that are in flight at the end.
struct Drain {
    /// Whether the user interrupted the stage before the drain.
    interrupted_before: bool,
    /// Whether its event was sent.
    shown: bool,
}

impl<'a> Supervisor<'a> {
    /// Creates the supervisor of a stage, and the receiver of its events.
    pub(super) fn new(
        stage: Supervised<'a>,
        received: Receiver<(usize, WorkerEvent)>,
        timeline: Timeline,
    ) -> (Self, Receiver<RunEvent>) {
        let (events, to_send) = channel();
        let supervisor = Self {
            stage,
            received,
            events,
            result: SupervisionResult { reports: Vec::new(), breached: None, timeline },
            next_wake_up: stage.window.measure_start(),
            measuring: false,
            drain: None,
            end_of_all: None,
            has_probed_end: false,
        };
        (supervisor, to_send)
    }

    /// Supervises the stage until all workers have sent their reports. If one is lost, the others end too: they would
    /// load the server until the planned end.
    pub(super) fn run(mut self, probe: &mut Probe<'_>) -> Result<SupervisionResult, EngineError> {
        if let Err(error) = self.supervise(probe) {
            self.stage.window.fail(self.stage.shared.clock.now());
            self.cancel_calls();
            self.wake_workers()?;
            return Err(error);
        }
        self.end_probe(probe);
        Ok(self.result)
    }

    /// Wakes the workers at the end of each interval and of the measurement, and collects their events.
    fn supervise(&mut self, probe: &mut Probe<'_>) -> Result<(), EngineError> {
        while self.result.reports.len() < self.stage.handles.len() {
            let end = if self.drain.is_some() { Nanos::MAX } else { self.stage.window.end() };
            let next = self.next_wake_up.min(end);
            let wait = Duration::from(next.since(self.stage.shared.clock.now())).min(POLL_INTERVAL);
            self.receive(wait)?;
            self.advance(probe)?;
        }
        Ok(())
    }

    /// Waits for the next event of a worker, for at most `wait`.
    fn receive(&mut self, wait: Duration) -> Result<(), EngineError> {
        match self.received.recv_timeout(wait) {
            Ok((worker, WorkerEvent::Interval(part))) => {
                self.add(&part)?;
                if let Some(handle) = self.stage.handles.get(worker) {
                    let _ = handle.spares.try_send(part);
                }
            }
            Ok((_, WorkerEvent::Ended(report))) => {
                report.unsent.iter().try_for_each(|part| self.add(part))?;
                self.result.timeline.add_last(&report.recorder.interval)?;
                self.result.reports.push(*report);
            }
            Ok((_, WorkerEvent::Ready(_) | WorkerEvent::Finished))
            | Err(RecvTimeoutError::Timeout) => {}
            Ok((_, WorkerEvent::Lost)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(EngineError::WorkerLost);
            }
        }
        Ok(())
    }

    fn send(&self, event: RunEvent) {
        // Fails only if the caller has given up.
        let _ = self.events.send(event);
    }

    /// Adds an interval of a worker, and shows the points that it completes.
    fn add(&mut self, part: &IntervalPart) -> Result<(), EngineError> {
        for point in self.result.timeline.add(part)? {
            self.send(RunEvent::Point(Box::new(point)));
        }
        if self.result.breached.is_none() {
            self.result.breached = self.breached();
        }
        Ok(())
    }

    /// Starts and ends the measurement, the intervals and the drain when they are due.
    fn advance(&mut self, probe: &mut Probe<'_>) -> Result<(), EngineError> {
        let now = self.stage.shared.clock.now();
        self.end_with_all(now);
        if self.stage.shared.interrupt.is_requested()
            || self.result.breached.is_some()
            || self.stage.window.has_failed()
        {
            self.stage.window.end_now(now);
            if self.drain.is_none() {
                self.cancel_calls();
            }
        }
        // A stage that fails during the warm-up has no measurement.
        if !self.measuring && !self.has_probed_end && now >= self.stage.window.measure_start() {
            self.measuring = true;
            probe.start();
            self.send(RunEvent::Measuring);
        }
        if self.drain.is_none() && now >= self.stage.window.end() {
            let interrupted = self.stage.shared.interrupt.is_requested();
            self.drain = Some(Drain { interrupted_before: interrupted, shown: false });
            if !self.stage.window.counts_in_flight() {
                self.end_probe(probe);
            }
            self.wake_workers()?;
        }
        // If the transactions in flight count, the measurement ends with the last one, not with the reports.
        if self.stage.window.finished_workers() == self.stage.handles.len() {
            self.end_probe(probe);
        }
        if now >= self.next_wake_up {
            self.next_wake_up = self.next_wake_up.after(self.stage.shared.interval);
            self.wake_workers()?;
        }
        self.check_drain(now)
    }

    fn end_probe(&mut self, probe: &mut Probe<'_>) {
        if !self.has_probed_end {
            self.has_probed_end = true;
            probe.end();
        }
    }

    /// Shows a long drain, and aborts it after the timeout or when the user interrupts it.
    fn check_drain(&mut self, now: Nanos) -> Result<(), EngineError> {
        let Some(drain) = &mut self.drain else {
            return Ok(());
        };
        let waited: Duration = now.since(self.stage.window.end()).into();
        if !drain.shown && waited >= DRAIN_NOTICE_AFTER {
            drain.shown = true;
            let _ = self.events.send(RunEvent::Draining);
        }
        // An interrupt before the drain ended the measurement; only a later one aborts the drain.
        let canceled =
            drain.shown && self.stage.shared.interrupt.is_requested() && !drain.interrupted_before;
        let timeout = self.stage.window.drain_timeout(drain.interrupted_before);
        if waited >= timeout || canceled {
            self.stage.window.abort(waited);
            self.cancel_calls();
            self.wake_workers()?;
        }
        Ok(())
    }

    /// Returns a threshold that is already breached, if a breach ends the run.
    fn breached(&self) -> Option<Threshold> {
        let (total, seconds) = self.result.timeline.total()?;
        total.breached(seconds, &self.stage.shared.plan.thresholds).cloned()
    }

    /// Ends the measurement at the end that all clients have agreed on, if they have breached a threshold together.
    fn end_with_all(&mut self, now: Nanos) {
        let Some(breach) = self.stage.breach.and_then(OnceLock::get) else {
            return;
        };
        // If the breach is known too late, the measurement ends now: transactions that were counted stay counted.
        let end = self.stage.shared.clock.at(breach.end);
        let end = *self.end_of_all.get_or_insert(end.max(now));
        self.stage.window.end_now(end);
        if now >= end && self.drain.is_none() {
            self.result.breached.get_or_insert_with(|| breach.threshold.clone());
        }
    }

    fn wake_workers(&self) -> Result<(), EngineError> {
        for handle in self.stage.handles {
            if let Signal::Wake(waker) = &handle.signal {
                waker.wake()?;
            }
        }
        Ok(())
    }

    /// Cancels the calls of server-side loops, which otherwise run to the end that was set at their start.
    fn cancel_calls(&self) {
        for handle in self.stage.handles {
            if let Signal::Cancel(end_early) = &handle.signal {
                end_early.request();
            }
        }
    }
}
