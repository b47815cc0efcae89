//! Latency over time, as counts.

use serde::{Deserialize, Serialize};

/// Counts of latencies by time slot and latency class: of the response times with a rate, otherwise of the service
/// times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatmapRecord {
    /// Length of a time slot, in seconds.
    pub slot_s: f64,
    /// Classes per decade c: class k starts at 10^(k/c) microseconds.
    pub classes_per_decade: u32,
    /// The slots, from the start of the measurement on.
    pub slots: Vec<HeatmapSlot>,
}

/// Counts of one time slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapSlot {
    /// Number of the first class that is not empty.
    pub first_class: i32,
    /// Number of latencies in this class and the following ones.
    pub counts: Vec<u64>,
}

/// With fewer slots, it is not known how numbers vary over time.
pub(crate) const SLOTS_MIN: usize = 10;
/// A factor within this many standard errors of 1 is that of independent latencies.
const CHANCE_ERRORS: f64 = 3.0;

impl HeatmapRecord {
    /// Returns by which factor the number of latencies beyond a percentile, which is `us`, varies more from slot to slot than that
    /// of independent ones, at least 1: their effective number is smaller by as much. A stall of 64 sessions is one event, and not
    /// 64. The factor is the design effect of a sample of clusters (Kish, "Survey Sampling", 1965, section 5.4); independent ones
    /// have a Poisson distribution, whose variance is its mean.
    #[must_use]
    pub fn dispersion(&self, percent: f64, us: f64) -> f64 {
        let per_decade = f64::from(self.classes_per_decade);
        #[expect(clippy::cast_possible_truncation, reason = "a class is a small number")]
        let class = (us.max(f64::MIN_POSITIVE).log10() * per_decade).floor() as i32;
        let count = |slot: &HeatmapSlot, is_counted: &dyn Fn(i32) -> bool| {
            let counts = (slot.first_class..).zip(&slot.counts);
            counts
                .filter(|(each, _)| is_counted(*each))
                .map(|(_, count)| *count as f64)
                .sum::<f64>()
        };
        // Of each slot: all latencies, those above the class of the value, and those in it.
        let slots: Vec<[f64; 3]> = self
            .slots
            .iter()
            .map(|slot| {
                [
                    count(slot, &|_| true),
                    count(slot, &|of| of > class),
                    count(slot, &|of| of == class),
                ]
            })
            .collect();
        let sum = |at: usize| slots.iter().filter_map(|slot| slot.get(at)).sum::<f64>();
        let (all, above, within) = (sum(0), sum(1), sum(2));
        // Of the class of the value, this share is beyond it.
        let beyond = all * (1.0 - percent / 100.0);
        let share = ((beyond - above) / within.max(1.0)).clamp(0.0, 1.0);
        let (number, found) = (slots.len() as f64, above + share * within);
        if slots.len() < SLOTS_MIN || found <= 0.0 {
            return 1.0;
        }
        let factor = |expected: &dyn Fn(f64) -> f64| {
            let deviation = |[all, above, within]: &[f64; 3]| {
                let expected = expected(*all);
                let squared = (above + share * within - expected).powi(2);
                // Which ones of the class are beyond the value is left to chance.
                let chance = share * (1.0 - share) * within;
                if expected > 0.0 { (squared + chance) / expected } else { 0.0 }
            };
            slots.iter().map(deviation).sum::<f64>() / (number - 1.0)
        };
        // The same number in each second, or the same share of the transactions, whose rate may change.
        let factor = factor(&|_| found / number).min(factor(&|of| of * found / all));
        // That of independent ones has a chi-squared distribution.
        let by_chance = 1.0 + CHANCE_ERRORS * (2.0 / (number - 1.0)).sqrt();
        if factor > by_chance { factor } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute with 10,000 latencies of 100 µs in each second, of which `slow` take 1 s.
    fn heatmap(slow: impl Fn(u64) -> u64) -> HeatmapRecord {
        let of_second = |second: u64| {
            let mut counts = vec![0; 41];
            (counts[0], counts[40]) = (10_000 - slow(second), slow(second));
            HeatmapSlot { first_class: 20, counts }
        };
        let slots = (0..60).map(of_second).collect();
        HeatmapRecord { slot_s: 1.0, classes_per_decade: 10, slots }
    }

    #[test]
    fn a_stall_of_many_sessions_is_one_event() {
        let stalls = heatmap(|second| if second % 15 == 7 { 64 } else { 0 });
        let effective = 256.0 / stalls.dispersion(99.95, 1e5);
        assert!((3.5..4.5).contains(&effective), "{effective}");
        // As many of them, two or six in each second.
        let spread = heatmap(|second| if second % 2 == 0 { 2 } else { 6 });
        assert_eq!(spread.dispersion(99.95, 1e5), 1.0);
    }

    #[test]
    fn a_rate_that_changes_is_no_event() {
        // Nothing in half of the time.
        let mut half = heatmap(|_| 4);
        half.slots.iter_mut().take(30).for_each(|slot| slot.counts.clear());
        assert_eq!(half.dispersion(99.95, 1e5), 1.0);
        assert_eq!(half.dispersion(50.0, 105.0), 1.0);
    }

    #[test]
    fn latencies_of_one_class_are_independent_of_the_rate() {
        let constant = heatmap(|_| 0);
        assert_eq!(constant.dispersion(99.9, 105.0), 1.0);
        assert_eq!(HeatmapRecord { slots: Vec::new(), ..constant }.dispersion(99.9, 105.0), 1.0);
    }
}
