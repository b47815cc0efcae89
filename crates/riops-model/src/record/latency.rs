//! Latency summaries, measured or as another tool reported them, and latency over time, as counts.

use super::SampleSet;
use crate::units::format::truncated;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::plan::LatencyKind;

use crate::stats::is_percentile_shown;

/// Count, mean, standard deviation and percentiles of latencies, in microseconds.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of measured latencies.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile; absent with fewer than 100,000 latencies, and in records of earlier releases.
    pub p9999: Option<f64>,
    /// Maximum.
    pub max: f64,
    /// Lowest percentile that is a lower bound, because transactions that did not succeed may have taken longer. All
    /// higher percentiles are lower bounds, too, and so is the mean if p99 is one. Absent if all values are exact;
    /// 100 is the maximum.
    pub lower_bound_from: Option<f64>,
    /// Highest percentile with ten effective values beyond it, if a few stalls caused the slow transactions. Absent if
    /// only the number of latencies limits the percentiles.
    pub shown_to: Option<f64>,
    /// The figures of the successful transactions alone, as pgbench and sysbench report them. Absent if the other
    /// transactions change no figure.
    pub successful: Option<Box<LatencySummary>>,
}

/// Mean and standard deviation, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) stdev: f64,
}

/// The 95% interval of a percentile within a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PercentileInterval {
    /// The percentile, in percent.
    pub percent: f64,
    /// Lower limit, in microseconds.
    pub low_us: f64,
    /// Upper limit, in microseconds.
    pub high_us: f64,
}

impl LatencySummary {
    /// The percentiles, in percent; 100 is the maximum.
    pub const PERCENTS: [f64; 7] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

    /// Returns the summary of latencies with these percentiles, in percent; 100 is the maximum. `None` if one that is
    /// always present is not known.
    pub(crate) fn new(
        count: u64,
        min: f64,
        Moments { mean, stdev }: Moments,
        percentile: impl Fn(f64) -> Option<f64>,
    ) -> Option<Self> {
        Some(Self {
            count,
            min,
            mean,
            stdev,
            p50: percentile(50.0)?,
            p90: percentile(90.0)?,
            p95: percentile(95.0)?,
            p99: percentile(99.0)?,
            p999: percentile(99.9)?,
            p9999: percentile(99.99).filter(|_| is_percentile_shown(count, 99.99, 1.0)),
            max: percentile(100.0)?,
            lower_bound_from: None,
            shown_to: None,
            successful: None,
        })
    }

    /// Returns the figures of the successful transactions alone.
    pub fn of_successful(&self) -> &Self {
        self.successful.as_deref().unwrap_or(self)
    }

    /// Sets the highest percentile with ten effective values beyond it, if the latencies are not independent over time.
    pub fn limit_percentiles(&mut self, heatmap: &HeatmapRecord) {
        let values = [self.p50, self.p90, self.p95, self.p99, self.p999, self.p9999.unwrap_or(0.0)];
        let mut last = 0.0;
        for (percent, us) in Self::PERCENTS.into_iter().zip(values) {
            // Higher percentiles have too few samples anyway.
            if !is_percentile_shown(self.count, percent, 1.0) {
                break;
            }
            if !is_percentile_shown(self.count, percent, 1.0 / heatmap.dispersion(percent, us)) {
                self.shown_to = Some(last);
                break;
            }
            last = percent;
        }
    }

    /// Returns whether a percentile has ten effective values beyond it.
    pub fn is_shown(&self, percent: f64) -> bool {
        is_percentile_shown(self.count, percent, 1.0)
            && self.shown_to.is_none_or(|to| percent <= to)
    }

    /// Returns whether a percentile is not shown although there are enough latencies: a few stalls caused the slow ones.
    pub fn is_hidden_by_stalls(&self, percent: f64) -> bool {
        is_percentile_shown(self.count, percent, 1.0) && !self.is_shown(percent)
    }

    /// Whether a percentile, or the mean without one, is only a lower bound.
    pub fn is_bound(&self, percent: Option<f64>) -> bool {
        self.lower_bound_from.is_some_and(|from| percent.unwrap_or(99.0) >= from)
    }
}

/// A percentile of the latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReportedPercentile {
    /// Percent: 95 for the 95th percentile.
    pub percent: f64,
    /// The latency, in microseconds.
    pub us: f64,
}

/// Latencies as another tool reported them, in microseconds. Values that it did not report are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedLatency {
    /// The start of the latencies.
    pub kind: LatencyKind,
    /// Minimum.
    pub min_us: Option<f64>,
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Standard deviation.
    pub stdev_us: Option<f64>,
    /// Percentiles, in ascending order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<ReportedPercentile>,
    /// Maximum.
    pub max_us: Option<f64>,
}

impl ReportedLatency {
    /// Returns the latency of this percentile, if it was reported.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        let same = |reported: &&ReportedPercentile| (reported.percent - percent).abs() < 1e-9;
        self.percentiles.iter().find(same).map(|reported| reported.us)
    }
}

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

impl HeatmapRecord {
    /// Classes per decade. Their bounds are powers of 10^(1/10), so that each is 26 % longer than the previous one.
    pub const CLASSES_PER_DECADE: u32 = 10;

