//! The figures by which a result is judged, while it is made and when it is done.

use super::histogram::Histogram;
use super::interval::IntervalPart;
use super::recorder::Recorder;
use crate::plan::{Metric, Quantity, TimeKind};

/// Counts and latencies up to some moment.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// Length of the measurement so far.
    pub seconds: f64,
    /// Transactions that ended well.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// Errors.
    pub errors: u64,
    /// Transactions that failed, or whose outcome is unknown.
    pub failed: u64,
    /// Of these the ones whose outcome is unknown, where that is known already.
    pub unknown: Option<u64>,
    /// Late and skipped transactions.
    pub late: u64,
    /// Starts that never got their turn, where a rate is set and that is known already.
    pub waiting: Option<u64>,
    /// Transactions that were sent again.
    pub retries: u64,
    /// Broken connections that were replaced, where that is known already.
    pub reconnects: Option<u64>,
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
            transactions: sum.transactions,
            rows: sum.rows,
            errors: sum.errors,
            failed: sum.failed,
            unknown: None,
            late: sum.late + sum.skipped,
            waiting: None,
            retries: sum.retries,
            reconnects: None,
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
        let operations = recorder.operations();
        let unknown = operations.iter().map(|totals| totals.unknown).sum();
        let late: u64 = operations.iter().map(|totals| totals.late).sum();
        Self {
            seconds,
            transactions: operations.iter().map(|totals| totals.transactions).sum(),
            rows: operations.iter().map(|totals| totals.rows).sum(),
            errors: recorder.errors().total(),
            failed: operations.iter().map(|totals| totals.failed).sum::<u64>() + unknown,
            unknown: Some(unknown),
            late: late + recorder.skipped,
            waiting: None,
            retries: recorder.retries,
            reconnects: Some(recorder.reconnects),
            service,
            response,
        }
    }

    /// The metric's figure: microseconds for latencies. `None` where there is none (yet).
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        let per_s = |count: u64| (self.seconds > 0.0).then(|| count as f64 / self.seconds);
        match metric {
            Metric::Time(kind, quantity) => {
                let histogram = match kind {
                    TimeKind::Service => Some(self.service),
                    TimeKind::Response => self.response,
                    TimeKind::Either => self.response.or(Some(self.service)),
                };
                histogram.and_then(|histogram| latency(histogram, quantity))
            }
            Metric::RowsPerS => per_s(self.rows),
            Metric::TransactionsPerS => per_s(self.transactions),
            Metric::Errors => Some(self.errors as f64),
            Metric::ErrorPercent => {
                let ended = self.transactions + self.failed;
                (ended > 0).then(|| 100.0 * self.failed as f64 / ended as f64)
            }
            Metric::Late => Some(self.late as f64),
            Metric::Waiting => self.waiting.map(|count| count as f64),
            Metric::Retries => Some(self.retries as f64),
            Metric::Reconnects => self.reconnects.map(|count| count as f64),
            Metric::Unknown => self.unknown.map(|count| count as f64),
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
        sum.transactions = 90;
        sum.failed = 10;
        sum.rows = 900;
        sum.errors = 12;
        sum.late = 3;
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
        assert_eq!(figures.get(Metric::Reconnects), None);
        let nothing = IntervalPart::new(false).unwrap();
        let figures = Figures::so_far(&nothing, 0.0);
        assert_eq!(figures.get("p99<1s".parse::<Threshold>().unwrap().metric), None);
        assert_eq!(figures.get(Metric::RowsPerS), None);
    }
}
