//! Single transactions, for a picture of a run: a bounded selection, however long the run is.
//!
//! Two selections beside each other: every n-th transaction, where n doubles whenever there are too
//! many, so that the density of the picture is that of the run; and the longest and the shortest of
//! each slot of time, where slots double in length whenever there are too many, so that no outlier is
//! lost between them.

use crate::units::Nanos;

/// Transactions that all workers together keep of every n-th.
const KEPT_MAX: usize = 65_536;
/// Slots of time that have extremes: more than a picture has columns.
const SLOTS_MAX: usize = 2_048;
/// The length of a slot at first.
const SLOT_FIRST: Nanos = Nanos(10_000_000);
/// The longest transactions that a slot keeps: when a server stands still, each session has one.
const LONGEST: usize = 16;

/// One transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sample {
    /// Its number at its worker.
    number: u64,
    /// Its end, since the measurement started.
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

/// The extremes of a slot of time; without transactions, all of them have latency 0.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// From the longest.
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
        // The shortest may be among the longest, and shall not take two of their places.
        other.longest.into_iter().for_each(|sample| self.add_longest(sample));
        other.shortest.into_iter().for_each(|sample| self.add_shortest(sample));
    }

    /// The longest and the shortest, each once.
    fn samples(&self) -> impl Iterator<Item = Sample> {
        let longest = self.longest;
        let shortest = self.shortest.filter(move |shortest| !longest.contains(shortest));
        longest.into_iter().filter(|sample| sample.latency > Nanos(0)).chain(shortest)
    }
}

/// What one worker keeps. All memory is taken when it is made.
#[derive(Debug)]
pub struct Samples {
    start: Nanos,
    seen: u64,
    every: u64,
    kept: Vec<Sample>,
    kept_max: usize,
    slot: Nanos,
    slots: Vec<Slot>,
}

impl Samples {
    /// For one of so many workers, and a measurement that starts now.
    #[must_use]
    pub fn new(workers: usize, start: Nanos) -> Self {
        let kept_max = (KEPT_MAX / workers.max(1)).max(2);
        Self {
            start,
            seen: 0,
            every: 1,
            kept: Vec::with_capacity(kept_max),
            kept_max,
            slot: SLOT_FIRST,
            slots: vec![Slot::default(); SLOTS_MAX],
        }
    }

