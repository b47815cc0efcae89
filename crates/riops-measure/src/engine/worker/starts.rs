//! The rules of the plan for the transaction loop, and the times at which transactions start: at once in the closed
//! loop, otherwise at the intended starts of the stage. An idle session claims the next start and waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use riops_wire::sqlstate::SqlState;

use super::super::schedule::Unclaimed;
use super::super::session::Session;
use super::super::window::{Permission, Window};
use super::report::Starts;
use crate::metrics::{Fate, Recorder};
use riops_model::plan::{ErrorPolicy, LatencyLimit, Plan};
use riops_model::units::Nanos;
use riops_model::units::format::nearest_integer;

/// Settings of a plan that apply to the transaction loop.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Rules {
    pub(in crate::engine) errors: ErrorPolicy,
    pub(in crate::engine) reconnect_every: Option<u64>,
    /// Whether the stage fails when a connection with transactions in flight is lost.
    pub(super) exact: bool,
    /// SQLSTATEs that are retried in addition to those retried for every workload.
    pub(super) retried: Vec<SqlState>,
    pub(in crate::engine) late_after: Nanos,
    pub(super) skip_late: bool,
}

impl Rules {
    pub(in crate::engine) fn new(plan: &Plan, exact: bool, retried: Vec<SqlState>) -> Self {
        let (late_after, skip_late) = match plan.latency_limit {
            None => (Nanos::MAX, false),
            Some(LatencyLimit { limit_s, skip }) => (Nanos(nearest_integer(limit_s * 1e9)), skip),
        };
        let (errors, reconnect_every) = (plan.errors, plan.reconnect_every);
        Self { errors, reconnect_every, exact, retried, late_after, skip_late }
    }
}

/// Next action of a session with a free slot.
pub(super) enum Next {
    /// It starts a transaction.
    Start { intended: Nanos, claimed: bool },
    /// It skips a start that is too late by `waited`.
    Skip { is_measured: bool, waited: Nanos },
    /// It waits for the start that it has claimed.
    Wait { until: Nanos },
    /// It waits already.
    Parked,
    /// No more transactions may start.
    End,
}

pub(in crate::engine) struct StartQueue {
    /// The intended starts, shared with the other workers; `None` in the closed loop.
    pub(in crate::engine) unclaimed: Option<Arc<Unclaimed>>,
    /// Whether this worker reports how many starts of the stage wait.
    reports_backlog: bool,
    /// Sessions that wait for the start that they have claimed, earliest start first.
    parked: VecDeque<(usize, Nanos)>,
    /// The claimed start of the session that is resumed.
    claimed: Option<Nanos>,
    /// Number of intended starts within the measurement that were taken.
    taken: u64,
    /// Starts before the measurement that were waiting for a free session when it started.
    backlog_before: u64,
}

impl StartQueue {
    pub(in crate::engine) fn new(
        unclaimed: Option<Arc<Unclaimed>>,
        reports_backlog: bool,
        sessions: usize,
    ) -> Self {
        let parked = VecDeque::with_capacity(sessions);
        Self { unclaimed, reports_backlog, parked, claimed: None, taken: 0, backlog_before: 0 }
    }

    /// Takes the next start of a session, if it is due and permitted.
    #[inline]
    pub(super) fn next(
        &mut self,
        session: &Session,
        window: &Window,
        rules: &Rules,
        now: Nanos,
    ) -> Next {
        let Some(unclaimed) = &self.unclaimed else {
            return match window.permit(now) {
                Permission::Start { claimed } => Next::Start { intended: now, claimed },
                Permission::End => Next::End,
            };
        };
        if session.parked {
            return Next::Parked;
        }
        if now >= window.end() {
            return Next::End;
        }
        let intended = self.claimed.take().unwrap_or_else(|| unclaimed.claim());
        if intended > now {
            if window.ends_before(intended) {
                unclaimed.give_back(intended);
                return Next::End;
            }
            return Next::Wait { until: intended };
        }
        let mut is_measured = intended >= window.measure_start();
        if rules.skip_late && now.since(intended) > rules.late_after {
            if window.stops_by_count() {
                // A skipped start counts as one of the transactions of its session.
                let Permission::Start { claimed } = window.permit(now) else {
                    unclaimed.give_back(intended);
                    return Next::End;
                };
                is_measured = window.counts(claimed, now, 0);
            }
            self.taken += u64::from(is_measured);
            return Next::Skip { is_measured, waited: now.since(intended) };
        }
        let Permission::Start { claimed } = window.permit(now) else {
            unclaimed.give_back(intended);
            return Next::End;
        };
        // A run that stops by count has one intended start per counted transaction.
        self.taken += u64::from(if window.stops_by_count() { claimed } else { is_measured });
        Next::Start { intended, claimed }
    }

