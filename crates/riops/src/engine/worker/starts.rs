//! When transactions start: at once in the closed loop, else at the intended starts of the worker.

use std::collections::VecDeque;

use super::super::schedule::Arrivals;
use super::super::session::Session;
use super::super::window::{Permission, Window};
use super::report::Starts;
use super::rules::Rules;
use crate::units::Nanos;

/// What a session with a free slot does next.
pub(super) enum Next {
    /// It starts a transaction.
    Start { intended: Nanos, claimed: bool },
    /// It skips a start that is too late.
    Skip { is_measured: bool },
    /// The next start is not due yet.
    Wait,
    /// No more transactions may start.
    End,
}

pub(in crate::engine) struct StartQueue {
    /// `None` in the closed loop.
    arrivals: Option<Arrivals>,
    /// Sessions that wait for the next start, longest wait first.
    parked: VecDeque<usize>,
    /// Number of intended starts within the measurement that were taken.
    taken: u64,
    /// Starts that were due before the measurement.
    due_before: u64,
    /// Those of them that were waiting for a free session when the measurement started.
    backlog_before: u64,
}

impl StartQueue {
    pub(in crate::engine) fn new(arrivals: Option<Arrivals>, sessions: usize) -> Self {
        let parked = VecDeque::with_capacity(sessions);
        Self { arrivals, parked, taken: 0, due_before: 0, backlog_before: 0 }
    }

    /// Takes the next start, if it is due and permitted.
    pub(super) fn next(&mut self, window: &Window, rules: &Rules, now: Nanos) -> Next {
        let Some(arrivals) = &mut self.arrivals else {
            return match window.permit(now) {
                Permission::Start { claimed } => Next::Start { intended: now, claimed },
                Permission::End => Next::End,
            };
        };
        if now >= window.end() {
            return Next::End;
        }
        let intended = arrivals.next();
        if intended > now {
            return Next::Wait;
        }
        let mut is_measured = intended >= window.measure_start();
        if rules.skip_late && now.since(intended) > rules.late_after {
            arrivals.take();
            if window.stops_by_count() {
                // A skipped start is one of the transactions of its session.
                let Permission::Start { claimed } = window.permit(now) else {
                    return Next::End;
                };
                is_measured = window.counts(claimed, now, 0);
            }
            self.taken += u64::from(is_measured);
            return Next::Skip { is_measured };
        }
        let Permission::Start { claimed } = window.permit(now) else {
            return Next::End;
        };
        arrivals.take();
        // A run that stops by count has one intended start per counted transaction.
        self.taken += u64::from(if window.stops_by_count() { claimed } else { is_measured });
        Next::Start { intended, claimed }
    }

    /// Lets a session wait for the next start.
    pub(super) fn park(&mut self, number: usize, session: &mut Session) {
        if !std::mem::replace(&mut session.parked, true) {
            self.parked.push_back(number);
        }
    }

    /// Returns the next intended start.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.arrivals.as_ref().map(Arrivals::next)
    }

    /// Returns the next intended start that a session waits for.
    pub(super) fn awaited(&self) -> Option<Nanos> {
        self.due().filter(|_| !self.parked.is_empty())
    }

    /// Returns the session that waits longest, if the next start is due, and that start.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(usize, Nanos)> {
        let due = self.due().filter(|&due| due <= now)?;
        Some((self.parked.pop_front()?, due))
    }

    /// Lets no session wait any longer, at the end of the measurement.
    pub(super) fn end(&mut self) {
        self.parked.clear();
    }

    /// Notes which starts were due before the measurement.
    pub(super) fn begin_measurement(&mut self, start: Nanos) {
        let before = Nanos(start.0.saturating_sub(1));
        if let Some(arrivals) = &mut self.arrivals {
            self.due_before = arrivals.due(before);
            self.backlog_before = arrivals.backlog(before);
        }
    }

    /// Returns how many due starts wait at the end of an interval. A start exactly at `end` belongs to the next one.
    pub(super) fn backlog(&mut self, end: Nanos) -> Option<u64> {
        let before_end = Nanos(end.0.saturating_sub(1));
        self.arrivals.as_mut().map(|arrivals| arrivals.backlog(before_end))
    }

    /// Returns the intended starts of a measurement that ended at `end`.
    pub(super) fn report(&mut self, window: &Window, end: Nanos) -> Option<Starts> {
        let arrivals = self.arrivals.as_mut()?;
        // A run that stops by count has one intended start per claimed transaction.
        let intended = if window.ended_by_count() || end <= window.measure_start() {
            self.taken
        } else {
            arrivals.due(Nanos(end.0.saturating_sub(1))).saturating_sub(self.due_before)
        };
        let waiting = intended.saturating_sub(self.taken);
        let oldest_wait = if waiting > 0 { end.since(arrivals.next()) } else { Nanos(0) };
        Some(Starts { intended, waiting, oldest_wait, backlog_before: self.backlog_before })
    }
}
