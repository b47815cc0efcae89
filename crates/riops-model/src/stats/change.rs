//! Change points in a series of runs: the figure of each run, in the order of time.
//!
//! The method of Hunter (Fleming et al., "Hunter: Using change point detection to hunt for performance
//! regressions", ICPE 2023) and Apache Otava: E-divisive in overlapping windows proposes splits, Student's t-test
//! accepts them with a weak threshold, and the final step removes the weakest ones until all that remain are
//! significant and large enough.

use std::ops::Range;

use super::compare::{Direction, Outcome};
use super::levels::{self, Noise, Place, correlation, place, slice, without_outliers};
use super::summary::{median, moments, t_test};

/// Factor of the threshold for proposed change points, as in Hunter.
const WEAK: f64 = 10.0;

/// Settings of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeSettings {
    /// Number of values that are examined together, at least 2.
    pub window: usize,
    /// Maximum p-value of the t-test.
    pub p_max: f64,
    /// Smallest relevant change, as a share: 0.02 is 2 %.
    pub change_min: f64,
    /// Minimum number of values on each side of a change: fewer are outliers.
    pub side_min: usize,
    /// Noise of the values before these, if the level of the first ones was accepted: [`ChangeSettings::ACCEPTED_MIN`] values on
    /// each side then suffice for a change among the first ones.
    pub accepted: Option<Noise>,
}

impl ChangeSettings {
    /// Values on each side of a change by default.
    pub const SIDE_MIN: usize = levels::SIDE_MIN;
    /// Values on each side of a change with the noise of earlier values.
    pub const ACCEPTED_MIN: usize = 3;
}

impl Default for ChangeSettings {
    /// The window is the default of Hunter. Its p-value of 0.001 is too large for a series that is examined every night:
    /// with these values, at most 5 % of unchanged series have a change on any of 100 nights, also if neighboring values are
    /// correlated by 0.5 (see `simulations`).
    fn default() -> Self {
        let (p_max, change_min) = (0.000_04, 0.02);
        Self { window: 50, p_max, change_min, side_min: Self::SIDE_MIN, accepted: None }
    }
}

/// A change in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change: the most probable one.
    pub index: usize,
    /// The first and the last index that it may have, with a probability of at least 95%.
    pub range: (usize, usize),
    /// Mean from the last change, or the start, to this one.
    pub mean_before: f64,
    /// Mean from this change to the next one, or the end.
    pub mean_after: f64,
    /// The p-value of the t-test of these two means.
    pub p: f64,
}

impl ChangePoint {
    /// Returns the change as a share of the mean before: −0.05 is a fall by 5 %.
    pub fn change(&self) -> f64 {
        self.mean_after / self.mean_before - 1.0
    }

    /// Whether the change is an improvement or a regression: [`Outcome::Faster`] or [`Outcome::Slower`].
    pub fn outcome(&self, direction: Direction) -> Outcome {
        Outcome::of_change(self.mean_after > self.mean_before, direction)
    }

    /// Returns the larger of the forward and the backward change: a fall by half is as large as a doubling.
    fn magnitude(&self) -> f64 {
        let backward = self.mean_before / self.mean_after - 1.0;
        self.change().abs().max(backward.abs())
    }
}

/// Returns the changes of the level of a series, in order. The p-values belong to the t-test at the best split, so
/// they are smaller than for a split that was known before.
pub fn change_points(values: &[f64], settings: &ChangeSettings) -> Vec<ChangePoint> {
    let early = settings.accepted.and_then(|noise| early_change(values, &noise, settings));
    let Some(early) = early else {
        return significant(values, settings);
    };
    let start = early.index;
    let later = significant(slice(values, &(start..values.len())), settings);
    let shifted = later.into_iter().map(|point| ChangePoint {
        index: start + point.index,
        range: (start + point.range.0, start + point.range.1),
        ..point
    });
    let mut points = vec![early];
    points.extend(shifted);
    if let [early, next, ..] = points.as_mut_slice() {
        early.mean_after = next.mean_before;
    }
    points
}

/// Maximum p-value of a change among the first values of an accepted level: few splits are tested, on few nights.
const EARLY_P_MAX: f64 = 0.0001;
/// Number of standard deviations from the accepted level to which outliers are moved: two of three slow values are not a change.
const REACH: f64 = 5.0;

