//! Counters of one worker in one interval, and the time series point merged from all workers.

use super::counters::{Counter, Counters};
use crate::record::{Histogram, HistogramError, Point, PointHistograms};

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
        point.count(&self.counters);
        point.set_latencies(|percent| at(service, percent), |percent| at(response, percent));
        point
    }

    /// Returns the histograms for the point of a series; `None` if one cannot be encoded.
    pub(super) fn histograms(&self) -> Option<Box<PointHistograms>> {
        let response = self.response.as_ref().map(Histogram::stored).transpose().ok()?;
        Some(Box::new(PointHistograms { service: self.service.stored().ok()?, response }))
    }
}

impl Point {
    /// Adds the transactions of an interval, but not their latencies.
    pub(super) fn count_part(&mut self, counters: &Counters, nodes: &[u64]) {
        self.count(counters);
        for (mine, theirs) in self.nodes.iter_mut().zip(nodes) {
            *mine += theirs;
        }
    }

    /// Adds the counts that are part of the time series.
    pub(super) fn count(&mut self, counters: &Counters) {
        for &counter in Counter::ALL {
            let number = match counter {
                Counter::Transactions => &mut self.transactions,
                Counter::Rows => &mut self.rows,
                Counter::ReadQueries => &mut self.queries.read,
                Counter::WriteQueries => &mut self.queries.write,
                Counter::OtherQueries => &mut self.queries.other,
                Counter::Failed | Counter::Unknown => &mut self.failed,
                Counter::Late => self.late.get_or_insert_default(),
                Counter::Skipped => &mut self.skipped,
                Counter::Errors => &mut self.errors,
                Counter::Retries => &mut self.retries,
                Counter::Reconnects => &mut self.reconnects,
                Counter::Retried => &mut self.retried,
                Counter::Statements => continue,
            };
            *number += counters.get(counter);
        }
    }
}
