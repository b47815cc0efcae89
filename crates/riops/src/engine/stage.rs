//! The main thread's part of a stage, from the last connect to the last report.
//!
//! It wakes the workers when an interval or the measurement ends. It must not run transactions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::clock::Clock;
use super::error::EngineError;
use super::findings::{self, AccessFinding};
use super::limit::Limit;
use super::observer::Observer;
use super::result::{StageResult, merge_reports, note_outages};
use super::shared::{Go, Shared, Signal, WorkerHandle};
use super::worker::{WorkerEvent, WorkerReport};
use crate::host::Interrupt;
use crate::metrics::{Figures, Timeline};
use crate::plan::{Plan, Schedule, Threshold};
use crate::probe::Probe;
use crate::units::Nanos;

/// Maximum time between two checks for an interrupt by the user.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A drain that takes longer is shown to the user.
const DRAIN_NOTICE_AFTER: Duration = Duration::from_secs(1);

/// A stage whose workers have been started.
pub(super) struct StageRun<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) handles: Vec<WorkerHandle>,
    pub(super) received: Receiver<(usize, WorkerEvent)>,
    pub(super) interrupt: &'a Interrupt,
    /// Delay between the last session's connect and the first transaction.
    pub(super) head_start: Duration,
    /// The server's clock at the zero of the local clock, in seconds since 1970; only for server-side loops.
    pub(super) server_epoch_s: f64,
}

/// State of a running stage on the main thread.
struct Progress {
    reports: Vec<WorkerReport>,
    breached: Option<Threshold>,
    /// End of the current interval, when the workers must be woken.
    next_wake_up: Nanos,
    measuring: bool,
    /// `Some` from the end of the measurement on.
    drain: Option<Drain>,
}

/// The wait for the transactions that are in flight at the end.
struct Drain {
    /// Whether the user interrupted the stage before the drain.
    interrupted_before: bool,
    /// Whether the observer has been notified.
    shown: bool,
}