/// Returns how far values may be from the accepted level: [`REACH`] standard deviations, or as far as at least three of the later
/// values and at least half of them are.
fn reach(level: f64, later: &[f64], deviation: f64) -> f64 {
    let mut deviations: Vec<f64> = later.iter().map(|value| (value - level).abs()).collect();
    deviations.sort_by(|one, other| other.total_cmp(one));
    let shared = deviations.get((later.len() / 2).max(2)).copied().unwrap_or_default();
    shared.max(REACH * deviation)
}

/// Returns the change among the first values of an accepted level. Later values do not take it back: it is searched in as many
/// values as are too few for a change without the noise of earlier ones.
fn early_change(values: &[f64], noise: &Noise, settings: &ChangeSettings) -> Option<ChangePoint> {
    let first = values.get(..values.len().min(2 * settings.side_min - 1))?;
    let side = ChangeSettings::ACCEPTED_MIN;
    let moved = |split: usize| -> Vec<f64> {
        let (accepted, later) = first.split_at(split);
        let level = median(accepted);
        let reach = reach(level, later, noise.deviation() * level.abs());
        first.iter().map(|value| value.clamp(level - reach, level + reach)).collect()
    };
    let tested = (side..=first.len().saturating_sub(side)).map(|split| {
        let usual = moved(split);
        let (left, right) = usual.split_at(split);
        (noise.p(left, right), usual)
    });
    let (p, usual) = tested.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let place = place(&usual)?;
    let [mean_before, mean_after] =
        [0..place.index, place.index..values.len()].map(|part| moments(slice(values, &part)).0);
    let (index, range) = (place.index, place.range);
    let point = ChangePoint { index, range, mean_before, mean_after, p };
    (p <= EARLY_P_MAX && point.magnitude() >= settings.change_min).then_some(point)
}

/// Returns the changes that the values show without the noise of others.
fn significant(values: &[f64], settings: &ChangeSettings) -> Vec<ChangePoint> {
    let usual = without_outliers(values);
    let mut splits = placed(&usual, &proposed(&usual, settings), settings);
    loop {
        let points = described(values, &usual, &splits);
        // The least significant one, then the smallest one.
        let least = points
            .iter()
            .filter(|point| point.p > settings.p_max)
            .max_by(|one, other| one.p.total_cmp(&other.p))
            .or_else(|| {
                let small = points.iter().filter(|point| point.magnitude() < settings.change_min);
                small.min_by(|one, other| one.magnitude().total_cmp(&other.magnitude()))
            });
        match least.map(|point| point.index) {
            // The means and p-values of its neighbors change.
            Some(index) => splits.retain(|split| *split != index),
            None => return dated(values, &usual, &splits),
        }
    }
}

/// Returns the change at each split, with its most probable place between its neighbors. The minimum number of values on a side
/// is for finding a change, not for its date: of the three newest values that are lower, the first is the change.
fn dated(values: &[f64], usual: &[f64], splits: &[usize]) -> Vec<ChangePoint> {
    let places = places(usual, splits);
    let indexes: Vec<usize> = places.iter().map(|place| place.index).collect();
    let points = described(values, usual, &indexes).into_iter();
    points.zip(places).map(|(point, place)| ChangePoint { range: place.range, ..point }).collect()
}

/// Returns the place of each split, which may be nearer to its neighbors than the minimum number of values.
fn places(usual: &[f64], splits: &[usize]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (position, split) in splits.iter().enumerate() {
        let start = places.last().map_or(0, |place| place.index);
        let end = splits.get(position + 1).copied().unwrap_or(usual.len());
        let place = place(slice(usual, &(start..end)));
        places.push(place.map_or(
            Place { index: *split, range: (*split, *split) },
            |Place { index, range }| Place {
                index: start + index,
                range: (start + range.0, start + range.1),
            },
        ));
    }
    places
}

/// Returns the splits that are significant with the weak threshold, from overlapping windows: a window bounds the
/// cost, and many changes in a long series do not hide each other.
fn proposed(values: &[f64], settings: &ChangeSettings) -> Vec<usize> {
    let window = settings.window.max(2);
    let mut splits = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + window).min(values.len());
        let in_window = divide(values.get(start..end).unwrap_or_default(), settings);
        splits.extend(in_window.iter().map(|split| start + split));
        start = in_window.last().map_or(0, |last| start + last).max(start + window / 2);
    }
    splits.sort_unstable();
    splits.dedup();
    splits
}

