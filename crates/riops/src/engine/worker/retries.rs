//! Transactions that wait for their retry or sleep.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::in_flight::InFlight;
use super::super::session::Session;
use crate::units::Nanos;

/// Backoff before the first retry of a transaction; doubles with each further one.
const BACKOFF_MIN: Nanos = Nanos(1_000_000);
/// Maximum backoff.
const BACKOFF_MAX: Nanos = Nanos(100_000_000);

pub(in crate::engine) struct Retries {
    waiting: BinaryHeap<Postponed>,
    rng: Xoshiro256PlusPlus,
}

impl Retries {
    pub(in crate::engine) fn new(rng: Xoshiro256PlusPlus) -> Self {
        Self { waiting: BinaryHeap::new(), rng }
    }

    /// Postpones the next attempt of a transaction by its backoff.
    pub(super) fn postpone(
        &mut self,
        number: usize,
        session: &mut Session,
        flight: Box<InFlight>,
        now: Nanos,
    ) {
        let doubled = BACKOFF_MIN.0.saturating_mul(1 << flight.retries.min(20)) / 2;
        let backoff = doubled.min(BACKOFF_MAX.0);
        // Jitter: transactions that conflicted must not be retried at the same time.
        let due = now.after(Nanos(self.rng.random_range(backoff / 2..=backoff + backoff / 2)));
        session.postponed += 1;
        self.waiting.push(Postponed { due, number, flight: Some(flight) });
    }

    /// Postpones it again: its session has no connection yet.
    pub(super) fn postpone_again(&mut self, number: usize, flight: Box<InFlight>, now: Nanos) {
        let due = now.after(BACKOFF_MAX);
        self.waiting.push(Postponed { due, number, flight: Some(flight) });
    }

    /// Wakes a session at this time, whose transaction sleeps.
    pub(super) fn wake_at(&mut self, due: Nanos, number: usize) {
        self.waiting.push(Postponed { due, number, flight: None });
    }

    /// Returns the number of a session and its transaction, `None` for one that sleeps, whose wait is over.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(usize, Option<Box<InFlight>>)> {
        if self.due()? > now {
            return None;
        }
        self.waiting.pop().map(|Postponed { number, flight, .. }| (number, flight))
    }

    /// Returns the end of the next wait.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|postponed| postponed.due)
    }

    /// Forgets that the transaction of a session sleeps.
    pub(super) fn forget_sleep(&mut self, number: usize) {
        self.waiting.retain(|each| each.number != number || each.flight.is_some());
    }

    /// Takes the transactions of a session.
    #[expect(clippy::vec_box, reason = "memory for reuse")]
    pub(super) fn take_of(&mut self, number: usize) -> Vec<Box<InFlight>> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (own, others): (Vec<_>, Vec<_>) = all.partition(|each| each.number == number);
        self.waiting = others.into();
        own.into_iter().filter_map(|postponed| postponed.flight).collect()
    }
}

/// A transaction that waits, ordered by due time.
#[derive(Debug)]
struct Postponed {
    due: Nanos,
    number: usize,
    /// The transaction to retry; `None` for the one that the session has paused.
    flight: Option<Box<InFlight>>,
}

impl PartialEq for Postponed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Postponed {}

impl PartialOrd for Postponed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Postponed {
    // Reversed: `BinaryHeap` returns the greatest element first, which must be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}
