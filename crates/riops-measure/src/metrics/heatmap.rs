//! Latency over time, coarse enough to be stored: the number of latencies in each time slot and latency class.
//!
//! Its size is bounded: [`SLOTS_MAX`] slots of a few dozen classes. When they are full, each two slots become one of
//! twice the length. Written when an interval is complete, never in the loop of a worker.

use riops_model::record::{HeatmapRecord, HeatmapSlot, Histogram};

/// Maximum number of time slots: about as many as a chart shows side by side.
const SLOTS_MAX: usize = 240;

/// Counts of latencies by time slot and class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heatmap {
    /// The slots, from the start of the measurement on.
    pub record: HeatmapRecord,
    /// Intervals in a slot: a power of two.
    intervals: usize,
}

impl Heatmap {
    /// Creates an empty heatmap over intervals of `interval_s` seconds.
    pub(super) fn new(interval_s: f64) -> Self {
        let slots = Vec::new();
        let classes_per_decade = HeatmapRecord::CLASSES_PER_DECADE;
        Self {
            record: HeatmapRecord { slot_s: interval_s, classes_per_decade, slots },
            intervals: 1,
        }
    }

    /// Adds the latencies of an interval, counted from 0.
    pub(super) fn add(&mut self, interval: usize, latencies: &Histogram) {
        while interval / self.intervals >= SLOTS_MAX {
            self.halve();
        }
        let slot = interval / self.intervals;
        if self.record.slots.len() <= slot {
            self.record.slots.resize_with(slot + 1, HeatmapSlot::default);
        }
        if let Some(slot) = self.record.slots.get_mut(slot) {
            for (latency, count) in latencies.recorded() {
                slot.add(HeatmapRecord::class_of(latency.as_micros()), count);
            }
        }
    }

    /// Combines each two slots.
    fn halve(&mut self) {
        let pairs = self.record.slots.chunks(2).map(|pair| {
            let mut sum = HeatmapSlot::default();
            for slot in pair {
                sum.merge(slot);
            }
            sum
        });
        self.record.slots = pairs.collect();
        self.record.slot_s *= 2.0;
        self.intervals *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::{SamplePoint, SampleSet};
    use riops_model::units::Nanos;

    fn latencies(us: &[u64]) -> Histogram {
        let mut histogram = Histogram::for_interval().unwrap();
        for us in us {
            histogram.record(Nanos(us * 1_000));
        }
        histogram
    }

    fn total(heatmap: &Heatmap) -> u64 {
        heatmap.record.slots.iter().flat_map(|slot| &slot.counts).sum()
    }

    #[test]
    fn counts_each_latency_in_its_class() {
        let mut heatmap = Heatmap::new(1.0);
        heatmap.add(0, &latencies(&[150, 150, 1_100]));
        heatmap.add(2, &latencies(&[110, 11]));
        let slot = |first_class, counts: &[u64]| HeatmapSlot { first_class, counts: counts.into() };
        let first = slot(21, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let third = slot(10, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(heatmap.record.slots, [first, HeatmapSlot::default(), third]);
    }

    #[test]
    fn a_long_run_gets_longer_slots_and_loses_no_count() {
        let mut heatmap = Heatmap::new(0.5);
        for interval in 0..2_000 {
            heatmap.add(interval, &latencies(&[interval as u64 + 1, 50]));
        }
        assert_eq!((heatmap.record.slot_s, heatmap.record.slots.len()), (8.0, 125));
        assert_eq!(total(&heatmap), 4_000);
        let of_slots = heatmap.record.slots.iter().map(|slot| slot.counts.iter().sum::<u64>());
        assert!(of_slots.into_iter().all(|count| count == 32));
    }

    #[test]
    fn counts_each_regular_sample_for_the_transactions_it_represents() {
        let point = |t_s, latency_us, extreme| SamplePoint { t_s, latency_us, session: 0, extreme };
        let heatmap = HeatmapRecord::of_samples(&SampleSet {
            transactions: 40,
            every: 10,
            slot_s: 0.1,
            longest: 1,
            seconds: 1.0,
            points: vec![point(0.1, 150.0, false), point(1.0, 15.0, false), point(0.5, 9e3, true)],
        });
        let filled = heatmap.slots.iter().enumerate().filter(|(_, slot)| !slot.counts.is_empty());
        let filled: Vec<_> =
            filled.map(|(at, slot)| (at, slot.first_class, slot.counts.as_slice())).collect();
        assert_eq!(filled, [(12, 21, [10].as_slice()), (119, 11, [10].as_slice())]);
        assert!((heatmap.slot_s - 1.0 / 120.0).abs() < 1e-9);
    }
}
