//! How many intervals of a long run one point of a time series covers: a run of a week has few enough points to be stored and drawn.

/// A series with more points than this covers several intervals with each.
const POINTS: usize = 4_000;
/// Each time this number of points is added, they cover twice as many intervals, unless the length of the run is known before.
const POINTS_OF_A_LENGTH: usize = POINTS / 2;

/// The number of intervals that the points of a series cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointLength(usize);

impl Default for PointLength {
    fn default() -> Self {
        Self(1)
    }
}

impl PointLength {
    /// Returns the length of the points of a series that has this number of intervals, as far as it is known.
    pub(super) fn for_intervals(intervals: Option<usize>) -> Self {
        Self(intervals.unwrap_or(1).div_ceil(POINTS).max(1))
    }

    /// Returns the number of intervals that the next point covers, after this number of points.
    pub fn after(self, points: usize) -> usize {
        let doublings = match points.checked_sub(POINTS) {
            Some(more) => 1 + more / POINTS_OF_A_LENGTH,
            None => 0,
        };
        let factor = u32::try_from(doublings).ok().and_then(|by| 1_usize.checked_shl(by));
        self.0.saturating_mul(factor.unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The points of a run of this number of intervals.
    fn points(length: PointLength, intervals: usize) -> usize {
        let (mut points, mut covered) = (0, 0);
        while covered < intervals {
            covered += length.after(points);
            points += 1;
        }
        points
    }

    #[test]
    fn a_week_has_a_few_thousand_points() {
        let week = 7 * 86_400;
        assert_eq!(points(PointLength::for_intervals(Some(week)), week), 3_979);
        // By count, the length is not known before.
        assert_eq!(points(PointLength::for_intervals(None), week), 18_363);
        assert_eq!(points(PointLength::for_intervals(Some(4_000)), 4_000), 4_000);
        assert_eq!(points(PointLength::for_intervals(None), 4_000), 4_000);
        assert!(PointLength::default().after(usize::MAX) > week);
    }
}
