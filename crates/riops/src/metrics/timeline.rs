//! The time series: the workers' parts of an interval, merged into one point once all parts have
//! arrived.
//!
//! Percentiles come from the merged histogram of the interval, never from averaged percentiles.

use std::collections::VecDeque;

use super::heatmap::Heatmap;
use super::histogram::HistogramError;
use super::interval::IntervalPart;
use super::point::Point;
use crate::plan::SERIES_POINTS_MAX;

/// Minimum length of an interval, in seconds: rates over shorter intervals are meaningless.
const INTERVAL_MIN_S: f64 = 1e-6;

/// An interval with missing parts.
#[derive(Debug)]
struct Open {
    parts: usize,
    sum: IntervalPart,
}

/// The time series of a stage.
#[derive(Debug)]
pub struct TimeSeries {
    /// One point per interval.
    pub points: Vec<Point>,
    /// Number of points that became complete only at the end.
    pub closed: usize,
    /// Latencies over time: response times with a schedule, otherwise service times.
    pub heatmap: Heatmap,
}

/// Collects the points of a stage as they become complete.
#[derive(Debug)]
pub struct Timeline {
    workers: usize,
    /// Last interval of each worker that has finished.
    ended: Vec<usize>,
    interval_s: f64,
    percentile: f64,
    open: VecDeque<Open>,
    closed: usize,
    points: Vec<Point>,
    heatmap: Heatmap,
    /// Sum of all closed intervals, if requested.
    total: Option<IntervalPart>,
}

impl Timeline {
    /// Creates a time series that expects one part per worker in every interval. `percentile` is the
    /// selected percentile of the points.
    #[must_use]
    pub fn new(workers: usize, interval_s: f64, percentile: f64) -> Self {
        Self {
            workers,
            ended: Vec::new(),
            interval_s,
            percentile,
            open: VecDeque::new(),
            closed: 0,
            points: Vec::new(),
            heatmap: Heatmap::new(interval_s),
            total: None,
        }
    }

