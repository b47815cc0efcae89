//! Transactions that wait to be sent again, the one that is due first at the top of the heap.

use std::cmp::Ordering;

use super::super::session::Flight;
use crate::units::Nanos;

/// A transaction that waits to be sent again.
#[derive(Debug)]
pub(super) struct Postponed {
    pub(super) due: Nanos,
    pub(super) number: usize,
    pub(super) flight: Flight,
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
    // The heap gives its greatest first: the one that is due first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}
