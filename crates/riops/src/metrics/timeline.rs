//! The time series: the workers' parts of an interval, merged into one point once all parts have
//! arrived.
//!
//! Percentiles come from the merged histogram of the interval, never from averaged percentiles.

use std::collections::VecDeque;

use super::heatmap::Heatmap;
use super::interval::IntervalPart;
use crate::plan::{Plan, SERIES_POINTS_MAX, Schedule};
use crate::record::{Checkpoint, HeatmapRecord, HistogramError, Point};
use crate::units::format::truncated;

/// Minimum length of an interval, in seconds: rates over shorter intervals are meaningless.
const INTERVAL_MIN_S: f64 = 1e-6;

/// An interval waits this long for the part of a worker, in seconds: one that is stuck, or a loop in the server that
/// waits for a lock, must not stop the display and the thresholds, nor fill the memory.
const WAIT_S: f64 = 5.0;

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
    pub heatmap: HeatmapRecord,
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
    /// Sum of all closed intervals, if a breach of a threshold ends the run.
    total: Option<IntervalPart>,
    segment: Option<Segment>,
    /// Whether the points keep the histograms of their intervals, to be merged with those of other clients.
    keeps_histograms: bool,
}

/// The intervals since the last checkpoint.
#[derive(Debug)]
struct Segment {
    /// Number of intervals before each remaining checkpoint.
    checkpoints: VecDeque<usize>,
    start_s: f64,
    sum: IntervalPart,
}

impl Segment {
    /// Returns the checkpoint at `t_s`, and starts the next segment.
    fn end(&mut self, t_s: f64, percentile: f64) -> Box<Checkpoint> {
        let point = self.sum.point(t_s, t_s - self.start_s, percentile);
        let latency = self.sum.latencies().summary();
        self.sum.clear(0);
        self.start_s = t_s;
        Box::new(Checkpoint { point, latency })
    }
}

