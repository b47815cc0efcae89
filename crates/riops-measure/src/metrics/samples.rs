//! A bounded sample of single transactions, for plots of a run of any length.
//!
//! Two selections are combined. One contains every n-th transaction; n doubles whenever the sample is full, so the
//! density of the plot is proportional to the rate of the run. The other contains the longest and the shortest
//! transactions of each time slot; slots double in length whenever there are too many, so no outlier is lost.

use riops_model::record::{SamplePoint, SampleSet};
use riops_model::units::Nanos;

/// Maximum number of transactions in the n-th selection, over all workers.
const SAMPLES_MAX: usize = 65_536;
/// Number of time slots with extremes: more than a plot has columns.
const SLOTS_MAX: usize = 2_048;
/// Initial length of a slot.
const SLOT_FIRST: Nanos = Nanos(10_000_000);
/// Number of the longest transactions stored per slot: when a server stalls, each session has one.
const LONGEST: usize = 16;

/// One transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sample {
    /// Position at its worker.
    position: u64,
    /// End of the transaction, since the start of the measurement.
    at: Nanos,
    latency: Nanos,
    session: u32,
}

impl Sample {
    fn point(self, extreme: bool) -> SamplePoint {
        SamplePoint {
            t_s: self.at.as_seconds(),
            latency_us: self.latency.as_micros(),
            session: self.session,
            extreme,
        }
    }
}

/// Extremes of a time slot; without transactions, all latencies are 0.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// In descending order.
    longest: [Sample; LONGEST],
    shortest: Option<Sample>,
}

impl Slot {
    fn add(&mut self, sample: Sample) {
        self.add_shortest(sample);
        self.add_longest(sample);
    }

    fn add_shortest(&mut self, sample: Sample) {
        if self.shortest.is_none_or(|shortest| sample.latency < shortest.latency) {
            self.shortest = Some(sample);
        }
    }