    /// Takes a transaction of a session that ended at `end`. Never allocates.
    pub fn record(&mut self, session: u32, end: Nanos, latency: Nanos) {
        let sample = Sample { number: self.seen, at: end.since(self.start), latency, session };
        self.seen += 1;
        if sample.number.is_multiple_of(self.every) {
            if self.kept.len() == self.kept_max {
                self.every *= 2;
                let every = self.every;
                self.kept.retain(|sample| sample.number.is_multiple_of(every));
            }
            if sample.number.is_multiple_of(self.every) {
                self.kept.push(sample);
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

    /// Makes one slot of two.
    fn widen(&mut self) {
        self.slot = Nanos(self.slot.0 * 2);
        for slot in 0..SLOTS_MAX {
            let pair = self.slots.get(2 * slot..).unwrap_or_default().first_chunk::<2>();
            let mut merged = Slot::default();
            pair.into_iter().flatten().for_each(|each| merged.merge(each));
            if let Some(place) = self.slots.get_mut(slot) {
                *place = merged;
            }
        }
    }

    /// What all workers have kept, of a measurement of this length.
    #[must_use]
    pub fn merge(workers: Vec<Self>, seconds: f64) -> SampleSet {
        let every = workers.iter().map(|worker| worker.every).max().unwrap_or(1);
        let slot = workers.iter().map(|worker| worker.slot).max().unwrap_or(SLOT_FIRST);
        let chosen = |sample: &Sample| sample.number.is_multiple_of(every);
        let mut slots = vec![Slot::default(); SLOTS_MAX];
        let mut points = Vec::new();
        let transactions = workers.iter().map(|worker| worker.seen).sum();
        for mut worker in workers {
            while worker.slot < slot {
                worker.widen();
            }
            points.extend(
                worker
                    .kept
                    .iter()
                    .filter(|sample| chosen(sample))
                    .map(|sample| sample.point(false)),
            );
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

/// One transaction of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePoint {
    /// Its end, in seconds since the measurement started.
    pub t_s: f64,
    /// How long it took.
    pub latency_us: f64,
    /// Its session, from 0.
    pub session: u32,
    /// Whether it is here only since it is one of the longest or the shortest of its time.
    pub extreme: bool,
}

/// The transactions that were kept of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSet {
    /// Of how many.
    pub transactions: u64,
    /// Every n-th is here.
    pub every: u64,
    /// And of each slot of this length the shortest and
    pub slot_s: f64,
    /// so many of the longest.
    pub longest: usize,
    /// Length of the measurement.
    pub seconds: f64,
    /// The transactions.
    pub points: Vec<SamplePoint>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A worker's samples of so many transactions of 1 ms, every `step`; those of `outliers` take
    /// half a second.
    fn samples(workers: usize, count: u64, step: Nanos, outliers: &[u64]) -> Samples {
        let mut samples = Samples::new(workers, Nanos(0));
        for number in 0..count {
            let outlier = outliers.contains(&number);
            let latency = if outlier { 500_000_000 } else { 1_000_000 + number % 7 };
            samples.record(3, Nanos(step.0 * number), Nanos(latency));
        }
        samples
    }

    #[test]
    fn a_short_run_is_kept_whole() {
        let set = Samples::merge(vec![samples(1, 1_000, Nanos(1_000_000), &[])], 1.0);
        assert_eq!((set.every, set.transactions, set.points.len()), (1, 1_000, 1_000));
        assert!(set.points.iter().all(|point| point.session == 3 && !point.extreme));
    }

    #[test]
    fn memory_is_bounded_and_no_outlier_is_lost() {
        // Three days, a million transactions.
        let outliers = [1, 77_777, 500_001, 999_999];
        let step = Nanos(3 * 86_400_000_000_000 / 1_000_000);
        let whole = samples(2, 1_000_000, step, &outliers);
        assert!(whole.kept.len() <= KEPT_MAX / 2 && whole.slots.len() == SLOTS_MAX);
        assert_eq!(whole.kept.capacity(), KEPT_MAX / 2);
        let set = Samples::merge(vec![whole, samples(2, 10, step, &[])], 259_200.0);
        assert!(set.every > 1);
        let long = set.points.iter().filter(|point| point.latency_us > 400_000.0).count();
        assert_eq!(long, outliers.len());
        let chosen = set.points.iter().filter(|point| !point.extreme).count();
        assert_eq!(chosen as u64, 1_000_000_u64.div_ceil(set.every) + 10_u64.div_ceil(set.every));
    }

    proptest! {
        #[test]
        fn each_slot_keeps_its_longest_and_its_shortest(
            latencies in prop::collection::vec(1u64..1_000_000, 1..300),
        ) {
            let mut slot = Slot::default();
            for (number, latency) in (0..).zip(&latencies) {
                slot.add(Sample { number, latency: Nanos(*latency), ..Sample::default() });
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
        fn however_often_slots_widen_the_longest_and_the_shortest_of_each_are_drawn(
            transactions in prop::collection::vec((0u64..200_000, 1u64..1_000_000), 1..200),
            workers in 1usize..4,
        ) {
            let mut all: Vec<_> = (0..workers).map(|_| Samples::new(workers, Nanos(0))).collect();
            for (number, (at_ms, latency)) in transactions.iter().enumerate() {
                // Of no worker every transaction is chosen.
                let worker = &mut all[number % workers];
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
                let mut drawn: Vec<_> = set.points
                    .iter()
                    .filter(|point| slot(point.t_s) == here)
                    .map(|point| point.latency_us)
                    .collect();
                drawn.sort_by(|a, b| b.total_cmp(a));
                prop_assert!(drawn.iter().zip(&sent).take(LONGEST).all(|(a, b)| a == b), "{drawn:?} {sent:?}");
                prop_assert_eq!(drawn.last(), sent.last());
                prop_assert_eq!(drawn.len(), sent.len().min(LONGEST + 1));
            }
        }
    }
}