    /// Time slots of a heatmap of samples.
    const SAMPLED_SLOTS: usize = 120;

    /// Returns the heatmap of the samples that were taken regularly. Samples that were taken because they are extreme
    /// would be overrepresented.
    pub fn of_samples(samples: &SampleSet) -> Self {
        let length_s = samples.seconds.max(f64::MIN_POSITIVE) / Self::SAMPLED_SLOTS as f64;
        let mut slots = vec![HeatmapSlot::default(); Self::SAMPLED_SLOTS];
        for point in samples.points.iter().filter(|point| !point.extreme && point.latency_us > 0.0)
        {
            let slot = truncated(point.t_s / length_s).min(Self::SAMPLED_SLOTS - 1);
            if let Some(slot) = slots.get_mut(slot) {
                slot.add(Self::class_of(point.latency_us), samples.every);
            }
        }
        Self { slot_s: length_s, classes_per_decade: Self::CLASSES_PER_DECADE, slots }
    }

    /// Returns the class of a latency in microseconds.
    pub fn class_of(latency_us: f64) -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "latencies from 1 ns to one hour")]
        let class = (latency_us.log10() * f64::from(Self::CLASSES_PER_DECADE)).floor() as i32;
        class
    }
}

/// Counts of one time slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapSlot {
    /// Number of the first class that is not empty.
    pub first_class: i32,
    /// Number of latencies in this class and the following ones.
    pub counts: Vec<u64>,
}

impl HeatmapSlot {
    /// Adds latencies of a class.
    pub fn add(&mut self, class: i32, count: u64) {
        if self.counts.is_empty() {
            self.first_class = class;
        }
        if class < self.first_class {
            let missing = self.first_class.abs_diff(class) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_class = class;
        }
        let position = class.abs_diff(self.first_class) as usize;
        if self.counts.len() <= position {
            self.counts.resize(position + 1, 0);
        }
        if let Some(sum) = self.counts.get_mut(position) {
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds the latencies of another slot.
    pub fn merge(&mut self, other: &Self) {
        for (class, &count) in (other.first_class..).zip(&other.counts) {
            if count > 0 {
                self.add(class, count);
            }
        }
    }
}

/// Minimum number of slots for an estimate of the variation over time.
pub const SLOTS_MIN: usize = 10;
/// A factor within this many standard errors of 1 does not differ from the factor of independent latencies.
const CHANCE_ERRORS: f64 = 3.0;

impl HeatmapRecord {
    /// Returns the factor, at least 1, by which the number of latencies beyond a percentile, whose value is `us`, varies
    /// more from slot to slot than with independent latencies. Their effective number is smaller by this factor: a stall
    /// of 64 sessions is one event, not 64 events. The factor is the design effect of a sample of clusters (Kish,
    /// "Survey Sampling", 1965, section 5.4). The number of independent latencies has a Poisson distribution, whose
    /// variance is its mean.
    pub fn dispersion(&self, percent: f64, us: f64) -> f64 {
        let per_decade = f64::from(self.classes_per_decade);
        #[expect(clippy::cast_possible_truncation, reason = "a class is a small number")]
        let class = (us.max(f64::MIN_POSITIVE).log10() * per_decade).floor() as i32;
        // All latencies of a slot, the latencies above the class of the value, and the latencies in this class.
        let counts = |slot: &HeatmapSlot| {
            let [mut all, mut above, mut within] = [0.0; 3];
            for (own_class, count) in (slot.first_class..).zip(&slot.counts) {
                let count = *count as f64;
                all += count;
                match own_class.cmp(&class) {
                    Ordering::Less => {}
                    Ordering::Equal => within += count,
                    Ordering::Greater => above += count,
                }
            }
            [all, above, within]
        };
        let slots: Vec<[f64; 3]> = self.slots.iter().map(counts).collect();
        let sum = |at: usize| slots.iter().filter_map(|slot| slot.get(at)).sum::<f64>();
        let (all, above, within) = (sum(0), sum(1), sum(2));
        // `share` is the share of the latencies in the class of the value that are beyond the value.
        let beyond = all * (1.0 - percent / 100.0);
        let share = ((beyond - above) / within.max(1.0)).clamp(0.0, 1.0);
        let (slot_count, tail) = (slots.len() as f64, above + share * within);
        if slots.len() < SLOTS_MIN || tail <= 0.0 {
            return 1.0;
        }
        let factor = |expected: &dyn Fn(f64) -> f64| {
            let deviation = |[all, above, within]: &[f64; 3]| {
                let expected = expected(*all);
                let squared = (above + share * within - expected).powi(2);
                // Chance decides which latencies of the class are beyond the value: the variance is binomial.
                let chance = share * (1.0 - share) * within;
                if expected > 0.0 { (squared + chance) / expected } else { 0.0 }
            };
            slots.iter().map(deviation).sum::<f64>() / (slot_count - 1.0)
        };
        // Each slot is expected to have the same number, or the same share of its transactions, because their
        // rate may change.
        let factor = factor(&|_| tail / slot_count).min(factor(&|in_slot| in_slot * tail / all));
        // The factor of independent latencies has a chi-squared distribution.
        let by_chance = 1.0 + CHANCE_ERRORS * (2.0 / (slot_count - 1.0)).sqrt();
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
