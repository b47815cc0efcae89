//! Successful transactions over time, in slots that are shorter than the intervals of a short stage, so that a stage of
//! any length can be judged. Their number is bounded: when all are used, each two become one of twice the length.

use riops_model::record::Point;
use riops_model::units::{Nanos, Span};

/// Maximum number of slots; even, so that they can be merged in pairs.
const SLOTS_MAX: usize = 240;
/// Length of the slots at first.
const LENGTH: Nanos = Nanos(20_000_000);

/// Successful transactions in a part of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slot {
    /// Length, in seconds.
    pub seconds: f64,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Sum of their response times, in microseconds.
    pub latency_us: f64,
}

impl Slot {
    pub(super) fn merge(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.transactions += other.transactions;
        self.latency_us += other.latency_us;
    }

    /// Returns the intervals of a stage as slots, for a stage without slots.
    pub fn of_series(series: &[Point]) -> Vec<Self> {
        let slot = |point: &Point| {
            let mean_us = point.mean_stdev_us.map_or(0.0, |(mean, _)| mean);
            let latency_us = mean_us * point.transactions as f64;
            Self { seconds: point.seconds, transactions: point.transactions, latency_us }
        };
        series.iter().map(slot).collect()
    }
}

/// The slots of one worker, or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    start: Nanos,
    length: Nanos,
    /// End of the last slot.
    end: Nanos,
    /// Number of transactions and sum of their response times, in nanoseconds.
    counts: Vec<(u64, u64)>,
}

impl Slots {
    /// Starts recording at `start`.
    pub fn begin(&mut self, start: Nanos) {
        *self = Self {
            start,
            length: LENGTH,
            end: start.after(LENGTH),
            counts: Vec::with_capacity(SLOTS_MAX),
        };
        self.counts.push((0, 0));
    }

    /// Records a success at `now`. Never allocates.
    #[inline]
    pub fn success(&mut self, now: Nanos, response: Nanos) {
        if now >= self.end {
            self.advance(now);
        }
        if let Some((transactions, latency)) = self.counts.last_mut() {
            *transactions += 1;
            *latency += response.0;
        }
    }

    fn advance(&mut self, now: Nanos) {
        while now >= self.end && !self.counts.is_empty() {
            if self.counts.len() == SLOTS_MAX {
                self.merge_pairs();
            }
            self.counts.push((0, 0));
            self.end = Nanos(self.start.0 + self.length.0 * self.counts.len() as u64);
        }
    }

    fn merge_pairs(&mut self) {
        let sum = |pair: &[(u64, u64)]| {
            pair.iter().fold((0, 0), |sum, slot| (sum.0 + slot.0, sum.1 + slot.1))
        };
        for position in 0..self.counts.len().div_ceil(2) {
            let pair = self.counts.chunks(2).nth(position).map_or((0, 0), sum);
            // Each pair is read before its place is used.
            if let Some(slot) = self.counts.get_mut(position) {
                *slot = pair;
            }
        }
        self.counts.truncate(self.counts.len().div_ceil(2));
        self.length = Nanos(self.length.0 * 2);
    }

    /// Adds the slots of another worker with the same start.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.length < other.length && !self.counts.is_empty() {
            self.merge_pairs();
        }
        while other.length < self.length && !other.counts.is_empty() {
            other.merge_pairs();
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), (0, 0));
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }

    /// Returns the slots of a measurement of this length, also those without a success.
    pub fn finish(mut self, seconds: f64) -> Vec<Slot> {
        let end = self.start.after(Span::of_seconds(seconds).0.into());
        // A transaction at the very end begins no other slot.
        self.advance(Nanos(end.0.saturating_sub(1)));
        let length = self.length.as_seconds();
        let slot = |(position, &(transactions, latency)): (usize, &(u64, u64))| Slot {
            seconds: (seconds - position as f64 * length).clamp(0.0, length),
            transactions,
            latency_us: latency as f64 / 1e3,
        };
        self.counts.iter().enumerate().map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(slots: &[Slot]) -> Vec<u64> {
        slots.iter().map(|slot| slot.transactions).collect()
    }

    #[test]
    fn slots_become_longer_and_lose_no_transaction() {
        let mut slots = Slots::default();
        slots.begin(Nanos(1_000));
        for position in 0..10_000_u64 {
            slots.success(Nanos(1_000 + position * 1_000_000), Nanos(2_000));
        }
        let finished = slots.finish(10.0);
        // 10 s in slots of 80 ms.
        assert_eq!(finished.len(), 125);
        assert!(finished.iter().all(|slot| slot.transactions == 80 && slot.latency_us == 160.0));
        let seconds: f64 = finished.iter().map(|slot| slot.seconds).sum();
        assert!((seconds - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_pause_has_slots_without_transactions() {
        let mut slots = Slots::default();
        slots.begin(Nanos(0));
        slots.success(Nanos(5), Nanos(1));
        slots.success(Nanos(95_000_000), Nanos(1));
        assert_eq!(counts(&slots.clone().finish(0.1)), [1, 0, 0, 0, 1]);
        assert_eq!(counts(&slots.finish(0.13)), [1, 0, 0, 0, 1, 0, 0]);
        assert!(Slots::default().finish(5.0).is_empty());
    }

    #[test]
    fn workers_with_slots_of_different_lengths_add_up() {
        let (mut early, mut late) = (Slots::default(), Slots::default());
        early.begin(Nanos(0));
        late.begin(Nanos(0));
        for second in 0..10_u64 {
            late.success(Nanos(second * 1_000_000_000), Nanos(1));
        }
        early.success(Nanos(3), Nanos(1));
        let mut both = early.clone();
        both.merge(&late);
        late.merge(&early);
        let both = both.finish(10.0);
        assert_eq!(both, late.finish(10.0));
        assert_eq!((both[0].transactions, counts(&both).iter().sum::<u64>()), (2, 11));
    }
}
