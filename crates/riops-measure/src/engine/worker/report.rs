//! The report of a worker to the main thread, and the intervals that it sends while it runs: plain data.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use super::super::clock::larger_step_s;
use super::super::error::{EngineError, SessionError};
use super::super::findings::{self, AccessFinding, Moment, UncheckedPlan, note, note_unchecked};
use super::super::tally::SessionTally;
use super::super::window::Window;
use crate::metrics::{IntervalPart, Recorder};
use crate::workload::access::Finding;
use crate::workload::effects::EffectsByTable;
use crate::workload::unknown::Unknown;
use riops_model::record::{EndedSessionRecord, HistogramError};
use riops_model::units::Nanos;

/// An event that a worker sends to the main thread.
#[derive(Debug)]
pub(in crate::engine) enum WorkerEvent {
    /// All sessions are connected, with the findings of their plan checks; or the first of them failed.
    Ready(Result<Vec<AccessFinding>, EngineError>),
    /// The last transaction has ended. Sent only to wake the main thread; the window has the count.
    Finished,
    /// The worker exited without a report.
    Lost,
    /// Counters of a completed interval.
    Interval(Box<IntervalPart>),
    /// The final report.
    Ended(Box<WorkerReport>),
}

/// Everything that the database acknowledged, including the warm-up and the drain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Number of transactions.
    pub transactions: u64,
    /// Number of rows.
    pub rows: u64,
    /// Maximum number of rows of transactions with an unknown outcome.
    pub rows_unknown: u64,
    /// Number of transactions with an unknown outcome.
    pub transactions_unknown: u64,
    /// Acknowledged changes by table, for workloads that count them.
    pub effects: EffectsByTable,
    /// Maximum further changes by transactions with an unknown outcome.
    pub effects_unknown: EffectsByTable,
}

impl Acknowledged {
    /// Adds the work of another worker.
    pub(in crate::engine) fn merge(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.rows += other.rows;
        self.rows_unknown += other.rows_unknown;
        self.transactions_unknown += other.transactions_unknown;
        self.effects.merge(&other.effects);
        self.effects_unknown.merge(&other.effects_unknown);
    }
}

/// Transactions of the warm-up that were in flight when the measurement of a run by count started. They do
/// not count, but their sessions could not start counted ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WarmupInFlight {
    /// Number of transactions.
    pub transactions: u64,
    /// Time that they occupied their sessions within the measurement, summed over all of them.
    pub occupied: Nanos,
}

impl WarmupInFlight {
    /// Adds the transactions of another worker.
    pub(in crate::engine) fn merge(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.occupied = self.occupied.after(other.occupied);
    }
}

/// Intended starts of a run with a rate, and how many of them were not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Starts {
    /// Number of intended starts within the measurement.
    pub intended: u64,
    /// Number of intended starts that were still waiting for a free session at the end of the measurement.
    pub waiting: u64,
    /// Waiting time of the oldest of these, in nanoseconds.
    pub oldest_wait: Nanos,
    /// Number of starts of the warm-up that were waiting for a free session when the measurement started.
    pub backlog_before: u64,
}

impl Starts {
    /// Adds a start that no session has begun.
    pub(in crate::engine) fn add_waiting(&mut self, waited: Nanos) {
        self.intended += 1;
        self.waiting += 1;
        self.oldest_wait = self.oldest_wait.max(waited);
    }

    /// Adds the starts of another worker.
    pub(in crate::engine) fn merge(&mut self, other: Self) {
        self.intended += other.intended;
        self.waiting += other.waiting;
        self.backlog_before += other.backlog_before;
        self.oldest_wait = self.oldest_wait.max(other.oldest_wait);
    }
}

/// Maximum number of sessions whose error is reported.
pub(in crate::engine) const ENDED_MAX: usize = 1_000;

