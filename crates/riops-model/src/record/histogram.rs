//! Latencies in an HDR histogram with fixed bounds and a fixed relative error: it does not grow during
//! a run, and percentiles come from merged histograms, never from averages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::latency::{LatencySummary, Moments};
use crate::plan::Quantity;
use crate::units::Nanos;

/// Longest distinguishable latency, in nanoseconds: one hour. Longer latencies are recorded as one
/// hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Relative error of stored histograms: 10^−3, three significant digits.
const DIGITS: u8 = 3;
/// Relative error of the histogram of one interval: 10^−2. It is stored only as percentiles.
const INTERVAL_DIGITS: u8 = 2;

/// Maximum number of latencies in an encoded histogram, so that sums of them do not overflow.
pub const LATENCIES_MAX: u64 = 1 << 56;

/// Failure to create, encode or decode a histogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The data is not a valid histogram.
    #[error("cannot decode the histogram in the record: {0}")]
    Damaged(String),
    /// The histogram could not be created, merged or encoded.
    #[error("cannot create or encode the histogram: {0}")]
    Unusable(String),
}

/// A histogram of latencies.
#[derive(Debug, Clone)]
pub struct Histogram {
    hdr: hdrhistogram::Histogram<u64>,
    /// Exact minimum and maximum, instead of bucket boundaries.
    min: Nanos,
    max: Nanos,
    total_ns: u128,
}

impl Histogram {
    /// Creates an empty histogram for a stage: three significant digits, 1 ns to 1 h, about 270 kB.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the histogram cannot be created or encoded.
    pub fn new() -> Result<Self, HistogramError> {
        Self::with_digits(DIGITS)
    }

    /// Creates an empty histogram for one interval: two significant digits, about 36 kB.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the histogram cannot be created or encoded.
    pub fn for_interval() -> Result<Self, HistogramError> {
        Self::with_digits(INTERVAL_DIGITS)
    }

    fn with_digits(digits: u8) -> Result<Self, HistogramError> {
        hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, digits)
            .map(|hdr| Self { hdr, min: Nanos::MAX, max: Nanos(0), total_ns: 0 })
            .map_err(|error| HistogramError::Unusable(error.to_string()))
    }

    /// Adds one latency. Never allocates.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.hdr.saturating_record(latency.0.max(1));
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.total_ns += u128::from(latency.0);
    }

    /// Adds `count` latencies of the same length. Never allocates.
    pub fn record_many(&mut self, latency: Nanos, count: u64) {
        self.hdr.saturating_record_n(latency.0.max(1), count);
        if count > 0 {
            self.min = self.min.min(latency);
            self.max = self.max.max(latency);
            self.total_ns += u128::from(latency.0) * u128::from(count);
        }
    }

    /// Sets the exact longest latency, if the recorded values were only bucket boundaries.
    pub fn set_exact_max(&mut self, longest: Nanos) {
        if self.count() > 0 {
            self.max = longest;
        }
    }

    /// Adds all latencies of `other`, which must have the same bounds.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the bounds differ.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.total_ns += other.total_ns;
        self.hdr.add(&other.hdr).map_err(|error| HistogramError::Unusable(error.to_string()))
    }

    /// Merges stored histograms, for example of several stages or runs; `None` without any. The percentiles of the
    /// result cover all latencies together.
    ///
    /// # Errors
    /// Returns [`HistogramError::Damaged`] if one is not a valid histogram, and
    /// [`HistogramError::Unusable`] if it cannot be merged.
    pub fn merged<'a>(
        stored: impl IntoIterator<Item = &'a StoredHistogram>,
    ) -> Result<Option<Self>, HistogramError> {
        let mut merged: Option<Self> = None;
        for stored in stored {
            // Starts with the bounds of riops: a histogram of another program may have narrower bounds.
            let merged = match &mut merged {
                Some(merged) => merged,
                None => merged.insert(Self::new()?),
            };
            merged.merge(&stored.decode()?)?;
        }
        Ok(merged)
    }

    /// Removes all latencies without releasing the memory.
    pub fn clear(&mut self) {
        self.hdr.reset();
        self.min = Nanos::MAX;
        self.max = Nanos(0);
        self.total_ns = 0;
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.hdr.len()
    }

    /// Returns the latency that a share `quantile` (0 to 1) of all latencies does not exceed.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        Nanos(self.hdr.value_at_quantile(quantile)).max(self.min).min(self.max())
    }

    /// Returns a statistic in microseconds; `None` without any latency.
    pub fn figure(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Percentile(percent) => self.percentile_us(percent),
            Quantity::Mean => self.mean_us(),
        }
    }

    /// Returns a percentile in microseconds; 100 is the exact maximum. `None` without any latency.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        // In floating point 99.9 / 100 is slightly above 0.999, which would select the next value of a thousand.
        let quantile = (percent * 1e3).round() / 1e5;
        let us = || if percent == 100.0 { self.max() } else { self.quantile(quantile) }.as_micros();
        (self.count() > 0).then(us)
    }

    fn mean_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.total_ns as f64 / self.count() as f64 / 1e3)
    }

    /// Returns the sum of all latencies, in seconds.
    pub fn total_s(&self) -> f64 {
        self.total_ns as f64 / 1e9
    }

    /// Returns the longest latency.
    pub fn max(&self) -> Nanos {
        self.max.min(Nanos(HIGHEST_NS))
    }

    /// Returns the summary statistics of a record, in microseconds; `None` without latencies.
    pub fn summary(&self) -> Option<LatencySummary> {
        let (min, percentile) = (self.min.as_micros(), |percent| self.percentile_us(percent));
        let moments = Moments { mean: self.mean_us()?, stdev: self.stdev_ns() / 1e3 };
        LatencySummary::new(self.count(), min, moments, percentile)
    }

    /// Returns the standard deviation, in nanoseconds. Latencies are the middles of their buckets.
    fn stdev_ns(&self) -> f64 {
        let middles = || {
            self.buckets()
                .map(|(from, _, count)| (self.hdr.median_equivalent(from.0) as f64, count as f64))
        };
        let all = self.count().max(1) as f64;
        let mean = middles().map(|(value, count)| value * count).sum::<f64>() / all;
        let squares = middles().map(|(value, count)| (value - mean).powi(2) * count);
        (squares.sum::<f64>() / all).sqrt()
    }

    /// Returns each recorded latency and its frequency, in ascending order. Latencies have the relative
    /// error of the histogram.
    pub fn recorded(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.buckets().map(|(_, to, count)| (Nanos(to.0 - 1), count))
    }

    /// Returns each bucket with latencies: its lower and upper bound, of which only the lower one belongs to the
    /// bucket, and the number of latencies. In ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> {
        // The iterator of the library goes through the thousands of buckets below the first one, too.
        let (first, last) = (self.hdr.min(), self.hdr.max());
        let from =
            std::iter::successors(Some(first), |from| Some(self.hdr.next_non_equivalent(*from)));
        from.take_while(move |from| *from <= last)
            .map(|from| {
                (Nanos(from), Nanos(self.hdr.next_non_equivalent(from)), self.hdr.count_at(from))
            })
            .filter(|(.., count)| *count > 0)
    }

    /// Encodes the histogram for a record.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the histogram cannot be created or encoded.
    pub fn stored(&self) -> Result<StoredHistogram, HistogramError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.hdr, &mut bytes)
            .map_err(|error| HistogramError::Unusable(error.to_string()))?;
        Ok(StoredHistogram(BASE64.encode(bytes)))
    }
}