    /// Starts summing up the intervals that become complete.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn enable_total(&mut self, open_loop: bool) -> Result<(), HistogramError> {
        self.total = Some(IntervalPart::new(open_loop)?);
        Ok(())
    }

    /// Returns the sum of the complete intervals and their length in seconds; only after
    /// [`Self::enable_total`].
    #[must_use]
    pub fn total(&self) -> Option<(&IntervalPart, f64)> {
        Some((self.total.as_ref()?, self.closed as f64 * self.interval_s))
    }

    /// Adds a worker's part; returns the points that became complete.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn add(&mut self, part: &IntervalPart) -> Result<Vec<Point>, HistogramError> {
        self.merge(part)?;
        let mut complete = Vec::new();
        while self.open.front().is_some_and(|open| open.parts >= self.expected(self.closed)) {
            complete.extend(self.close(self.interval_s));
        }
        Ok(complete)
    }

    /// Returns the number of workers that contribute to this interval.
    fn expected(&self, interval: usize) -> usize {
        self.workers - self.ended.iter().filter(|&&last| last < interval).count()
    }

    fn merge(&mut self, part: &IntervalPart) -> Result<(), HistogramError> {
        let Some(position) = part.index.checked_sub(self.closed) else {
            return Ok(());
        };
        while self.open.len() <= position {
            let sum = IntervalPart::new(part.response.is_some())?;
            self.open.push_back(Open { parts: 0, sum });
        }
        if let Some(open) = self.open.get_mut(position) {
            open.parts += 1;
            open.sum.merge(part)?;
        }
        Ok(())
    }

    /// Adds the last part of a worker, while other workers may continue. [`Self::finish`] sets its
    /// length.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn add_last(&mut self, part: &IntervalPart) -> Result<(), HistogramError> {
        self.ended.push(part.index);
        self.merge(part)
    }

    /// Closes the remaining intervals; the last one ends `end_s` seconds after counting started.
    #[must_use]
    pub fn finish(mut self, end_s: f64) -> TimeSeries {
        let mut closed = 0;
        while !self.open.is_empty() {
            let start_s = self.closed as f64 * self.interval_s;
            let seconds = (end_s - start_s).min(self.interval_s);
            if seconds > INTERVAL_MIN_S {
                self.close(seconds);
                closed += 1;
            } else if let Some((open, last)) = self.open.pop_front().zip(self.points.last_mut()) {
                self.heatmap.add(self.closed.saturating_sub(1), open.sum.latencies());
                // Transactions that ended exactly at the end of the measurement belong to the last
                // point.
                last.count(&open.sum.counters);
                for (mine, theirs) in last.nodes.iter_mut().zip(&open.sum.nodes) {
                    *mine += theirs;
                }
            }
        }
        TimeSeries { points: self.points, closed, heatmap: self.heatmap }
    }

    fn close(&mut self, seconds: f64) -> Option<Point> {
        let sum = self.open.pop_front()?.sum;
        let start_s = self.closed as f64 * self.interval_s;
        self.heatmap.add(self.closed, sum.latencies());
        self.closed += 1;
        if let Some(total) = &mut self.total {
            // Both have the same bounds, so merging cannot fail.
            let _ = total.merge(&sum);
        }
        let point = sum.point(start_s + seconds, seconds, self.percentile);
        if self.points.len() < SERIES_POINTS_MAX {
            self.points.push(point.clone());
        }
        Some(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;
    use crate::units::Nanos;

    fn part(index: usize, latencies: &[u64]) -> IntervalPart {
        let mut part = IntervalPart::new(false).unwrap();
        part.index = index;
        part.counters.add([(Counter::Transactions, latencies.len() as u64)]);
        for latency in latencies {
            part.service.record(Nanos(latency * 1000));
        }
        part
    }

    #[test]
    fn does_not_wait_for_parts_of_finished_workers() {
        let mut timeline = Timeline::new(2, 1.0, 95.0);
        timeline.add_last(&part(1, &[10])).unwrap();
        assert_eq!(timeline.add(&part(0, &[10])).unwrap(), [], "one part is missing");
        assert_eq!(timeline.add(&part(0, &[10])).unwrap().len(), 1);
        assert_eq!(timeline.add(&part(1, &[10])).unwrap()[0].transactions, 2);
        assert_eq!(timeline.add(&part(2, &[10])).unwrap()[0].transactions, 1);
    }

    #[test]
    fn completes_a_point_when_the_parts_of_all_workers_have_arrived() {
        let mut timeline = Timeline::new(2, 1.0, 95.0);
        assert_eq!(timeline.add(&part(0, &[10, 20])).unwrap(), []);
        assert_eq!(timeline.add(&part(1, &[10])).unwrap(), []);
        let points = timeline.add(&part(0, &[100])).unwrap();
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].t_s, points[0].transactions), (1.0, 3));
        // The median of all three, not the mean of two medians.
        assert!((points[0].p50_us.unwrap() - 20.0).abs() < 0.5);
        assert!((points[0].max_us.unwrap() - 100.0).abs() < 1.0);
    }

    #[test]
    fn an_interval_without_a_transaction_has_no_latency() {
        let mut timeline = Timeline::new(1, 0.5, 95.0);
        let points = timeline.add(&part(0, &[])).unwrap();
        assert_eq!(points[0].p50_us, None);
        assert_eq!(points[0].t_s, 0.5);
    }

    #[test]
    fn transactions_at_the_end_of_the_last_interval_belong_to_its_point() {
        let mut timeline = Timeline::new(1, 1.0, 95.0);
        timeline.add(&part(0, &[1, 2])).unwrap();
        timeline.add_last(&part(1, &[3])).unwrap();
        let TimeSeries { points, heatmap, .. } = timeline.finish(1.0);
        assert_eq!((points.len(), points[0].transactions, points[0].seconds), (1, 3, 1.0));
        let counts: Vec<u64> = heatmap.slots.iter().flat_map(|slot| slot.counts.clone()).collect();
        assert_eq!((heatmap.slots.len(), counts.iter().sum::<u64>()), (1, 3));
    }

    #[test]
    fn the_last_interval_ends_when_counting_ended() {
        let mut timeline = Timeline::new(2, 1.0, 95.0);
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        let TimeSeries { points, closed, .. } = timeline.finish(1.25);
        assert_eq!((points.len(), closed), (2, 1));
        assert_eq!((points[1].t_s, points[1].seconds), (1.25, 0.25));
    }
}
