//! Change points in a series of runs: the figure of each run, in the order of time.
//!
//! The method of Hunter (Fleming et al., "Hunter: Using change point detection to hunt for performance
//! regressions", ICPE 2023) and Apache Otava: E-divisive in overlapping windows proposes splits, Student's t-test
//! accepts them with a weak threshold, and the final step removes the weakest ones until all that remain are
//! significant and large enough.

use super::compare::{Direction, Outcome};
use super::energy::best_split;
use super::student::{moments, t_test};

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
}

impl Default for ChangeSettings {
    /// Window and p-value are the defaults of Hunter.
    fn default() -> Self {
        Self { window: 50, p_max: 0.001, change_min: 0.02, side_min: 3 }
    }
}

/// A change in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub index: usize,
    /// Mean from the last change, or the start, to this one.
    pub mean_before: f64,
    /// Mean from this change to the next one, or the end.
    pub mean_after: f64,
    /// The p-value of the t-test of these two means.
    pub p: f64,
}

impl ChangePoint {
    /// Returns the change as a share of the mean before: −0.05 is a fall by 5 %.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.mean_after / self.mean_before - 1.0
    }

    /// Whether the change is an improvement or a regression: [`Outcome::Faster`] or [`Outcome::Slower`].
    #[must_use]
    pub fn outcome(&self, direction: Direction) -> Outcome {
        Outcome::of_change(self.mean_after > self.mean_before, direction)
    }

    /// The larger one of the changes forward and backward: a fall by half is as large as a doubling.
    fn magnitude(&self) -> f64 {
        let backward = self.mean_before / self.mean_after - 1.0;
        self.change().abs().max(backward.abs())
    }
}

/// Returns the changes of the level of a series, in order. The p-values are those of the t-test at the best split:
/// they are smaller than those of a split that was known before.
#[must_use]
pub fn change_points(values: &[f64], settings: &ChangeSettings) -> Vec<ChangePoint> {
    let mut splits = proposed(values, settings);
    loop {
        let found = described(values, &splits);
        // The least significant one, then the smallest one.
        let least = found
            .iter()
            .filter(|point| point.p > settings.p_max)
            .max_by(|one, other| one.p.total_cmp(&other.p))
            .or_else(|| {
                let small = found.iter().filter(|point| point.magnitude() < settings.change_min);
                small.min_by(|one, other| one.magnitude().total_cmp(&other.magnitude()))
            });
        match least.map(|point| point.index) {
            // The means and p-values of its neighbors change.
            Some(index) => splits.retain(|split| *split != index),
            None => return found,
        }
    }
}

/// Returns the splits that are significant with the weak threshold, from overlapping windows: a window bounds the
/// cost, and many changes in a long series do not hide each other.
fn proposed(values: &[f64], settings: &ChangeSettings) -> Vec<usize> {
    let window = settings.window.max(2);
    let mut splits = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + window).min(values.len());
        let found = divide(values.get(start..end).unwrap_or_default(), settings);
        splits.extend(found.iter().map(|split| start + split));
        start = found.last().map_or(0, |last| start + last).max(start + window / 2);
    }
    splits.sort_unstable();
    splits.dedup();
    splits
}

/// Divides a window: the best split of all its parts is accepted as long as it is significant.
fn divide(values: &[f64], settings: &ChangeSettings) -> Vec<usize> {
    let mut splits: Vec<usize> = Vec::new();
    loop {
        let mut best: Option<(f64, usize, f64)> = None;
        for (start, end) in parts(values.len(), &splits) {
            let part = values.get(start..end).unwrap_or_default();
            if let Some((split, distance)) = best_split(part, settings.side_min)
                && best.is_none_or(|(largest, ..)| distance > largest)
            {
                let (left, right) = part.split_at(split);
                best = Some((distance, start + split, t_test(left, right)));
            }
        }
        match best {
            Some((_, split, p)) if p <= (WEAK * settings.p_max).min(1.0) => splits.push(split),
            _ => return splits,
        }
        splits.sort_unstable();
    }
}

/// Returns the parts of a series between sorted splits.
fn parts(length: usize, splits: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(splits.iter().copied());
    starts.zip(splits.iter().copied().chain(std::iter::once(length)))
}

/// Returns the change at each split, with the means up to the neighboring splits.
fn described(values: &[f64], splits: &[usize]) -> Vec<ChangePoint> {
    let parts: Vec<&[f64]> = parts(values.len(), splits)
        .map(|(start, end)| values.get(start..end).unwrap_or_default())
        .collect();
    let sides = parts.iter().zip(parts.iter().skip(1));
    let point = |(index, (left, right)): (&usize, (&&[f64], &&[f64]))| ChangePoint {
        index: *index,
        mean_before: moments(left).0,
        mean_after: moments(right).0,
        p: t_test(left, right),
    };
    splits.iter().zip(sides).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around a level, with a pattern of ±1 %.
    fn level(level: f64, count: usize) -> Vec<f64> {
        let deviation = |at: usize| [0.0, 0.01, -0.01, 0.005, -0.005, 0.0, -0.01, 0.01][at % 8];
        (0..count).map(|at| level * (1.0 + deviation(at))).collect()
    }

    fn indexes(values: &[f64]) -> Vec<usize> {
        let found = change_points(values, &ChangeSettings::default());
        found.iter().map(|point| point.index).collect()
    }

    #[test]
    fn describes_a_regression() {
        let series = [level(100.0, 16), level(90.0, 16)].concat();
        let found = change_points(&series, &ChangeSettings::default());
        assert_eq!(found.len(), 1);
        let point = found[0];
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
            level(120.0, 5),
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
}
