//! A stage from "all are connected" to the last report: the main thread's part, which calls the
//! workers when the time for something has come and touches no transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::clock::Clock;
use super::findings::{self, AccessFinding};
use super::limit::Limit;
use super::result::{StageResult, merge_reports, note_outages};
use super::worker::{WorkerEvent, WorkerReport};
use super::{Caller, EngineError, Go, Observer, Shared, WorkerHandle};
use crate::host::Interrupt;
use crate::metrics::{Figures, Timeline};
use crate::plan::{RunPlan, Schedule, Threshold};
use crate::probe::Probe;
use crate::units::Nanos;

/// How often the main thread looks at the user's wishes.
const LOOK: Duration = Duration::from_millis(50);
/// A drain that takes longer is told of.
const DRAIN_TOLD: Duration = Duration::from_secs(1);

/// A stage whose workers have been started.
pub(super) struct StageRun<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) shared: &'a Shared,
    pub(super) handles: Vec<WorkerHandle>,
    pub(super) received: Receiver<(usize, WorkerEvent)>,
    pub(super) interrupt: &'a Interrupt,
    /// Between "all are connected" and the first transaction.
    pub(super) head_start: Duration,
    /// The server's clock at the zero of ours, for loops in the server.
    pub(super) server_epoch_s: f64,
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
        let clock = self.shared.clock;
        let mut reports = Vec::new();
        let mut breached = None;
        let mut next_call = limit.measure_start();
        let (mut measuring, mut ended, mut told, mut wish_is_old) = (false, false, false, false);
        while reports.len() < self.handles.len() {
            let now = clock.now();
            let next = next_call.min(if ended { Nanos::MAX } else { limit.end() });
            let wait = Duration::from(next.since(now)).min(LOOK);
            match self.received.recv_timeout(wait) {
                Ok((worker, WorkerEvent::Interval(part))) => {
                    for point in timeline.add(&part)? {
                        observer.point(&point);
                    }
                    if breached.is_none() {
                        breached = self.breached(timeline);
                    }
                    if let Some(handle) = self.handles.get(worker) {
                        let _ = handle.spares.try_send(part);
                    }
                }
                Ok((_, WorkerEvent::Ended(report))) => {
                    timeline.add_last(report.recorder.interval())?;
                    reports.push(*report);
                }
                Ok((_, WorkerEvent::Ready(_))) | Err(RecvTimeoutError::Timeout) => {}
                Ok((_, WorkerEvent::Lost)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(EngineError::WorkerLost);
                }
            }
            let now = clock.now();
            if self.interrupt.requested() || breached.is_some() || limit.has_failed() {
                limit.end_now(now);
                if !ended {
                    self.give_up_calls();
                }
            }
            if !measuring && now >= limit.measure_start() {
                measuring = true;
                probe.start();
                observer.measuring();
            }
            if !ended && now >= limit.end() {
                ended = true;
                wish_is_old = self.interrupt.requested();
                if !limit.is_by_number() {
                    probe.end();
                }
                self.call_workers()?;
            }
            if now >= next_call {
                next_call = next_call.after(self.shared.interval);
                self.call_workers()?;
            }
            let waited: Duration = now.since(limit.end()).into();
            if ended && !told && waited >= DRAIN_TOLD {
                told = true;
                observer.draining();
            }
            // Who asks for the end once more while nothing but the drain is left does not want it.
            let unwanted = told && self.interrupt.requested() && !wish_is_old;
            if ended && (waited >= limit.patience() || unwanted) {
                limit.abort(waited);
                self.give_up_calls();
                self.call_workers()?;
            }
        }
        if !ended || limit.is_by_number() {
            probe.end();
        }
        Ok((reports, breached))
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