/// Moves each split to its best place between its neighbors: one near the end of a window may have been as close to its place
/// as the minimum number of values permits.
fn placed(values: &[f64], splits: &[usize], settings: &ChangeSettings) -> Vec<usize> {
    let mut placed = Vec::new();
    for (position, split) in splits.iter().enumerate() {
        let before = placed.last().copied().unwrap_or(0).max(split.saturating_sub(settings.window));
        let next = splits.get(position + 1).copied().unwrap_or(values.len());
        let part = values.get(before..next.min(split + settings.window)).unwrap_or_default();
        let best = best_split(part, settings.side_min);
        placed.push(best.map_or(*split, |(best, _)| before + best));
    }
    placed
}

/// Divides a window: the best split of all its parts is accepted as long as it is significant.
fn divide(values: &[f64], settings: &ChangeSettings) -> Vec<usize> {
    let mut splits: Vec<usize> = Vec::new();
    loop {
        let mut best: Option<(f64, usize, f64)> = None;
        for range in levels::parts(values.len(), &splits) {
            let start = range.start;
            let part = slice(values, &range);
            if let Some((split, distance)) = best_split(part, settings.side_min)
                && best.is_none_or(|(largest, ..)| distance > largest)
            {
                let (left, right) = part.split_at(split);
                best = Some((distance, start + split, t_test(left, right, 0.0)));
            }
        }
        match best {
            Some((_, split, p)) if p <= (WEAK * settings.p_max).min(1.0) => splits.push(split),
            _ => return splits,
        }
        splits.sort_unstable();
    }
}

/// Returns the change at each split, with the means up to the neighboring splits, and the p-value without outliers.
fn described(values: &[f64], usual: &[f64], splits: &[usize]) -> Vec<ChangePoint> {
    let parts: Vec<Range<usize>> = levels::parts(values.len(), splits).collect();
    let mean = |part: &Range<usize>| moments(slice(values, part)).0;
    // A part that contains a step would look correlated.
    let indexes: Vec<usize> = places(usual, splits).iter().map(|place| place.index).collect();
    let levels: Vec<Range<usize>> = levels::parts(values.len(), &indexes).collect();
    let correlation = correlation(usual, &levels);
    let sides = parts.iter().zip(parts.iter().skip(1));
    splits
        .iter()
        .zip(sides)
        .map(|(index, (left, right))| ChangePoint {
            index: *index,
            range: (*index, *index),
            mean_before: mean(left),
            mean_after: mean(right),
            p: t_test(slice(usual, left), slice(usual, right), correlation),
        })
        .collect()
}

/// E-divisive: the split of a series at which the distributions of the two sides differ most, by their energy distance
/// (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", JASA 109 (505),
/// 2014, equations 5 to 7, with exponent 1).
///
/// Returns the index of the first value after the best split and its scaled energy distance. Each side has at least
/// `side_min` values. Returns `None` for a series that is too short.
///
/// The right side ends anywhere after the split, so that a second change further on does not hide the first one.
pub(super) fn best_split(values: &[f64], side_min: usize) -> Option<(usize, f64)> {
    let side_min = side_min.max(1);
    let distances = Distances::new(values);
    let mut best: Option<(usize, f64)> = None;
    let mut within_left = 0.0;
    for split in 1..values.len() {
        // Distances between the values before the split.
        within_left += distances.to_first(split - 1, split - 1);
        let (mut within_right, mut between) = (0.0, 0.0);
        for end in split + 1..=values.len() {
            let to_left = distances.to_first(end - 1, split);
            between += to_left;
            within_right += distances.to_first(end - 1, end - 1) - to_left;
            if split < side_min || end - split < side_min {
                continue;
            }
            let (left, right) = (split as f64, (end - split) as f64);
            let energy = 2.0 * between / (left * right)
                - mean_of_pairs(within_left, left)
                - mean_of_pairs(within_right, right);
            let scaled = left * right / (left + right) * energy;
            if best.is_none_or(|(_, largest)| scaled > largest) {
                best = Some((split, scaled));
            }
        }
    }
    best
}

/// Returns the mean distance of all pairs of `count` values; 0 for a single value.
fn mean_of_pairs(sum: f64, count: f64) -> f64 {
    if count < 2.0 { 0.0 } else { 2.0 * sum / (count * (count - 1.0)) }
}

/// Sums of the distances of each value to the first values of the series.
struct Distances {
    sums: Vec<f64>,
    stride: usize,
}

