//! Counters of one worker in one interval, and the time series point merged from all workers.

use super::counters::{Counter, Counters};
use riops_model::figure::breached;
use riops_model::plan::{LatencyKind, Threshold};
use riops_model::record::{
    ErrorEntry, Histogram, HistogramError, LateRecord, LoopRecord, Outcomes, Point,
    PointHistograms, StageRecord, Throughput,
};

/// Counters of one worker in one interval of the time series.
#[derive(Debug, Clone)]
pub struct IntervalPart {
    /// Position of the interval, from 0.
    pub index: usize,
    /// Counters.
    pub counters: Counters,
    /// Number of overdue starts at the end of the interval; only with a schedule.
    pub backlog: u64,
    /// Number of sessions with a transaction in flight at the end of the interval; only with a schedule.
    pub busy: u64,
    /// Transactions per node; empty for a single node.
    pub nodes: Vec<u64>,
    /// Service times.
    pub service: Histogram,
    /// Response times; only with a schedule, which sets the intended start.
    pub response: Option<Histogram>,
}

impl IntervalPart {
    /// Creates an empty part.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn new(open_loop: bool) -> Result<Self, HistogramError> {
        Ok(Self {
            index: 0,
            counters: Counters::default(),
            backlog: 0,
            busy: 0,
            nodes: Vec::new(),
            service: Histogram::for_interval()?,
            response: open_loop.then(Histogram::for_interval).transpose()?,
        })
    }

    pub(super) fn clear(&mut self, index: usize) {
        self.index = index;
        self.counters.clear();
        self.backlog = 0;
        self.busy = 0;
        self.nodes.fill(0);
        self.service.clear();
        if let Some(response) = &mut self.response {
            response.clear();
        }
    }

    /// Returns the first threshold that all intervals so far certainly breach, of which this is the sum.
    pub fn breached<'a>(&self, seconds: f64, thresholds: &'a [Threshold]) -> Option<&'a Threshold> {
        let times = |kind: LatencyKind| kind.pick([Some(&self.service), self.response.as_ref()]);
        breached(&self.so_far(seconds), times, thresholds)
    }

    /// The record of a stage so far, without its latencies.
    fn so_far(&self, seconds: f64) -> StageRecord {
        let count = |counter| self.counters.get(counter);
        let per_s = |counter| count(counter) as f64 / seconds;
        let throughput = Throughput {
            rows_per_s: per_s(Counter::Rows),
            transactions_per_s: per_s(Counter::Transactions),
            ..Throughput::default()
        };
        let (failed, unknown) = (count(Counter::Failed), count(Counter::Unknown));
        let (late, skipped) = (Some(count(Counter::Late)), count(Counter::Skipped));
        let session_loop = LoopRecord {
            errors: vec![ErrorEntry { count: count(Counter::Errors), ..ErrorEntry::default() }],
            outcomes: Some(Outcomes { failed, unknown, ..Outcomes::default() }),
            late: Some(LateRecord { transactions: late, skipped, ..LateRecord::default() }),
            retries: count(Counter::Retries),
            ..LoopRecord::default()
        };
        let transactions = count(Counter::Transactions);
        StageRecord { seconds, transactions, throughput, session_loop, ..StageRecord::default() }
    }

    /// Adds the counters of another worker in the same interval.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.counters.merge(&other.counters);
        self.backlog += other.backlog;
        self.busy += other.busy;
        if self.nodes.len() < other.nodes.len() {
            self.nodes.resize(other.nodes.len(), 0);
        }
        for (mine, theirs) in self.nodes.iter_mut().zip(&other.nodes) {
            *mine += theirs;
        }
        self.service.merge(&other.service)?;
        if let (Some(mine), Some(theirs)) = (&mut self.response, &other.response) {
            mine.merge(theirs)?;
        }
        Ok(())
    }

    /// Adds an interval of another client, whose point has kept its histograms.
    ///
    /// # Errors
    /// Returns [`HistogramError`] if a histogram cannot be decoded or merged.
    pub fn add_point(&mut self, point: &Point) -> Result<(), HistogramError> {
        self.counters.add([
            (Counter::Transactions, point.transactions),
            (Counter::Rows, point.rows),
            (Counter::Errors, point.errors),
            (Counter::Failed, point.failed),
            (Counter::Late, point.late.unwrap_or_default()),
            (Counter::Skipped, point.skipped),
            (Counter::Retries, point.retries),
        ]);
        let Some(histograms) = &point.histograms else {
            return Ok(());
        };
        self.service.merge(&histograms.service.decode()?)?;
        if let (Some(mine), Some(theirs)) = (&mut self.response, &histograms.response) {
            mine.merge(&theirs.decode()?)?;
        }
        Ok(())
    }

    /// The latencies that users wait for: response times if measured, otherwise service times.
    pub fn latencies(&self) -> &Histogram {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Returns the interval as a point of the time series that ends at `t_s` and is `seconds` long.
    /// `percentile` is the percentile selected by the user, in percent; 0 for none.
    pub fn point(&self, t_s: f64, seconds: f64, percentile: f64) -> Point {
        let service = Some(&self.service).filter(|histogram| histogram.count() > 0);
        let response = self.response.as_ref().filter(|histogram| histogram.count() > 0);
        let at = |histogram: Option<&Histogram>, percent| histogram?.percentile_us(percent);
        let mut point = Point {
            t_s,
            seconds,
            backlog: self.response.as_ref().map(|_| self.backlog),
            busy: self.response.as_ref().map(|_| self.busy),
            nodes: self.nodes.clone(),
            // Response time if measured: the time that a user waits.
            percentile_us: at(response.or(service), percentile).filter(|_| percentile > 0.0),
            mean_stdev_us: self.latencies().summary().map(|summary| (summary.mean, summary.stdev)),
            lag_us: response
                .zip(service)
                .and_then(|(response, service)| Some((response.summary()?, service.summary()?)))
                .map(|(response, service)| response.mean - service.mean),
            ..Point::default()
        };
        count(&mut point, &self.counters);
        point.set_latencies(|percent| at(service, percent), |percent| at(response, percent));
        point
    }

    /// Returns the histograms for the point of a series; `None` if one cannot be encoded.
    pub(super) fn histograms(&self) -> Option<Box<PointHistograms>> {
        let response = self.response.as_ref().map(Histogram::stored).transpose().ok()?;
        Some(Box::new(PointHistograms { service: self.service.stored().ok()?, response }))
    }
}