/// Results of a worker, or of all workers of a stage.
#[derive(Debug)]
pub struct WorkerReport {
    /// Counts and histograms.
    pub recorder: Recorder,
    /// Work that the database acknowledged, by operation, including the warm-up and the drain.
    pub acknowledged: Vec<Acknowledged>,
    /// Transactions with an unknown outcome, up to [`UNKNOWN_MAX`](crate::workload::unknown::UNKNOWN_MAX) for
    /// each worker.
    pub unknown: Vec<Unknown>,
    /// Number of replies with unexpected contents, including the warm-up and the drain.
    pub wrong_replies: u64,
    /// Findings of the plan checks before, during and after the run.
    pub findings: Vec<AccessFinding>,
    /// Plan checks without a verdict.
    pub unchecked: Vec<UncheckedPlan>,
    /// Largest step of a server's clock during a server-side loop, in seconds, without the part that may be an error of
    /// the reading; negative if it was set back, 0 if no step was found.
    pub clock_step_s: f64,
    /// Transactions of the warm-up in flight at the start of the measurement; only for a run by count.
    pub warmup_in_flight: WarmupInFlight,
    /// Work of each session; of a stage ordered by session number.
    pub sessions: Vec<SessionTally>,
    /// Number of transactions that succeeded after the end of the measurement.
    pub drained: u64,
    /// Longest service time of these.
    pub drained_max: Nanos,
    /// Number of transactions in flight at the end that failed or have an unknown outcome.
    pub drained_lost: u64,
    /// Number of attempts that did not succeed, including the warm-up and the drain; 0 with a server-side loop.
    pub unsuccessful: u64,
    /// CPU time of each worker during the measurement, in seconds.
    pub worker_cpu_s: Vec<f64>,
    /// Intended starts; only with a rate.
    pub starts: Option<Starts>,
    /// Error that ended the stage early.
    pub failure: Option<SessionError>,
    /// Sessions that an error has ended, up to a maximum. The commands of a worker are numbered over all scripts.
    pub ended_sessions: Vec<EndedSessionRecord>,
    /// End of the last counted transaction of one worker.
    pub(in crate::engine) last_end: Nanos,
    /// Completed intervals of one worker that could not be sent because the channel was full, oldest first.
    pub(in crate::engine) unsent: VecDeque<Box<IntervalPart>>,
}

impl WorkerReport {
    /// Returns the number of transactions whose outcome is unknown, in all phases.
    pub fn unknown_transactions(&self) -> u64 {
        self.acknowledged.iter().map(|operation| operation.transactions_unknown).sum()
    }

    pub(in crate::engine) fn new(
        recorder: Recorder,
        operations: usize,
        measure_start: Nanos,
    ) -> Self {
        Self {
            recorder,
            acknowledged: vec![Acknowledged::default(); operations],
            unknown: Vec::new(),
            wrong_replies: 0,
            findings: Vec::new(),
            sessions: Vec::new(),
            drained: 0,
            drained_max: Nanos(0),
            drained_lost: 0,
            unsuccessful: 0,
            last_end: measure_start,
            worker_cpu_s: Vec::new(),
            starts: None,
            failure: None,
            ended_sessions: Vec::new(),
            unsent: VecDeque::new(),
            warmup_in_flight: WarmupInFlight::default(),
            unchecked: Vec::new(),
            clock_step_s: 0.0,
        }
    }

    /// Adds the report of another worker.
    pub(in crate::engine) fn merge(&mut self, other: Self) -> Result<(), HistogramError> {
        self.recorder.merge(&other.recorder)?;
        for (mine, theirs) in self.acknowledged.iter_mut().zip(&other.acknowledged) {
            mine.merge(theirs);
        }
        self.unknown.extend(other.unknown);
        self.wrong_replies += other.wrong_replies;
        findings::merge(&mut self.findings, other.findings);
        for unchecked in other.unchecked {
            note_unchecked(&mut self.unchecked, unchecked);
        }
        self.clock_step_s = larger_step_s(self.clock_step_s, other.clock_step_s);
        self.warmup_in_flight.merge(other.warmup_in_flight);
        self.sessions.extend(other.sessions);
        self.drained += other.drained;
        self.drained_lost += other.drained_lost;
        self.unsuccessful += other.unsuccessful;
        self.drained_max = self.drained_max.max(other.drained_max);
        self.worker_cpu_s.extend(other.worker_cpu_s);
        if let (Some(mine), Some(theirs)) = (&mut self.starts, other.starts) {
            mine.merge(theirs);
        }
        self.ended_sessions.extend(other.ended_sessions);
        self.failure = self.failure.take().or(other.failure);
        Ok(())
    }

