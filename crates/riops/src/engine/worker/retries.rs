//! When transactions that wait for their retry or sleep continue.

use std::cmp::Reverse;
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
    /// The end of each wait, with the numbers of the session and of its transaction, which may have been lost since then.
    waiting: BinaryHeap<Reverse<(Nanos, usize, u64)>>,
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
        self.wake_at(due, number, flight.number);
        session.postponed.push_back(flight);
    }

    /// Postpones it again: its session has no connection yet.
    pub(super) fn postpone_again(&mut self, number: usize, transaction: u64, now: Nanos) {
        self.wake_at(now.after(BACKOFF_MAX), number, transaction);
    }

    /// Continues a transaction of a session at this time.
    pub(super) fn wake_at(&mut self, due: Nanos, number: usize, transaction: u64) {
        self.waiting.push(Reverse((due, number, transaction)));
    }

    /// Returns the numbers of a session and of its transaction whose wait is over.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(usize, u64)> {
        self.due().filter(|due| *due <= now)?;
        self.waiting.pop().map(|Reverse((_, number, transaction))| (number, transaction))
    }

    /// Returns the end of the next wait.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse((due, ..))| *due)
    }
}
