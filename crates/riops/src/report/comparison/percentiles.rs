//! Percentiles of one run and of several: from merged histograms, and only with enough samples.

use serde::Serialize;

use crate::metrics::Histogram;
use crate::record::StageRecord;
use crate::stats::{effective_sample_size, percentile_shown};

/// A percentile that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Percentile {
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
}

impl Percentile {
    /// The percentiles that comparisons of two groups show.
    pub const ALL: [Self; 3] = [Self::P50, Self::P99, Self::P999];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    fn percent(self) -> f64 {
        match self {
            Self::P50 => 50.0,
            Self::P95 => 95.0,
            Self::P99 => 99.0,
            Self::P999 => 99.9,
        }
    }

    /// Its value in one run, in microseconds: of the response time with a rate, otherwise of the service time.
    pub(in crate::report) fn of(self, stage: &StageRecord) -> Option<f64> {
        let each = &stage.session_loop;
        let latency = each.response_us.as_ref().or(each.service_us.as_ref())?;
        let supported = percentile_shown(latency.count, self.percent(), effective_share(stage));
        supported.then_some(match self {
            Self::P50 => latency.p50,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
            Self::P999 => latency.p999,
        })
    }

    /// Its value over several runs, in microseconds, from their merged histograms.
    pub(in crate::report) fn of_all(self, stages: &[&StageRecord]) -> Option<f64> {
        let [first, rest @ ..] = stages else {
            return None;
        };
        let mut all = histogram(first)?;
        for stage in rest {
            all.merge(&histogram(stage)?).ok()?;
        }
        let shares = stages.iter().map(|stage| effective_share(stage));
        let share = shares.fold(1.0, f64::min);
        percentile_shown(all.count(), self.percent(), share)
            .then(|| all.quantile(self.percent() / 100.0).0 as f64 / 1e3)
    }
}

/// The histogram of the response times with a rate, otherwise of the service times.
fn histogram(stage: &StageRecord) -> Option<Histogram> {
    let each = &stage.session_loop;
    let text = each.response_histogram.as_ref().or(each.histogram.as_ref())?;
    Histogram::from_base64(text).ok()
}

/// Effective samples per sample, 0 to 1: transactions of one stall are not independent. From the medians of the
/// intervals.
fn effective_share(stage: &StageRecord) -> f64 {
    let medians: Vec<f64> = stage
        .session_loop
        .series
        .iter()
        .filter_map(|point| point.response_p50_us.or(point.p50_us))
        .collect();
    if medians.is_empty() {
        return 1.0;
    }
    effective_sample_size(&medians) / medians.len() as f64
}
