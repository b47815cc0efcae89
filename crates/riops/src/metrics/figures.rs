//! The figures by which a result is judged, while it is made and when it is done.

use super::counters::{Counter, Counters};
use super::histogram::Histogram;
use super::interval::IntervalPart;
use super::recorder::Recorder;
use crate::plan::{Metric, Quantity, TimeKind};

/// Counts and latencies up to some moment.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// Length of the measurement so far.
    pub seconds: f64,
    /// What was counted.
    pub counters: Counters,
    /// Starts that never got their turn, where a rate is set and that is known already.
    pub waiting: Option<u64>,
    /// Whether the stage is over: only then are reconnects and unknown outcomes judged.
    pub is_final: bool,
    /// Service times.
    pub service: &'a Histogram,
    /// Response times, where a rate is set.
    pub response: Option<&'a Histogram>,
}

impl<'a> Figures<'a> {
    /// Those of the intervals up to now.
    #[must_use]
    pub fn so_far(sum: &'a IntervalPart, seconds: f64) -> Self {
        Self {
            seconds,
            counters: sum.counters,
            waiting: None,
            is_final: false,
            service: &sum.service,
            response: sum.response.as_ref(),
        }
    }

    /// Those of a whole stage, whose latencies were merged over its operations.
    #[must_use]
    pub fn of_stage(
        recorder: &Recorder,
        seconds: f64,
        service: &'a Histogram,
        response: Option<&'a Histogram>,
    ) -> Self {
        Self {
            seconds,
            counters: recorder.counters(),
            waiting: None,
            is_final: true,
            service,
            response,
        }
    }

    /// The metric's figure: microseconds for latencies. `None` where there is none (yet).
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        let sum = |of: &[Counter]| of.iter().map(|&each| self.counters.get(each)).sum::<u64>();
        let count = |of: &[Counter]| Some(sum(of) as f64);
        let per_s = |of: Counter| (self.seconds > 0.0).then(|| sum(&[of]) as f64 / self.seconds);
        match metric {
            Metric::Time(kind, quantity) => {
                let histogram = match kind {
                    TimeKind::Service => Some(self.service),
                    TimeKind::Response => self.response,
                    TimeKind::Either => self.response.or(Some(self.service)),
                };
                histogram.and_then(|histogram| latency(histogram, quantity))
            }
            Metric::RowsPerS => per_s(Counter::Rows),
            Metric::TransactionsPerS => per_s(Counter::Transactions),
            Metric::Errors => count(&[Counter::Errors]),
            Metric::ErrorPercent => {
                let failed = sum(&[Counter::Failed, Counter::Unknown]);
                let ended = failed + sum(&[Counter::Transactions]);
                (ended > 0).then(|| 100.0 * failed as f64 / ended as f64)
            }
            Metric::Late => count(&[Counter::Late, Counter::Skipped]),
            Metric::Waiting => self.waiting.map(|count| count as f64),
            Metric::Retries => count(&[Counter::Retries]),
            Metric::Reconnects => count(&[Counter::Reconnects]).filter(|_| self.is_final),
            Metric::Unknown => count(&[Counter::Unknown]).filter(|_| self.is_final),
        }
    }
}

fn latency(histogram: &Histogram, quantity: Quantity) -> Option<f64> {
    let summary = histogram.summary()?;
    Some(match quantity {
        Quantity::Quantile(quantile) => histogram.quantile(quantile).as_micros(),
        Quantity::Mean => summary.mean,
        Quantity::Max => summary.max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Threshold;
    use crate::units::Nanos;

    #[test]
    fn each_metric_has_its_figure() {
        let mut sum = IntervalPart::new(true).unwrap();
        sum.counters.add([
            (Counter::Transactions, 90),
            (Counter::Failed, 8),
            (Counter::Unknown, 2),
            (Counter::Rows, 900),
            (Counter::Errors, 12),
            (Counter::Late, 2),
            (Counter::Skipped, 1),
            (Counter::Reconnects, 7),
        ]);
        sum.service.record(Nanos(1_000_000));
        sum.response.as_mut().unwrap().record(Nanos(5_000_000));
        let figures = Figures::so_far(&sum, 2.0);
        let held = |text: &str| {
            let threshold: Threshold = text.parse().unwrap();
            threshold.is_held_by(figures.get(threshold.metric).unwrap())
        };
        for text in [
            "riops=450",
            "tps=45",
            "errors=12",
            "error_percent=10",
            "late=3",
            "retries=0",
            "service.p99<2ms",
            "p50>4ms",
            "response.max<6ms",
            "service.mean>900us",
        ] {
            assert!(held(text), "{text}");
        }
        for metric in [Metric::Reconnects, Metric::Unknown] {
            assert_eq!(figures.get(metric), None, "{metric:?} is judged at the end");
        }
        let figures = Figures { is_final: true, ..figures };
        assert_eq!(figures.get(Metric::Reconnects), Some(7.0));
        assert_eq!(figures.get(Metric::Unknown), Some(2.0));
        let nothing = IntervalPart::new(false).unwrap();
        let figures = Figures::so_far(&nothing, 0.0);
        assert_eq!(figures.get("p99<1s".parse::<Threshold>().unwrap().metric), None);
        assert_eq!(figures.get(Metric::RowsPerS), None);
    }
}
