//! A stage from "all are connected" to the last report: the main thread's part, which calls the
//! workers when the time for something has come and touches no transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::clock::Clock;
use super::error::EngineError;
use super::findings::{self, AccessFinding};
use super::limit::Limit;
use super::observer::Observer;
use super::result::{StageResult, merge_reports, note_outages};
use super::shared::{Caller, Go, Shared, WorkerHandle};
use super::worker::{WorkerEvent, WorkerReport};
use crate::host::Interrupt;
use crate::metrics::{Figures, Timeline};
use crate::plan::{Plan, Schedule, Threshold};
use crate::probe::Probe;
use crate::units::Nanos;

/// How often the main thread looks at the user's wishes.
const LOOK: Duration = Duration::from_millis(50);
/// A drain that takes longer is told of.
const DRAIN_TOLD: Duration = Duration::from_secs(1);

/// A stage whose workers have been started.
pub(super) struct StageRun<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) handles: Vec<WorkerHandle>,
    pub(super) received: Receiver<(usize, WorkerEvent)>,
    pub(super) interrupt: &'a Interrupt,
    /// Between "all are connected" and the first transaction.
    pub(super) head_start: Duration,
    /// The server's clock at the zero of ours, for loops in the server.
    pub(super) server_epoch_s: f64,
}

/// What the main thread knows of a stage between its start and the last report.
struct Watch {
    reports: Vec<WorkerReport>,
    breached: Option<Threshold>,
    /// When the workers have to end their interval.
    next_call: Nanos,
    measuring: bool,
    /// From the end of the measurement on.
    drain: Option<Drain>,
}

/// The wait for the transactions that are in flight at the end.
struct Drain {
    /// Whether the user had interrupted the stage before.
    interrupted_before: bool,
    /// Whether the observer has heard of it.
    shown: bool,
}

impl StageRun<'_> {
    /// Waits until every session of every worker is ready; the first failure ends all.
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
            timeline.sum_up(self.plan.schedule != Schedule::Closed)?;
        }
        let (reports, breached) = self.watch(&limit, &mut timeline, probe, observer)?;
        let in_server = self.handles.iter().any(|handle| matches!(handle.caller, Caller::Call(_)));
        for handle in self.handles {
            handle.thread.join().map_err(|_| EngineError::WorkerLost)?;
        }
        let interrupted = self.interrupt.requested();
        // A call that was given up has said nothing since its last report.
        let given_up = in_server && (interrupted || breached.is_some() || limit.has_failed());
        let mut result = merge_reports(reports, &limit, limit.is_by_number() || given_up)?;
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
        // Successes in the server are known only by the interval.
        if !in_server {
            note_outages(&mut result, limit.measure_start());
        }
        let mut findings = before;
        findings::merge(&mut findings, result.findings);
        findings.sort_by(|a, b| (&a.statement, a.moment).cmp(&(&b.statement, b.moment)));
        result.findings = findings;
        Ok(result)
    }

    /// Calls the workers when the time for something has come, and collects what they say, until
    /// all have ended.
    fn watch(
        &self,
        limit: &Limit,
        timeline: &mut Timeline,
        probe: &mut Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<WorkerReport>, Option<Threshold>), EngineError> {
        let mut watch = Watch {
            reports: Vec::new(),
            breached: None,
            next_call: limit.measure_start(),
            measuring: false,
            drain: None,
        };
        while watch.reports.len() < self.handles.len() {
            let end = if watch.drain.is_some() { Nanos::MAX } else { limit.end() };
            let next = watch.next_call.min(end);
            let wait = Duration::from(next.since(self.shared.clock.now())).min(LOOK);
            self.receive(wait, timeline, &mut watch, observer)?;
            self.advance(limit, &mut watch, probe, observer)?;
        }
        if watch.drain.is_none() || limit.is_by_number() {
            probe.end();
        }
        Ok((watch.reports, watch.breached))
    }

    /// Waits for the next event of a worker, at most this long.
    fn receive(
        &self,
        wait: Duration,
        timeline: &mut Timeline,
        watch: &mut Watch,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        match self.received.recv_timeout(wait) {
            Ok((worker, WorkerEvent::Interval(part))) => {
                for point in timeline.add(&part)? {
                    observer.point(&point);
                }
                if watch.breached.is_none() {
                    watch.breached = self.breached(timeline);
                }
                if let Some(handle) = self.handles.get(worker) {
                    let _ = handle.spares.try_send(part);
                }
            }
            Ok((_, WorkerEvent::Ended(report))) => {
                timeline.add_last(report.recorder.interval())?;
                watch.reports.push(*report);
            }
            Ok((_, WorkerEvent::Ready(_))) | Err(RecvTimeoutError::Timeout) => {}
            Ok((_, WorkerEvent::Lost)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(EngineError::WorkerLost);
            }
        }
        Ok(())
    }

    /// Starts and ends what is due: the measurement, an interval, the drain.
    fn advance(
        &self,
        limit: &Limit,
        watch: &mut Watch,
        probe: &mut Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        let now = self.shared.clock.now();
        if self.interrupt.requested() || watch.breached.is_some() || limit.has_failed() {
            limit.end_now(now);
            if watch.drain.is_none() {
                self.give_up_calls();
            }
        }
        if !watch.measuring && now >= limit.measure_start() {
            watch.measuring = true;
            probe.start();
            observer.measuring();
        }
        if watch.drain.is_none() && now >= limit.end() {
            let interrupted = self.interrupt.requested();
            watch.drain = Some(Drain { interrupted_before: interrupted, shown: false });
            if !limit.is_by_number() {
                probe.end();
            }
            self.call_workers()?;
        }
        if now >= watch.next_call {
            watch.next_call = watch.next_call.after(self.shared.interval);
            self.call_workers()?;
        }
        match &mut watch.drain {
            Some(drain) => self.drain(limit, drain, now, observer),
            None => Ok(()),
        }
    }

    /// Shows a long drain, and aborts it when it takes too long or the user interrupts it.
    fn drain(
        &self,
        limit: &Limit,
        drain: &mut Drain,
        now: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        let waited: Duration = now.since(limit.end()).into();
        if !drain.shown && waited >= DRAIN_TOLD {
            drain.shown = true;
            observer.draining();
        }
        // An interrupt from before the end has ended the measurement and not the drain.
        let unwanted = drain.shown && self.interrupt.requested() && !drain.interrupted_before;
        if waited >= limit.patience() || unwanted {
            limit.abort(waited);
            self.give_up_calls();
            self.call_workers()?;
        }
        Ok(())
    }

    /// The threshold that the measurement has breached so far, where that ends it.
    fn breached(&self, timeline: &Timeline) -> Option<Threshold> {
        let (total, seconds) = timeline.total()?;
        let figures = Figures::so_far(total, seconds);
        let breaks = |threshold: &&Threshold| {
            figures.get(threshold.metric).is_some_and(|found| threshold.is_clearly_breached(found))
        };
        self.plan.thresholds.iter().find(breaks).cloned()
    }

    fn call_workers(&self) -> Result<(), EngineError> {
        for handle in &self.handles {
            if let Caller::Poll(waker) = &handle.caller {
                waker.wake()?;
            }
        }
        Ok(())
    }

    /// A loop in the server knows only the end that it was told.
    fn give_up_calls(&self) {
        for handle in &self.handles {
            if let Caller::Call(end_early) = &handle.caller {
                end_early.request();
            }
        }
    }
}