    /// Records the finding of a plan check, or why it has no verdict.
    pub(in crate::engine) fn note_check(
        &mut self,
        statement: String,
        moment: Moment,
        finding: Result<Finding, String>,
    ) {
        let sessions = 1;
        match finding {
            Ok(finding) => {
                let finding = AccessFinding { statement, moment, finding, sessions };
                note(&mut self.findings, finding);
            }
            Err(reason) => {
                let unchecked = UncheckedPlan { statement, moment, reason, sessions };
                note_unchecked(&mut self.unchecked, unchecked);
            }
        }
    }
}

// The intervals of a worker, which it sends to the main thread.

/// The end of the current interval, and the channels through which completed ones are sent and their memory returns.
#[derive(Debug)]
pub(in crate::engine) struct Intervals {
    worker: usize,
    pub(in crate::engine) length: Nanos,
    events: SyncSender<(usize, WorkerEvent)>,
    spares: Receiver<Box<IntervalPart>>,
    /// Number of completed intervals.
    pub(in crate::engine) completed: usize,
    /// End of the current interval.
    pub(in crate::engine) end: Nanos,
    /// Intervals that are still to be sent because the channel was full, oldest first.
    pub(in crate::engine) unsent: VecDeque<Box<IntervalPart>>,
}

impl Intervals {
    /// Creates the intervals of a measurement.
    pub(in crate::engine) fn new(
        worker: usize,
        window: &Window,
        length: Nanos,
        events: SyncSender<(usize, WorkerEvent)>,
        spares: Receiver<Box<IntervalPart>>,
    ) -> Self {
        let (completed, end) = (0, window.measure_start().after(length));
        Self { worker, length, events, spares, completed, end, unsent: VecDeque::new() }
    }

    /// Ends the current interval and sends it. Returns false if there is no memory for the next one.
    pub(in crate::engine) fn next(&mut self, recorder: &mut Recorder, open_loop: bool) -> bool {
        // The main thread returns the memory of merged intervals. An allocation is needed only if it is far
        // behind.
        let spare = self.spares.try_recv().ok();
        let Some(spare) = spare.or_else(|| IntervalPart::new(open_loop).ok().map(Box::new)) else {
            return false;
        };
        self.completed += 1;
        self.end = self.end.after(self.length);
        self.submit(recorder.next_interval(spare, self.completed));
        true
    }

    /// Sends a completed interval after those that are still to be sent. Never blocks: the time would be
    /// counted as service time. How many intervals wait is limited by the deadlines of everything that the
    /// supervising thread does.
    fn submit(&mut self, part: Box<IntervalPart>) {
        self.unsent.push_back(part);
        while let Some(part) = self.unsent.pop_front() {
            match self.events.try_send((self.worker, WorkerEvent::Interval(part))) {
                Ok(()) => {}
                Err(TrySendError::Full((_, WorkerEvent::Interval(part)))) => {
                    return self.unsent.push_front(part);
                }
                Err(_) => return,
            }
        }
    }

    /// Notifies the main thread that the last transaction of the worker has ended.
    pub(in crate::engine) fn finish_worker(&self, window: &Window) {
        window.finish_worker();
        // If the channel is full, the main thread is awake anyway.
        let _ = self.events.try_send((self.worker, WorkerEvent::Finished));
    }
}