impl StageRun<'_> {
    /// Waits until every session of every worker is ready. The first failure aborts the stage.
    pub(super) fn await_connected(&self) -> Result<Vec<AccessFinding>, EngineError> {
        let mut findings = Vec::new();
        for _ in &self.handles {
            match self.received.recv() {
                Ok((_, WorkerEvent::Ready(Ok(found)))) => findings::merge(&mut findings, found),
                Ok((_, WorkerEvent::Ready(Err((number, source))))) => {
                    return Err(EngineError::Connect {
                        session: usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1),
                        sessions: self.shared.total_sessions,
                        source,
                    });
                }
                _ => return Err(EngineError::WorkerLost),
            }
        }
        Ok(findings)
    }

    pub(super) fn measure(
        self,
        name: String,
        operations: Vec<&'static str>,
        before: Vec<AccessFinding>,
        probe: &mut Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<StageResult, EngineError> {
        let start = self.shared.clock.now().after(self.head_start.into());
        let measure_start = start.after(self.plan.warmup().into());
        let limit = Arc::new(Limit::new(self.plan.stop, measure_start));
        for handle in &self.handles {
            handle
                .go
                .send(Go { start, limit: Arc::clone(&limit), server_epoch_s: self.server_epoch_s })
                .map_err(|_| EngineError::WorkerLost)?;
        }
        let mut timeline =
            Timeline::new(self.handles.len(), self.plan.interval_s, self.plan.percentile);
        if self.plan.abort_on_threshold {
            timeline.enable_total(self.plan.schedule != Schedule::Closed)?;
        }
        let (reports, breached) = self.supervise(&limit, &mut timeline, probe, observer)?;
        let in_server =
            self.handles.iter().any(|handle| matches!(handle.signal, Signal::Cancel(_)));
        for handle in self.handles {
            handle.thread.join().map_err(|_| EngineError::WorkerLost)?;
        }
        let interrupted = self.interrupt.requested();
        // A canceled call has reported nothing since its last interval.
        let canceled = in_server && (interrupted || breached.is_some() || limit.has_failed());
        let mut result = merge_reports(reports, &limit, limit.stops_by_count() || canceled)?;
        result.name = name;
        result.operations = operations;
        result.interrupted = interrupted;
        let (series, closed) = timeline.finish(result.seconds);
        for point in series.iter().rev().take(closed).rev() {
            observer.point(point);
        }
        result.series = series;
        result.breached = breached;
        result.nodes = self.shared.nodes.list();
        // Server-side loops report successes only per interval, too coarse for outages.
        if !in_server {
            note_outages(&mut result, limit.measure_start());
        }
        let mut findings = before;
        findings::merge(&mut findings, result.findings);
        findings.sort_by(|a, b| (&a.statement, a.moment).cmp(&(&b.statement, b.moment)));
        result.findings = findings;
        Ok(result)
    }

    /// Wakes the workers at the end of each interval and of the measurement, and collects their events
    /// until all have sent their reports.
    fn supervise(
        &self,
        limit: &Limit,
        timeline: &mut Timeline,
        probe: &mut Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<WorkerReport>, Option<Threshold>), EngineError> {
        let mut progress = Progress {
            reports: Vec::new(),
            breached: None,
            next_wake_up: limit.measure_start(),
            measuring: false,
            drain: None,
        };
        while progress.reports.len() < self.handles.len() {
            let end = if progress.drain.is_some() { Nanos::MAX } else { limit.end() };
            let next = progress.next_wake_up.min(end);
            let wait = Duration::from(next.since(self.shared.clock.now())).min(POLL_INTERVAL);
            self.receive(wait, timeline, &mut progress, observer)?;
            self.advance(limit, &mut progress, probe, observer)?;
        }
        if progress.drain.is_none() || limit.stops_by_count() {
            probe.end();
        }
        Ok((progress.reports, progress.breached))
    }

    /// Waits for the next event of a worker, for at most `wait`.
    fn receive(
        &self,
        wait: Duration,
        timeline: &mut Timeline,
        progress: &mut Progress,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        match self.received.recv_timeout(wait) {
            Ok((worker, WorkerEvent::Interval(part))) => {
                for point in timeline.add(&part)? {
                    observer.point(&point);
                }
                if progress.breached.is_none() {
                    progress.breached = self.breached(timeline);
                }
                if let Some(handle) = self.handles.get(worker) {
                    let _ = handle.spares.try_send(part);
                }
            }
            Ok((_, WorkerEvent::Ended(report))) => {
                timeline.add_last(report.recorder.interval())?;
                progress.reports.push(*report);
            }
            Ok((_, WorkerEvent::Ready(_))) | Err(RecvTimeoutError::Timeout) => {}
            Ok((_, WorkerEvent::Lost)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(EngineError::WorkerLost);
            }
        }
        Ok(())
    }

    /// Starts and ends the measurement, the intervals and the drain when they are due.
    fn advance(
        &self,
        limit: &Limit,
        progress: &mut Progress,
        probe: &mut Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        let now = self.shared.clock.now();
        if self.interrupt.requested() || progress.breached.is_some() || limit.has_failed() {
            limit.end_now(now);
            if progress.drain.is_none() {
                self.cancel_calls();
            }
        }
        if !progress.measuring && now >= limit.measure_start() {
            progress.measuring = true;
            probe.start();
            observer.measuring();
        }
        if progress.drain.is_none() && now >= limit.end() {
            let interrupted = self.interrupt.requested();
            progress.drain = Some(Drain { interrupted_before: interrupted, shown: false });
            if !limit.stops_by_count() {
                probe.end();
            }
            self.wake_workers()?;
        }
        if now >= progress.next_wake_up {
            progress.next_wake_up = progress.next_wake_up.after(self.shared.interval);
            self.wake_workers()?;
        }
        match &mut progress.drain {
            Some(drain) => self.drain(limit, drain, now, observer),
            None => Ok(()),
        }
    }

    /// Shows a long drain, and aborts it after the timeout or when the user interrupts it.
    fn drain(
        &self,
        limit: &Limit,
        drain: &mut Drain,
        now: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        let waited: Duration = now.since(limit.end()).into();
        if !drain.shown && waited >= DRAIN_NOTICE_AFTER {
            drain.shown = true;
            observer.draining();
        }
        // An interrupt before the drain ended the measurement; only a later one aborts the drain.
        let canceled = drain.shown && self.interrupt.requested() && !drain.interrupted_before;
        if waited >= limit.drain_timeout() || canceled {
            limit.abort(waited);
            self.cancel_calls();
            self.wake_workers()?;
        }
        Ok(())
    }

    /// Returns a threshold that is already breached, if a breach ends the run.
    fn breached(&self, timeline: &Timeline) -> Option<Threshold> {
        let (total, seconds) = timeline.total()?;
        let figures = Figures::so_far(total, seconds);
        let is_breached = |threshold: &&Threshold| {
            figures.get(threshold.metric).is_some_and(|found| threshold.is_clearly_breached(found))
        };
        self.plan.thresholds.iter().find(is_breached).cloned()
    }

    fn wake_workers(&self) -> Result<(), EngineError> {
        for handle in &self.handles {
            if let Signal::Wake(waker) = &handle.signal {
                waker.wake()?;
            }
        }
        Ok(())
    }

    /// Cancels the calls of server-side loops, which otherwise run to the end that was set at their start.
    fn cancel_calls(&self) {
        for handle in &self.handles {
            if let Signal::Cancel(end_early) = &handle.signal {
                end_early.request();
            }
        }
    }
}
