//! Metric values for thresholds, during a stage and at its end.

use super::counters::{Counter, Counters};
use super::interval::IntervalPart;
use super::recorder::Recorder;
use crate::plan::{Metric, Threshold, TimeKind};
use crate::record::Histogram;

/// Counters and latencies of a stage up to a point in time.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// Length of the measurement so far, in seconds.
    pub seconds: f64,
    /// Counters.
    pub counters: Counters,
    /// Starts still waiting for a session; only with a target rate, and once known.
    pub waiting: Option<u64>,
    /// Whether the stage is over. Reconnects and unknown outcomes are available only then.
    pub is_final: bool,
    /// Service times.
    pub service: &'a Histogram,
    /// Response times; only with a target rate.
    pub response: Option<&'a Histogram>,
}

impl<'a> Figures<'a> {
    /// Returns the values of all intervals so far.
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

    /// Returns the values of a whole stage, except for its latencies, of which some are lower bounds.
    pub fn of_stage(recorder: &Recorder, seconds: f64, service: &'a Histogram) -> Self {
        let counters = recorder.counters();
        Self { seconds, counters, waiting: None, is_final: true, service, response: None }
    }

    /// Returns the first threshold that is certainly breached. Those of parts are left out: they are known only at the end.
    pub fn breached<'t>(&self, thresholds: &'t [Threshold]) -> Option<&'t Threshold> {
        thresholds.iter().find(|threshold| {
            let found = self.get(threshold.metric).filter(|_| threshold.part.is_none());
            found.is_some_and(|found| threshold.is_clearly_breached(found))
        })
    }

    /// Returns the value of a metric, in microseconds for latencies. `None` if it is not available
    /// (yet).
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
                histogram.and_then(|histogram| histogram.figure(quantity))
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
            // Known when the stage has ended.
            Metric::Probe | Metric::ProbeMax | Metric::Figure => None,
            Metric::Unknown => count(&[Counter::Unknown]).filter(|_| self.is_final),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn returns_the_value_of_each_metric() {
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
        let is_met = |text: &str| {
            let threshold: Threshold = text.parse().unwrap();
            threshold.is_met_by(figures.get(threshold.metric).unwrap())
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
            assert!(is_met(text), "{text}");
        }
        for metric in [Metric::Reconnects, Metric::Unknown] {
            assert_eq!(figures.get(metric), None, "{metric:?} is available only at the end");
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
