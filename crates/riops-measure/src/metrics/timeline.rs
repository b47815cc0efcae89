//! The time series: the workers' parts of an interval, merged into one point once all parts have
//! arrived.
//!
//! Percentiles come from the merged histogram of the interval, never from averaged percentiles.

use std::collections::VecDeque;

use super::heatmap::Heatmap;
use super::interval::{IntervalPart, count_part};
use riops_model::plan::{Plan, PointLength, Schedule};
use riops_model::record::{Checkpoint, HeatmapRecord, HistogramError, Point};
use riops_model::units::format::truncated;

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
    /// The points, which cover several intervals of a long run.
    pub points: Vec<Point>,
    /// The intervals that became complete only at the end.
    pub last: Vec<Point>,
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
    open: VecDeque<Open>,
    closed: usize,
    stored: Stored,
    heatmap: Heatmap,
    /// Sum of all closed intervals, if a breach of a threshold ends the run.
    total: Option<IntervalPart>,
    segment: Option<Segment>,
}

/// The points of the series.
#[derive(Debug)]
struct Stored {
    points: Vec<Point>,
    length: PointLength,
    percentile: f64,
    /// Whether the points keep their histograms, to be merged with the series of other clients.
    keeps_histograms: bool,
    /// The intervals that the next point covers: their sum, number and range.
    sum: IntervalPart,
    intervals: usize,
    range: Point,
}

impl Stored {
    fn new(plan: &Plan) -> Result<Self, HistogramError> {
        Ok(Self {
            points: Vec::new(),
            length: plan.point_length(),
            percentile: plan.percentile,
            keeps_histograms: plan.share.is_some(),
            sum: IntervalPart::new(plan.schedule != Schedule::Closed)?,
            intervals: 0,
            range: Point::default(),
        })
    }

    /// Returns the point of one or several intervals.
    fn point(&self, sum: &IntervalPart, t_s: f64, seconds: f64) -> Point {
        let histograms = self.keeps_histograms.then(|| sum.histograms()).flatten();
        Point { histograms, ..sum.point(t_s, seconds, self.percentile) }
    }

    /// Adds an interval with its point.
    fn add(&mut self, interval: &IntervalPart, point: &Point) {
        let length = self.length.after(self.points.len());
        if length == 1 {
            self.points.push(point.clone());
            return;
        }
        // All parts have the same bounds, so merging cannot fail.
        let _ = self.sum.merge(interval);
        // These are levels at the end, not counts.
        (self.sum.backlog, self.sum.busy) = (interval.backlog, interval.busy);
        self.intervals += 1;
        self.range.cover(point);
        self.range.t_s = point.t_s;
        self.range.checkpoint.clone_from(&point.checkpoint);
        if self.intervals >= length || point.checkpoint.is_some() {
            self.end();
        }
    }

    /// Ends a point that covers at least one interval.
    fn end(&mut self) {
        if self.intervals == 0 {
            return;
        }
        let start_s = self.points.last().map_or(0.0, |last| last.t_s);
        let range = std::mem::take(&mut self.range);
        let point = self.point(&self.sum, range.t_s, range.t_s - start_s);
        self.points.push(Point {
            transactions_per_s_range: range.transactions_per_s_range,
            checkpoint: range.checkpoint,
            ..point
        });
        self.sum.clear(0);
        self.intervals = 0;
    }

    /// Adds the counts of an interval that is complete. The percentiles of a complete point do not change.
    fn add_late(&mut self, part: &IntervalPart, middle_s: f64) {
        let at = self.points.partition_point(|point| point.t_s < middle_s);
        if let Some(point) = self.points.get_mut(at) {
            return count_part(point, &part.counters, &part.nodes);
        }
        let (backlog, busy) = (self.sum.backlog, self.sum.busy);
        // All parts have the same bounds, so merging cannot fail.
        let _ = self.sum.merge(part);
        (self.sum.backlog, self.sum.busy) = (backlog, busy);
    }
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
            open: VecDeque::new(),
            closed: 0,
            stored: Stored::new(plan)?,
            heatmap: Heatmap::new(plan.interval_s),
            total: plan.abort_on_threshold.then(sum).transpose()?,
            segment: segment.transpose()?,
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