impl Distances {
    fn new(values: &[f64]) -> Self {
        let mut sums = Vec::with_capacity(values.len() * (values.len() + 1));
        for value in values {
            let mut sum = 0.0;
            sums.push(sum);
            for other in values {
                sum += (value - other).abs();
                sums.push(sum);
            }
        }
        Self { sums, stride: values.len() + 1 }
    }

    /// Returns the sum of the distances of the value at `index` to the first `count` values.
    fn to_first(&self, index: usize, count: usize) -> f64 {
        self.sums.get(index * self.stride + count).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values around a level, with a pattern of ±1 %.
    fn level(level: f64, count: usize) -> Vec<f64> {
        let deviation = |at: usize| [0.0, 0.01, -0.01, 0.005, -0.005, 0.0, -0.01, 0.01][at % 8];
        (0..count).map(|at| level * (1.0 + deviation(at))).collect()
    }

    fn indexes(values: &[f64]) -> Vec<usize> {
        let points = change_points(values, &ChangeSettings::default());
        points.iter().map(|point| point.index).collect()
    }

    #[test]
    fn describes_a_regression() {
        let series = [level(100.0, 16), level(90.0, 16)].concat();
        let points = change_points(&series, &ChangeSettings::default());
        assert_eq!(points.len(), 1);
        let point = points[0];
        assert_eq!(point.index, 16);
        assert!((point.mean_before - 100.0).abs() < 1e-9 && (point.mean_after - 90.0).abs() < 1e-9);
        assert!((point.change() + 0.1).abs() < 1e-9 && point.p < 1e-9, "{point:?}");
        assert_eq!(point.outcome(Direction::HigherIsBetter), Outcome::Slower);
        assert_eq!(point.outcome(Direction::LowerIsBetter), Outcome::Faster);
    }

    #[test]
    fn finds_several_changes_in_a_long_series() {
        let series = [
            level(100.0, 40),
            level(110.0, 40),
            level(95.0, 40),
            level(100.0, 120),
            level(120.0, 12),
        ];
        assert_eq!(indexes(&series.concat()), [40, 80, 120, 240]);
    }

    #[test]
    fn small_changes_and_single_outliers_are_no_changes() {
        assert!(indexes(&[level(100.0, 40), level(101.0, 40)].concat()).is_empty());
        let mut outlier = level(100.0, 40);
        outlier[20] = 60.0;
        assert!(indexes(&outlier).is_empty());
        outlier[39] = 60.0;
        assert!(indexes(&outlier).is_empty());
    }

    #[test]
    fn short_and_constant_series_have_no_changes() {
        assert!(indexes(&[]).is_empty());
        assert!(indexes(&[1.0]).is_empty());
        assert!(indexes(&[1.0, 2.0, 1.0, 2.0, 1.0]).is_empty());
        assert!(indexes(&[0.0; 30]).is_empty());
        assert!(indexes(&[5.0; 120]).is_empty());
    }

    /// The definition, without incremental sums.
    fn by_definition(values: &[f64], side_min: usize) -> f64 {
        let mean = |left: &[f64], right: &[f64]| {
            let pairs = left.iter().flat_map(|one| right.iter().map(move |two| (one - two).abs()));
            pairs.sum::<f64>()
        };
        let mut largest = f64::NEG_INFINITY;
        for split in side_min..values.len() {
            for end in split + side_min..=values.len() {
                let (left, right) = (&values[..split], &values[split..end]);
                let (n, m) = (left.len() as f64, right.len() as f64);
                let own = |side: &[f64], n: f64| mean(side, side) / (n * (n - 1.0)).max(1.0);
                let energy = 2.0 * mean(left, right) / (n * m) - own(left, n) - own(right, m);
                largest = largest.max(n * m / (n + m) * energy);
            }
        }
        largest
    }

    proptest! {
        #[test]
        fn incremental_sums_equal_the_definition(
            values in prop::collection::vec(0.0f64..100.0, 6..20),
            side_min in 1usize..4,
        ) {
            let (_, statistic) = best_split(&values, side_min).unwrap();
            prop_assert!((statistic - by_definition(&values, side_min)).abs() < 1e-6);
        }
    }

    #[test]
    fn finds_the_step() {
        let values = [1.0, 1.1, 0.9, 1.0, 5.0, 5.1, 4.9, 5.0, 5.1];
        assert_eq!(best_split(&values, 2).unwrap().0, 4);
    }

    #[test]
    fn a_short_series_has_no_split() {
        assert_eq!(best_split(&[1.0, 2.0, 3.0], 2), None);
        assert_eq!(best_split(&[], 1), None);
    }
}
