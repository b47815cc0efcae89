//! The main thread's part of a stage, from the last connect to the last report.
//!
//! It passes the events on and builds the result. It must not run transactions, and `supervisor` does
//! everything that must happen on time.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use jiff::Timestamp;

use super::clock::Clock;
use super::error::EngineError;
use super::findings::{self, AccessFinding};
use super::hooks::Agreement;
use super::result::{StageResult, merge_reports, note_outages};
use super::schedule::{Arrivals, Gaps, Unclaimed};
use super::shared::{Shared, Signal, StartSignal, WorkerHandle};
use super::supervisor::{Supervised, SupervisionResult, Supervisor};
use super::window::Window;
use super::worker::{WorkerEvent, add_unclaimed};
use crate::metrics::{TimeSeries, Timeline};
use crate::probe::Probe;
use crate::workload::keys::{Purpose, stream};
use riops_model::record::{Events, RunEvent};
use riops_model::units::{Nanos, Span};
use riops_script::random::Random;

/// A stage whose workers have been started.
pub(super) struct StageRun<'a> {
    pub(super) shared: &'a Shared,
    pub(super) handles: Vec<WorkerHandle>,
    pub(super) received: Receiver<(usize, WorkerEvent)>,
    /// Delay between the last session's connect and the first transaction.
    pub(super) head_start: Duration,
    /// Agreement of several clients on the start of the stage.
    pub(super) agreed: Option<Agreement>,
}

impl StageRun<'_> {
    /// Waits until every session of every worker is ready. The first failure aborts the stage.
    pub(super) fn await_connected(&self) -> Result<Vec<AccessFinding>, EngineError> {
        let mut findings = Vec::new();
        for _ in &self.handles {
            match self.received.recv() {
                Ok((_, WorkerEvent::Ready(Ok(worker_findings)))) => {
                    findings::merge(&mut findings, worker_findings);
                }
                Ok((_, WorkerEvent::Ready(Err(error)))) => return Err(error),
                _ => return Err(EngineError::WorkerLost),
            }
        }
        Ok(findings)
    }

    pub(super) fn measure(
        self,
        before: Vec<AccessFinding>,
        probe: &mut Probe<'_>,
        events: &Events,
    ) -> Result<StageResult, EngineError> {
        let Self { shared, handles, received, head_start, agreed } = self;
        let plan = &shared.plan;
        let earliest = shared.clock.now().after(head_start.into());
        let agreed_start = agreed.as_ref().map(|agreed| shared.clock.at(agreed.start));
        let start = agreed_start.map_or(earliest, |start| start.max(earliest));
        let measure_start = start.after(plan.warmup().into());
        let until = Duration::from_nanos(measure_start.since(shared.clock.now()).0);
        let started_at = Timestamp::now() + until;
        let window = Window::new(plan.stop, plan.max_duration_s, measure_start);
        let window = Arc::new(window.with_schedule(&plan.schedule).with_drain(plan.drain));
        let unclaimed = starts(shared, start, measure_start);
        for handle in &handles {
            let (window, unclaimed) = (Arc::clone(&window), unclaimed.clone());
            let signal = StartSignal { start, window, unclaimed };
            handle.start_signal.send(signal).map_err(|_| EngineError::WorkerLost)?;
        }
        let timeline = Timeline::new(handles.len(), plan)?;
        let breach = agreed.as_ref().map(|agreed| &*agreed.breach);
        let stage = Supervised { shared, handles: &handles, window: &window, breach };
        let (supervisor, to_send) = Supervisor::new(stage, received, timeline);
        let outcome = supervise(supervisor, &to_send, probe, events)?;
        let SupervisionResult { reports, breached, timeline } = outcome;
        let in_server = handles.iter().any(|handle| matches!(handle.signal, Signal::Cancel(_)));
        for handle in handles {
            handle.thread.join().map_err(|_| EngineError::WorkerLost)?;
        }
        let interrupted = shared.interrupt.is_requested();
        // A canceled call has reported nothing since its last interval.
        let canceled = in_server && (interrupted || breached.is_some() || window.has_failed());
        let mut result = merge_reports(reports, &window, canceled)?;
        if let (Some(unclaimed), Some(starts)) = (&unclaimed, &mut result.workers.starts) {
            add_unclaimed(unclaimed, &window, starts, &mut result.workers.recorder);
        }
        result.started_at = started_at;
        result.workers.ended_sessions.sort_by_key(|ended| ended.session);
        result.interrupted = interrupted;
        let TimeSeries { points, last, heatmap } = timeline.finish(result.seconds);
        for point in &last {
            events.send(&RunEvent::Point(Box::new(point.clone())));
        }
        result.series = points;
        result.heatmap = (!heatmap.slots.is_empty()).then_some(heatmap);
        result.breached = breached;
        result.nodes = shared.nodes.list();
        // Server-side loops report successes only per interval, too coarse for outages.
        if !in_server {
            note_outages(&mut result, window.measure_start());
        }
        let mut findings = before;
        findings::merge(&mut findings, result.workers.findings);
        findings.sort_by_key(|check| (sort_key(&check.statement), check.moment));
        result.workers.findings = findings;
        Ok(result)
    }
}

/// Returns the intended starts; `None` in the closed loop.
fn starts(shared: &Shared, start: Nanos, measure_start: Nanos) -> Option<Arc<Unclaimed>> {
    let plan = &shared.plan;
    // Evenly spaced starts of several clients alternate, and random ones are independent.
    let (agent, agents) = plan.share.map_or((0, 1), |share| (share.agent, share.agents));
    let gaps = match shared.streams.first() {
        Some([starts, _]) if plan.share.is_none() => Gaps::Pgbench(Random::new(*starts)),
        _ => Gaps::Own(stream(plan.seed, Purpose::Arrivals, agent.into())),
    };
    let between_s = plan.schedule.per_s().map_or(0.0, |per_s| 1.0 / per_s);
    let later = Span::of_seconds(between_s * f64::from(agent) / f64::from(agents.max(1)));
    let anchor = measure_start.after(later.0.into());
    let arrivals = Arrivals::new(&plan.schedule, start, anchor, gaps)?;
    Some(Arc::new(Unclaimed::new(arrivals)))
}

/// Returns the parts of the name of a statement by which it is sorted: its number is not a text.
fn sort_key(statement: &str) -> (String, u64) {
    let name = statement.trim_end_matches(|last: char| last.is_ascii_digit());
    let suffix = statement.get(name.len()..).and_then(|digits| digits.parse().ok());
    (name.to_owned(), suffix.unwrap_or(0))
}

/// Supervises the stage on another thread, and passes its events on from this one.
fn supervise(
    supervisor: Supervisor<'_>,
    to_send: &Receiver<RunEvent>,
    probe: &mut Probe<'_>,
    events: &Events,
) -> Result<SupervisionResult, EngineError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("riops-stage".to_owned())
            .spawn_scoped(scope, || supervisor.run(probe))?;
        for event in to_send {
            events.send(&event);
        }
        thread.join().map_err(|_| EngineError::WorkerLost)?
    })
}