/// A histogram in a record: HDR V2, compressed, base64; values are nanoseconds. It keeps its text, because decoding takes
/// time, and because another version of the library may encode the same histogram to other bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredHistogram(String);

impl StoredHistogram {
    /// Decodes the histogram.
    ///
    /// # Errors
    /// Returns [`HistogramError::Damaged`] if the text is not a valid histogram.
    pub fn decode(&self) -> Result<Histogram, HistogramError> {
        let bytes =
            BASE64.decode(&self.0).map_err(|error| HistogramError::Damaged(error.to_string()))?;
        let hdr: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Damaged(error.to_string()))?;
        if hdr.len() > LATENCIES_MAX {
            return Err(HistogramError::Damaged("it has too many latencies".to_owned()));
        }
        let values = hdr.iter_recorded();
        let total_ns = values.map(|value| {
            u128::from(value.value_iterated_to()) * u128::from(value.count_since_last_iteration())
        });
        let total_ns = total_ns.sum();
        // The library returns a minimum of 0 without values. Merging must not adopt it.
        let min = if hdr.is_empty() { Nanos::MAX } else { Nanos(hdr.min()) };
        Ok(Histogram { min, max: Nanos(hdr.max()), total_ns, hdr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth_of_the_sorted_values(
            mut values in prop::collection::vec(1u64..10_000_000_000, 1..400),
            quantile in 0.01f64..1.0,
        ) {
            let mut histogram = Histogram::new().unwrap();
            for value in &values {
                histogram.record(Nanos(*value));
            }
            values.sort_unstable();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in a short list")]
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let value = histogram.quantile(quantile).0 as f64;
            prop_assert!((value - exact).abs() <= exact / 1000.0 + 1.0, "{value} for {exact}");
        }

        #[test]
        fn buckets_and_their_deviation_equal_the_library(
            values in prop::collection::vec(0u64..5_000_000_000_000, 0..100),
        ) {
            let mut histogram = Histogram::new().unwrap();
            for value in &values {
                histogram.record(Nanos(*value));
            }
            let of_library = histogram.hdr.iter_recorded();
            let of_library: Vec<_> = of_library
                .map(|value| (Nanos(value.value_iterated_to()), value.count_since_last_iteration()))
                .collect();
            prop_assert_eq!(histogram.recorded().collect::<Vec<_>>(), of_library);
            let (deviation, expected) = (histogram.stdev_ns(), histogram.hdr.stdev());
            prop_assert!((deviation - expected).abs() <= expected * 1e-9, "{deviation} {expected}");
        }

        #[test]
        fn merging_equals_recording_into_one_histogram(
            first in prop::collection::vec(1u64..1_000_000_000, 0..100),
            second in prop::collection::vec(1u64..1_000_000_000, 0..100),
        ) {
            let record = |values: &[u64]| {
                let mut histogram = Histogram::new().unwrap();
                for value in values {
                histogram.record(Nanos(*value));
            }
                histogram
            };
            let mut merged = record(&first);
            merged.merge(&record(&second)).unwrap();
            let together = record(&[first, second].concat());
            prop_assert_eq!(merged.summary(), together.summary());
        }
    }

    proptest! {
        #[test]
        fn histograms_of_workers_and_stages_merge_into_one_of_all_latencies(
            stages in prop::collection::vec(
                // Workers of a stage, with their latencies: from 1 ns to more than an hour.
                prop::collection::vec(prop::collection::vec(0u64..5_000_000_000_000, 0..40), 1..4),
                1..4,
            ),
        ) {
            let mut all = Histogram::new().unwrap();
            let mut stored = Vec::new();
            for workers in &stages {
                let mut stage = Histogram::new().unwrap();
                for latencies in workers {
                    let mut worker = Histogram::new().unwrap();
                    for latency in latencies {
                        worker.record(Nanos(*latency));
                        all.record(Nanos(*latency));
                    }
                    stage.merge(&worker).unwrap();
                }
                stored.push(stage.stored().unwrap());
            }
            let merged = Histogram::merged(&stored).unwrap().unwrap();
            prop_assert_eq!(
                merged.recorded().collect::<Vec<_>>(),
                all.recorded().collect::<Vec<_>>()
            );
            prop_assert_eq!(merged.count(), all.count());
            if all.count() > 0 {
                for quantile in [0.5, 0.9, 0.99, 0.999] {
                    let (one, other) = (merged.quantile(quantile), all.quantile(quantile));
                    prop_assert!(one.0.abs_diff(other.0) <= other.0 / 1000 + 1, "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn merging_nothing_gives_nothing_and_damaged_texts_are_errors() {
        assert!(Histogram::merged([]).unwrap().is_none());
        let empty = Histogram::new().unwrap().stored().unwrap();
        assert_eq!(Histogram::merged([&empty]).unwrap().unwrap().count(), 0);
        assert!(Histogram::merged([&empty, &StoredHistogram("AAAA".to_owned())]).is_err());
    }

    #[test]
    fn a_stage_without_latencies_does_not_change_the_minimum() {
        let empty = Histogram::new().unwrap().stored().unwrap();
        let mut other = Histogram::new().unwrap();
        other.record(Nanos(2_000));
        let other = other.stored().unwrap();
        let merged = Histogram::merged([&empty, &other]).unwrap().unwrap();
        assert_eq!(merged.summary().unwrap().min, 2.0);
    }

    #[test]
    fn round_trips_through_a_record() {
        let mut histogram = Histogram::new().unwrap();
        (1..2_000).for_each(|value| histogram.record(Nanos(value * value)));
        let json = serde_json::to_string(&histogram.stored().unwrap()).unwrap();
        let stored: StoredHistogram = serde_json::from_str(&json).unwrap();
        let decoded = stored.decode().unwrap();
        // After decoding, the maximum is rounded to its bucket.
        let max = |summary: Option<LatencySummary>| summary.unwrap().max;
        assert!((max(decoded.summary()) / max(histogram.summary()) - 1.0).abs() < 1e-3);
        assert_eq!(decoded.count(), histogram.count());
        assert_eq!(decoded.quantile(0.9), histogram.quantile(0.9));
        assert!(StoredHistogram("AAAA".to_owned()).decode().is_err());
    }

    #[test]
    fn records_a_latency_above_one_hour_as_one_hour() {
        let mut histogram = Histogram::new().unwrap();
        histogram.record(Nanos::MAX);
        assert_eq!(histogram.count(), 1);
        assert!((histogram.max().as_seconds() - 3600.0).abs() < 4.0);
    }

    #[test]
    fn an_empty_histogram_has_no_summary() {
        assert_eq!(Histogram::new().unwrap().summary(), None);
    }
}