    /// Adds a part of an interval that is closed. Its transactions are counted in this interval; the percentiles of the
    /// point cover only the parts that arrived in time.
    fn merge_late(&mut self, part: &IntervalPart) -> Result<(), HistogramError> {
        self.heatmap.add(part.index, part.latencies());
        let sums =
            self.total.iter_mut().chain(self.segment.as_mut().map(|segment| &mut segment.sum));
        for sum in sums {
            sum.merge(part)?;
        }
        self.stored.add_late(part, (part.index as f64 + 0.5) * self.interval_s);
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
        let mut last = Vec::new();
        while !self.open.is_empty() {
            let start_s = self.closed as f64 * self.interval_s;
            let seconds = (end_s - start_s).min(self.interval_s);
            if seconds > INTERVAL_MIN_S {
                last.extend(self.close(seconds));
            } else if let Some(open) = self.open.pop_front() {
                self.heatmap.add(self.closed.saturating_sub(1), open.sum.latencies());
                if let Some(segment) = &mut self.segment {
                    // All parts have the same bounds, so merging cannot fail.
                    let _ = segment.sum.merge(&open.sum);
                }
                // Transactions that ended exactly at the end of the measurement belong to the last
                // point.
                self.stored.add_late(&open.sum, (self.closed as f64 - 0.5) * self.interval_s);
                if let Some(last) = last.last_mut() {
                    count_part(last, &open.sum.counters, &open.sum.nodes);
                }
            }
        }
        self.stored.end();
        let percentile = self.stored.percentile;
        if let Some((segment, last)) = self.segment.as_mut().zip(self.stored.points.last_mut()) {
            last.checkpoint.get_or_insert_with(|| segment.end(end_s, percentile));
        }
        TimeSeries { points: self.stored.points, last, heatmap: self.heatmap.record }
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
        let mut point = self.stored.point(&sum, start_s + seconds, seconds);
        if let Some(segment) = &mut self.segment {
            let _ = segment.sum.merge(&sum);
            if segment.checkpoints.front() == Some(&self.closed) {
                segment.checkpoints.pop_front();
                point.checkpoint = Some(segment.end(point.t_s, self.stored.percentile));
            }
        }
        self.stored.add(&sum, &point);
        Some(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;
    use riops_model::plan::Stop;
    use riops_model::units::Nanos;

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
        // The worker was only stuck. Its late reports are counted in their intervals.
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
    fn the_points_of_a_long_run_cover_several_intervals() {
        let plan = Plan { stop: Stop::DurationS(12_000.0), ..Plan::default() };
        let mut timeline = timeline(1, plan);
        for index in 0..12_000 {
            // The interval 4,000 has a pause and a slow transaction.
            let latencies: &[u64] = if index == 4_000 { &[90_000] } else { &[10, 20, 30] };
            let shown = timeline.add(&part(index, latencies)).unwrap();
            assert_eq!((shown.len(), shown[0].seconds), (1, 1.0));
        }
        // It belongs to the second of the points that cover three.
        timeline.add(&part(5, &[10])).unwrap();
        let TimeSeries { points, last, .. } = timeline.finish(12_000.0);
        assert_eq!((points.len(), last.len()), (4_000, 0));
        assert!(points.iter().all(|point| point.seconds == 3.0));
        let slow = &points[1_333];
        assert_eq!((slow.t_s, slow.transactions), (4_002.0, 7));
        assert_eq!(slow.transactions_per_s_range, Some((1.0, 3.0)));
        assert!((slow.max_us.unwrap() / 90_000.0 - 1.0).abs() < 0.01);
        // The median of all seven, not a mean of medians.
        assert!((slow.p50_us.unwrap() - 20.0).abs() < 0.5);
        assert_eq!((points[1].transactions, points[2].transactions), (10, 9));
    }

    #[test]
    fn a_late_part_of_a_point_in_progress_counts_with_its_latencies() {
        let plan = Plan { stop: Stop::DurationS(12_000.0), ..Plan::default() };
        let mut timeline = timeline(1, plan);
        for index in 0..4 {
            timeline.add(&part(index, &[10])).unwrap();
        }
        let mut late = part(3, &[50]);
        late.nodes = vec![1];
        timeline.add(&late).unwrap();
        let points = timeline.finish(4.0).points;
        let [_, last] = &points[..] else { panic!("{points:?}") };
        assert_eq!((last.transactions, &last.nodes[..]), (2, &[1][..]));
        assert!((last.max_us.unwrap() - 50.0).abs() < 0.5, "{last:?}");
    }

    #[test]
    fn a_checkpoint_ends_a_point() {
        let (stop, checkpoints_s) = (Stop::DurationS(12_000.0), vec![4.0]);
        let mut timeline = timeline(1, Plan { stop, checkpoints_s, ..Plan::default() });
        for index in 0..8 {
            timeline.add(&part(index, &[10])).unwrap();
        }
        let points = timeline.finish(8.0).points;
        let ends: Vec<_> =
            points.iter().map(|point| (point.t_s, point.checkpoint.is_some())).collect();
        assert_eq!(ends, [(3.0, false), (4.0, true), (7.0, false), (8.0, true)]);
    }

    #[test]
    fn the_last_interval_ends_when_counting_ended() {
        let mut timeline = timeline(2, Plan::default());
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add(&part(0, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        timeline.add_last(&part(1, &[1])).unwrap();
        let TimeSeries { points, last, .. } = timeline.finish(1.25);
        assert_eq!((points.len(), last.len()), (2, 1));
        assert_eq!((points[1].t_s, points[1].seconds), (1.25, 0.25));
    }
}