impl Timeline {
    /// Creates the time series of a plan, which expects one part per worker in every interval.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn new(workers: usize, plan: &Plan) -> Result<Self, HistogramError> {
        let sum = || IntervalPart::new(plan.schedule != Schedule::Closed);
        // The plan has checked that these are whole numbers.
        let intervals = |t_s: f64| truncated((t_s / plan.interval_s).round());
        let checkpoints: VecDeque<usize> = plan.checkpoints_s().map(intervals).collect();
        let segment = (!checkpoints.is_empty())
            .then(|| Ok(Segment { checkpoints, start_s: 0.0, sum: sum()? }));
        Ok(Self {
            workers,
            ended: Vec::new(),
            interval_s: plan.interval_s,
            percentile: plan.percentile,
            open: VecDeque::new(),
            closed: 0,
            points: Vec::new(),
            heatmap: Heatmap::new(plan.interval_s),
            total: plan.abort_on_threshold.then(sum).transpose()?,
            segment: segment.transpose()?,
            keeps_histograms: plan.share.is_some(),
        })
    }

    /// Returns the sum of the complete intervals and their length in seconds; only if a breach of a threshold ends the run.
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
        while let Some(open) = self.open.front() {
            let waits_s = (self.open.len() - 1) as f64 * self.interval_s;
            if open.parts < self.expected(self.closed) && waits_s <= WAIT_S {
                break;
            }
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
            return self.merge_late(part);
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

    /// Adds the part of an interval that is closed. Its transactions are counted where they belong; the percentiles of
    /// the point remain those of the parts that arrived in time.
    fn merge_late(&mut self, part: &IntervalPart) -> Result<(), HistogramError> {
        self.heatmap.add(part.index, part.latencies());
        let sums =
            self.total.iter_mut().chain(self.segment.as_mut().map(|segment| &mut segment.sum));
        for sum in sums {
            sum.merge(part)?;
        }
        if let Some(point) = self.points.get_mut(part.index) {
            point.count_part(&part.counters, &part.nodes);
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
                if let Some(segment) = &mut self.segment {
                    // All parts have the same bounds, so merging cannot fail.
                    let _ = segment.sum.merge(&open.sum);
                }
                // Transactions that ended exactly at the end of the measurement belong to the last
                // point.
                last.count_part(&open.sum.counters, &open.sum.nodes);
            }
        }
        if let Some((segment, last)) = self.segment.as_mut().zip(self.points.last_mut()) {
            last.checkpoint.get_or_insert_with(|| segment.end(end_s, self.percentile));
        }
        TimeSeries { points: self.points, closed, heatmap: self.heatmap.record }
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
        let mut point = sum.point(start_s + seconds, seconds, self.percentile);
        if self.keeps_histograms {
            point.histograms = sum.histograms();
        }
        if let Some(segment) = &mut self.segment {
            let _ = segment.sum.merge(&sum);
            if segment.checkpoints.front() == Some(&self.closed) {
                segment.checkpoints.pop_front();
                point.checkpoint = Some(segment.end(point.t_s, self.percentile));
            }
        }
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

    fn timeline(workers: usize, plan: Plan) -> Timeline {
        Timeline::new(workers, &Plan { interval_s: 1.0, ..plan }).unwrap()
    }

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
        let mut timeline = timeline(2, Plan::default());
        timeline.add_last(&part(1, &[10])).unwrap();
        assert_eq!(timeline.add(&part(0, &[10])).unwrap(), [], "one part is missing");
        assert_eq!(timeline.add(&part(0, &[10])).unwrap().len(), 1);
        assert_eq!(timeline.add(&part(1, &[10])).unwrap()[0].transactions, 2);
        assert_eq!(timeline.add(&part(2, &[10])).unwrap()[0].transactions, 1);
    }

    #[test]
    fn a_silent_worker_does_not_keep_the_intervals_open() {
        let mut timeline = timeline(2, Plan { abort_on_threshold: true, ..Plan::default() });
        let shown: Vec<_> =
            (0..100).flat_map(|index| timeline.add(&part(index, &[10])).unwrap()).collect();
        assert_eq!((shown.len(), timeline.open.len()), (94, 6));
        assert_eq!(timeline.total().unwrap().0.counters.get(Counter::Transactions), 94);
        // It has only been stuck. What it reports late is counted in its intervals.
        for index in 0..100 {
            timeline.add(&part(index, &[30])).unwrap();
        }
        assert_eq!(timeline.total().unwrap().0.counters.get(Counter::Transactions), 200);
        let TimeSeries { points, heatmap, .. } = timeline.finish(100.0);
        assert!(points.iter().all(|point| point.transactions == 2));
        let counts = heatmap.slots.iter().flat_map(|slot| slot.counts.clone());
        assert_eq!(counts.sum::<u64>(), 200);
    }

    #[test]
    fn completes_a_point_when_the_parts_of_all_workers_have_arrived() {
        let mut timeline = timeline(2, Plan::default());
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
        let mut timeline = Timeline::new(1, &Plan { interval_s: 0.5, ..Plan::default() }).unwrap();
        let points = timeline.add(&part(0, &[])).unwrap();
        assert_eq!(points[0].p50_us, None);
        assert_eq!(points[0].t_s, 0.5);
    }

    #[test]
    fn transactions_at_the_end_of_the_last_interval_belong_to_its_point() {
        let mut timeline = timeline(1, Plan::default());
        timeline.add(&part(0, &[1, 2])).unwrap();
        timeline.add_last(&part(1, &[3])).unwrap();
        let TimeSeries { points, heatmap, .. } = timeline.finish(1.0);
        assert_eq!((points.len(), points[0].transactions, points[0].seconds), (1, 3, 1.0));
        let counts: Vec<u64> = heatmap.slots.iter().flat_map(|slot| slot.counts.clone()).collect();
        assert_eq!((heatmap.slots.len(), counts.iter().sum::<u64>()), (1, 3));
    }

    #[test]
    fn checkpoints_sum_up_the_intervals_since_the_previous_one() {
        let checkpoints_s = vec![2.0];
        let plan = Plan { percentile: 50.0, checkpoints_s, ..Plan::default() };
        let mut timeline = timeline(1, plan);
        assert_eq!(timeline.add(&part(0, &[10])).unwrap()[0].checkpoint, None);
        let first = timeline.add(&part(1, &[20, 40])).unwrap().remove(0).checkpoint.unwrap();
        assert_eq!((first.point.t_s, first.point.seconds, first.point.transactions), (2.0, 2.0, 3));
        let latency = first.latency.unwrap();
        assert_eq!((latency.count, latency.max.round()), (3, 40.0));
        assert!((first.point.percentile_us.unwrap() - 20.0).abs() < 0.5);
        timeline.add_last(&part(2, &[7])).unwrap();
        let last = timeline.finish(2.5).points.pop().unwrap().checkpoint.unwrap();
        assert_eq!((last.point.t_s, last.point.seconds, last.point.transactions), (2.5, 0.5, 1));
    }

    #[test]
    fn the_last_interval_ends_when_counting_ended() {
        let mut timeline = timeline(2, Plan::default());
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        let TimeSeries { points, closed, .. } = timeline.finish(1.25);
        assert_eq!((points.len(), closed), (2, 1));
        assert_eq!((points[1].t_s, points[1].seconds), (1.25, 0.25));
    }
}