    /// Lets a session wait for the start that it has claimed.
    pub(super) fn park(&mut self, index: usize, session: &mut Session, until: Nanos) {
        session.parked = true;
        let position = self.parked.partition_point(|(_, start)| *start <= until);
        self.parked.insert(position, (index, until));
    }

    /// Returns the next start that a session waits for.
    pub(super) fn awaited(&self) -> Option<Nanos> {
        self.parked.front().map(|(_, start)| *start)
    }

    /// Returns the session whose start is due, with this start. The start remains claimed for the session that is
    /// resumed.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(usize, Nanos)> {
        self.awaited().filter(|&start| start <= now)?;
        let (index, start) = self.parked.pop_front()?;
        self.claimed = Some(start);
        Some((index, start))
    }

    /// Returns whether the resumed session has begun its start. If not, passes the start to the session that waits for
    /// the next start.
    pub(super) fn is_begun(&mut self) -> bool {
        let (Some(start), Some(unclaimed)) = (self.claimed.take(), &self.unclaimed) else {
            return true;
        };
        match self.parked.front_mut() {
            Some((_, next)) => unclaimed.give_back(std::mem::replace(next, start)),
            None => unclaimed.give_back(start),
        }
        false
    }

    /// Notes which starts wait when the measurement starts.
    pub(super) fn begin_measurement(&mut self, start: Nanos) {
        self.backlog_before = self.backlog(start).unwrap_or(0);
    }

    /// Returns how many due starts of the stage wait at the end of an interval; 0 for all workers but one. A start exactly
    /// at `end` belongs to the next one.
    pub(super) fn backlog(&self, end: Nanos) -> Option<u64> {
        let unclaimed = self.unclaimed.as_ref()?;
        let before_end = Nanos(end.0.saturating_sub(1));
        Some(if self.reports_backlog { unclaimed.backlog(before_end) } else { 0 })
    }

    /// Returns the starts that sessions have claimed in a measurement that ended at `end`, and notes how long the
    /// starts waited that were not begun.
    pub(super) fn report(
        &mut self,
        window: &Window,
        end: Nanos,
        recorder: &mut Recorder,
    ) -> Option<Starts> {
        self.unclaimed.as_ref()?;
        let mut starts = Starts {
            intended: self.taken,
            backlog_before: self.backlog_before,
            ..Starts::default()
        };
        // A run that stops by count has one intended start per claimed transaction.
        if !window.has_ended_by_count() {
            let parked = self.parked.drain(..).map(|(_, start)| start);
            add_waiting(parked.filter(|start| *start < end), window, end, &mut starts, recorder);
        }
        Some(starts)
    }
}

/// Adds the starts that no session has claimed, after all workers have ended.
pub(in crate::engine) fn add_unclaimed(
    unclaimed: &Unclaimed,
    window: &Window,
    starts: &mut Starts,
    recorder: &mut Recorder,
) {
    if !window.has_ended_by_count() {
        let end = window.end();
        let waiting = std::iter::from_fn(|| unclaimed.claim_before(end));
        add_waiting(waiting, window, end, starts, recorder);
    }
}

/// Adds the starts of the measurement among these.
fn add_waiting(
    waiting: impl Iterator<Item = Nanos>,
    window: &Window,
    end: Nanos,
    starts: &mut Starts,
    recorder: &mut Recorder,
) {
    for start in waiting.filter(|start| *start >= window.measure_start()) {
        starts.add_waiting(end.since(start));
        recorder.record_unstarted(Fate::NotStarted, end.since(start), end);
    }
}
