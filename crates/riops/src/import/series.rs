//! The time series of a report: a point for each line of an interval, as many as a series can have.

use crate::record::Point;

/// Maximum number of points of a series: with more, each two become one.
pub(super) const SERIES_POINTS_MAX: usize = 100_000;

/// From this number of intervals on, the time between two lines is a gap: lines were cut out of the report. A busy tool
/// may print a line late.
const GAP_INTERVALS_MIN: f64 = 3.0;

/// The intervals of a report. A longer one than a series can have gets points of several intervals.
#[derive(Debug, Default)]
pub(super) struct Series {
    points: Vec<Point>,
    /// Number of intervals of a point, and number of intervals in the last point; a step of 0 is one interval.
    step: usize,
    in_last: usize,
    /// End and length of the last interval.
    last: Option<(f64, f64)>,
    pub(super) has_gaps: bool,
}

impl Series {
    /// Returns the end of the last interval.
    pub(super) fn end_s(&self) -> f64 {
        self.last.map_or(0.0, |(end_s, _)| end_s)
    }

    /// Returns the length of the interval that ends at `t_s`. After a gap, it is the length of the previous interval.
    pub(super) fn interval_length(&self, t_s: f64) -> f64 {
        match self.last {
            Some((end_s, seconds)) if t_s - end_s >= GAP_INTERVALS_MIN * seconds => seconds,
            Some((end_s, _)) => t_s - end_s,
            None => t_s,
        }
    }

    /// Returns the last point, if it ends at `t_s`.
    pub(super) fn at(&mut self, t_s: f64) -> Option<&mut Point> {
        self.points.last_mut().filter(|point| point.t_s == t_s)
    }

    pub(super) fn push(&mut self, point: Point) {
        let is_gap = |(end_s, _): (f64, f64)| {
            point.t_s - end_s > point.seconds * (1.0 + f64::EPSILON.sqrt())
        };
        self.has_gaps |= self.last.is_some_and(is_gap);
        self.last = Some((point.t_s, point.seconds));
        match self.points.last_mut() {
            Some(last) if self.in_last < self.step => {
                add(last, &point);
                self.in_last += 1;
                return;
            }
            _ => {}
        }
        if self.points.len() == SERIES_POINTS_MAX {
            let mut pairs = std::mem::take(&mut self.points).into_iter();
            while let Some(mut one) = pairs.next() {
                if let Some(other) = pairs.next() {
                    add(&mut one, &other);
                }
                self.points.push(one);
            }
            self.step = self.step.max(1) * 2;
        }
        self.points.push(point);
        self.in_last = 1;
    }

    pub(super) fn into_points(self) -> Vec<Point> {
        self.points
    }
}

/// Adds the interval that follows. Percentiles of parts cannot be added.
fn add(point: &mut Point, next: &Point) {
    let (one, other) = (point.transactions as f64, next.transactions as f64);
    let of_both = |a: f64, b: f64| (a * one + b * other) / (one + other);
    point.mean_us = match (point.mean_us, next.mean_us) {
        (Some(a), Some(b)) => Some(of_both(a, b)),
        (a, b) => a.or(b),
    };
    point.t_s = next.t_s;
    point.seconds += next.seconds;
    let sums = [
        (&mut point.transactions, next.transactions),
        (&mut point.errors, next.errors),
        (&mut point.failed, next.failed),
        (&mut point.skipped, next.skipped),
        (&mut point.retries, next.retries),
        (&mut point.reconnects, next.reconnects),
        (&mut point.queries.read, next.queries.read),
        (&mut point.queries.write, next.queries.write),
        (&mut point.queries.other, next.queries.other),
    ];
    for (sum, count) in sums {
        *sum = sum.saturating_add(count);
    }
    point.backlog = next.backlog;
    point.percentile_us = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_maximum_number_of_points_and_all_transactions() {
        let mut series = Series::default();
        let count = 3 * SERIES_POINTS_MAX as u64 + 1;
        for at in 1..=count {
            let seconds = series.interval_length(at as f64);
            let mean_us = Some(if at % 2 == 0 { 3.0 } else { 1.0 });
            series.push(Point {
                t_s: at as f64,
                seconds,
                transactions: 2,
                mean_us,
                ..Point::default()
            });
        }
        assert!(!series.has_gaps);
        let points = series.into_points();
        assert!(points.len() <= SERIES_POINTS_MAX, "{}", points.len());
        assert_eq!(points.iter().map(|point| point.transactions).sum::<u64>(), 2 * count);
        let seconds: f64 = points.iter().map(|point| point.seconds).sum();
        assert_eq!((seconds, points[0].mean_us), (count as f64, Some(2.0)));
    }
}