/// Adds the transactions of an interval, but not their latencies.
pub(super) fn count_part(point: &mut Point, counters: &Counters, nodes: &[u64]) {
    count(point, counters);
    for (mine, theirs) in point.nodes.iter_mut().zip(nodes) {
        *mine += theirs;
    }
}

/// Adds the counts that are part of the time series.
pub(super) fn count(point: &mut Point, counters: &Counters) {
    for &counter in Counter::ALL {
        let total = match counter {
            Counter::Transactions => &mut point.transactions,
            Counter::Rows => &mut point.rows,
            Counter::ReadQueries => &mut point.queries.read,
            Counter::WriteQueries => &mut point.queries.write,
            Counter::OtherQueries => &mut point.queries.other,
            Counter::Failed | Counter::Unknown => &mut point.failed,
            Counter::Late => point.late.get_or_insert_default(),
            Counter::Skipped => &mut point.skipped,
            Counter::Errors => &mut point.errors,
            Counter::Retries => &mut point.retries,
            Counter::Reconnects => &mut point.reconnects,
            Counter::Retried => &mut point.retried,
            Counter::Statements => continue,
        };
        *total += counters.get(counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::units::Nanos;

    #[test]
    fn a_stage_in_progress_has_the_counts_and_times_so_far() {
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
        let is_breached = |text: &str| sum.breached(2.0, &[text.parse().unwrap()]).is_some();
        for text in ["riops=450", "tps=45", "errors=12", "error_percent=10", "late=3", "retries=0"]
        {
            assert!(!is_breached(text), "{text}");
            assert!(is_breached(&text.replace('=', ">")), "{text}");
        }
        for text in ["service.p99<2ms", "p50>4ms", "response.max<6ms", "service.mean>900us"] {
            assert!(!is_breached(text), "{text}");
        }
        assert!(is_breached("p50<4ms") && is_breached("service.p99>2ms"));
        // Known at the end.
        for text in
            ["reconnects=0", "unknown=0", "waiting>5", "p99{script=1}<1us", "server-cpu<1us"]
        {
            assert!(!is_breached(text), "{text}");
        }
        let nothing = IntervalPart::new(false).unwrap();
        for text in ["p99<1us", "riops>1"] {
            assert!(nothing.breached(0.0, &[text.parse().unwrap()]).is_none(), "{text}");
        }
    }
}