    fn add_longest(&mut self, mut sample: Sample) {
        if self.longest.last().is_some_and(|last| sample.latency <= last.latency) {
            return;
        }
        for place in &mut self.longest {
            if sample.latency > place.latency {
                std::mem::swap(place, &mut sample);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        // Merge the shortest separately: it may also be among the longest, and must not occupy two of
        // their places.
        other.longest.into_iter().for_each(|sample| self.add_longest(sample));
        other.shortest.into_iter().for_each(|sample| self.add_shortest(sample));
    }

    /// Returns the longest and the shortest, without duplicates.
    fn samples(&self) -> impl Iterator<Item = Sample> {
        let longest = self.longest;
        let shortest = self.shortest.filter(move |shortest| !longest.contains(shortest));
        longest.into_iter().filter(|sample| sample.latency > Nanos(0)).chain(shortest)
    }
}

/// Samples of one worker. All memory is allocated at creation.
#[derive(Debug)]
pub struct Samples {
    start: Nanos,
    seen: u64,
    every: u64,
    regular: Vec<Sample>,
    capacity: usize,
    slot: Nanos,
    slots: Vec<Slot>,
}

impl Samples {
    /// Creates the samples of one of `workers` workers, for a measurement that starts at `start`.
    pub fn new(workers: usize, start: Nanos) -> Self {
        let capacity = (SAMPLES_MAX / workers.max(1)).max(2);
        Self {
            start,
            seen: 0,
            every: 1,
            regular: Vec::with_capacity(capacity),
            capacity,
            slot: SLOT_FIRST,
            slots: vec![Slot::default(); SLOTS_MAX],
        }
    }

    /// Records a transaction of a session that ended at `end`. Never allocates.
    pub fn record(&mut self, session: u32, end: Nanos, latency: Nanos) {
        let sample = Sample { position: self.seen, at: end.since(self.start), latency, session };
        self.seen += 1;
        if sample.position.is_multiple_of(self.every) {
            if self.regular.len() == self.capacity {
                self.every *= 2;
                let every = self.every;
                self.regular.retain(|sample| sample.position.is_multiple_of(every));
            }
            if sample.position.is_multiple_of(self.every) {
                self.regular.push(sample);
            }
        }
        let slot = loop {
            let slot = usize::try_from(sample.at.0 / self.slot.0).unwrap_or(usize::MAX);
            if slot < SLOTS_MAX {
                break slot;
            }
            self.widen();
        };
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.add(sample);
        }
    }

    /// Merges pairs of slots, which doubles the slot length.
    fn widen(&mut self) {
        self.slot = Nanos(self.slot.0 * 2);
        for slot in 0..SLOTS_MAX {
            let pair = self.slots.get(2 * slot..).unwrap_or_default().first_chunk::<2>();
            let mut merged = Slot::default();
            pair.into_iter().flatten().for_each(|half| merged.merge(half));
            if let Some(place) = self.slots.get_mut(slot) {
                *place = merged;
            }
        }
    }

    /// Merges the samples of all workers, for a measurement of this length in seconds.
    pub fn merge(workers: Vec<Self>, seconds: f64) -> SampleSet {
        let every = workers.iter().map(|worker| worker.every).max().unwrap_or(1);
        let slot = workers.iter().map(|worker| worker.slot).max().unwrap_or(SLOT_FIRST);
        let chosen = |sample: &Sample| sample.position.is_multiple_of(every);
        let mut slots = vec![Slot::default(); SLOTS_MAX];
        let mut points = Vec::new();
        let transactions = workers.iter().map(|worker| worker.seen).sum();
        for mut worker in workers {
            while worker.slot < slot {
                worker.widen();
            }
            let regular = worker.regular.iter().filter(|sample| chosen(sample));
            points.extend(regular.map(|sample| sample.point(false)));
            for (all, own) in slots.iter_mut().zip(&worker.slots) {
                all.merge(own);
            }
        }
        let extremes = slots.iter().flat_map(Slot::samples);
        points.extend(extremes.filter(|sample| !chosen(sample)).map(|sample| sample.point(true)));
        SampleSet {
            transactions,
            every,
            slot_s: slot.as_seconds(),
            longest: LONGEST,
            seconds,
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the samples of one worker for `count` transactions of 1 ms, one every `step`; those in
    /// `outliers` take 500 ms.
    fn samples(workers: usize, count: u64, step: Nanos, outliers: &[u64]) -> Samples {
        let mut samples = Samples::new(workers, Nanos(0));
        for position in 0..count {
            let outlier = outliers.contains(&position);
            let latency = if outlier { 500_000_000 } else { 1_000_000 + position % 7 };
            samples.record(3, Nanos(step.0 * position), Nanos(latency));
        }
        samples
    }

    #[test]
    fn stores_all_transactions_of_a_short_run() {
        let set = Samples::merge(vec![samples(1, 1_000, Nanos(1_000_000), &[])], 1.0);
        assert_eq!((set.every, set.transactions, set.points.len()), (1, 1_000, 1_000));
        assert!(set.points.iter().all(|point| point.session == 3 && !point.extreme));
    }

    #[test]
    fn limits_memory_without_losing_outliers() {
        // Three days, one million transactions.
        let outliers = [1, 77_777, 500_001, 999_999];
        let step = Nanos(3 * 86_400_000_000_000 / 1_000_000);
        let limited = samples(2, 1_000_000, step, &outliers);
        assert!(limited.regular.len() <= SAMPLES_MAX / 2 && limited.slots.len() == SLOTS_MAX);
        assert_eq!(limited.regular.capacity(), SAMPLES_MAX / 2);
        let set = Samples::merge(vec![limited, samples(2, 10, step, &[])], 259_200.0);
        assert!(set.every > 1);
        let long = set.points.iter().filter(|point| point.latency_us > 400_000.0).count();
        assert_eq!(long, outliers.len());
        let chosen = set.points.iter().filter(|point| !point.extreme).count();
        assert_eq!(chosen as u64, 1_000_000_u64.div_ceil(set.every) + 10_u64.div_ceil(set.every));
    }

    proptest! {
        #[test]
        fn each_slot_stores_its_longest_and_its_shortest(
            latencies in prop::collection::vec(1u64..1_000_000, 1..300),
        ) {
            let mut slot = Slot::default();
            for (position, latency) in (0..).zip(&latencies) {
                slot.add(Sample { position, latency: Nanos(*latency), ..Sample::default() });
            }
            let mut sorted = latencies;
            sorted.sort_unstable();
            prop_assert_eq!(slot.shortest.unwrap().latency.0, sorted[0]);
            sorted.reverse();
            let longest: Vec<_> = slot.longest.iter().map(|sample| sample.latency.0).take(sorted.len()).collect();
            prop_assert_eq!(&longest[..], &sorted[..longest.len()]);
        }
    }

    proptest! {
        #[test]
        fn widening_slots_preserves_the_longest_and_the_shortest(
            transactions in prop::collection::vec((0u64..200_000, 1u64..1_000_000), 1..200),
            workers in 1usize..4,
        ) {
            let mut all: Vec<_> = (0..workers).map(|_| Samples::new(workers, Nanos(0))).collect();
            for (position, (at_ms, latency)) in transactions.iter().enumerate() {
                // Disable the selection of every n-th transaction.
                let worker = &mut all[position % workers];
                worker.every = 1 << 40;
                worker.seen += 1;
                worker.record(0, Nanos(at_ms * 1_000_000), Nanos(*latency));
            }
            let set = Samples::merge(all, 200.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, positive")]
            let slot = |seconds: f64| (seconds * 1e3).round() as u64 / (set.slot_s * 1e3).round() as u64;
            for (at_ms, _) in &transactions {
                let here = slot(*at_ms as f64 / 1e3);
                let mut sent: Vec<_> = transactions
                    .iter()
                    .filter(|(at_ms, _)| slot(*at_ms as f64 / 1e3) == here)
                    .map(|(_, latency)| *latency as f64 / 1e3)
                    .collect();
                sent.sort_by(|a, b| b.total_cmp(a));
                let mut plotted: Vec<_> = set.points
                    .iter()
                    .filter(|point| slot(point.t_s) == here)
                    .map(|point| point.latency_us)
                    .collect();
                plotted.sort_by(|a, b| b.total_cmp(a));
                prop_assert!(plotted.iter().zip(&sent).take(LONGEST).all(|(a, b)| a == b), "{plotted:?} {sent:?}");
                prop_assert_eq!(plotted.last(), sent.last());
                prop_assert_eq!(plotted.len(), sent.len().min(LONGEST + 1));
            }
        }
    }
}
