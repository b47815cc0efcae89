//! Transactions that wait for their retry or sleep, ordered by due time.

use std::cmp::Ordering;

use super::super::in_flight::InFlight;
use crate::units::Nanos;

/// A transaction that waits.
#[derive(Debug)]
pub(super) struct Postponed {
    pub(super) due: Nanos,
    pub(super) number: usize,
    /// The transaction to retry; `None` for the one that the session has paused.
    pub(super) flight: Option<Box<InFlight>>,
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
