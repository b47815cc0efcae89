//! Histograms and their summaries.

use crate::metrics::OperationTotals;
use crate::record::{Histogram, HistogramError, LatencySummary};

pub(super) fn summary(histogram: &Histogram) -> Option<LatencySummary> {
    histogram.summary()
}

/// Returns one histogram of all kinds of transactions.
pub(super) fn merged<'a>(
    totals: &'a [OperationTotals],
    pick: impl Fn(&'a OperationTotals) -> Option<&'a Histogram>,
) -> Result<Histogram, HistogramError> {
    let mut all = Histogram::new()?;
    for histogram in totals.iter().filter_map(pick) {
        all.merge(histogram)?;
    }
    Ok(all)
}
