//! The levels of a series between its changes: where a level changes, and the noise around them.

use std::ops::Range;

use super::summary::{median, moments, p_of_means};

/// Values on each side of a change by default: fewer are outliers.
pub(super) const SIDE_MIN: usize = 6;

/// Probability with which the place of a change is in its range.
const RANGE: f64 = 0.95;

/// Where the mean of a series changes.
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) range: (usize, usize),
}

/// Returns the most probable place of the one change of the mean of normally distributed values, and the shortest range with
/// 95% of the probability (Smith, "A Bayesian approach to inference about a change-point in a sequence of random variables",
/// Biometrika 62, 1975, with all places equally probable before).
pub(super) fn place(values: &[f64]) -> Option<Place> {
    let squares = |split: usize| {
        let (left, right) = values.split_at(split);
        moments(left).1 + moments(right).1
    };
    let all: Vec<(usize, f64)> = (1..values.len()).map(|split| (split, squares(split))).collect();
    let least = all.iter().map(|(_, squares)| *squares).min_by(f64::total_cmp)?;
    let degrees = values.len().saturating_sub(2) as f64;
    let weight = |squares: f64| {
        if squares <= least { 1.0 } else { (least / squares).powf(degrees / 2.0) }
    };
    let mut weights: Vec<(usize, f64)> =
        all.into_iter().map(|(split, squares)| (split, weight(squares))).collect();
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    weights.sort_by(|one, other| other.1.total_cmp(&one.1));
    let index = weights.first()?.0;
    let (mut range, mut covered) = ((index, index), 0.0);
    for (split, weight) in weights {
        if covered >= RANGE * sum {
            break;
        }
        covered += weight;
        range = (range.0.min(split), range.1.max(split));
    }
    Some(Place { index, range })
}

/// Number of neighboring values whose median is the level at a value.
const NEIGHBORS: usize = 11;
/// An outlier is at least this number of standard deviations away from the level.
const OUTLIER: f64 = 3.0;
/// A single value that is at least this number of them away counts as missing.
const GROSS_OUTLIER: f64 = 5.0;

/// Returns the series with outliers moved towards the median of their neighbors (a running median smooths without moving
/// a shift; Tukey, "Exploratory Data Analysis", 1977): two slow nights of three are not a change. A gross outlier between usual
/// values is replaced by the median.
pub(super) fn without_outliers(values: &[f64]) -> Vec<f64> {
    let level = |at: usize| {
        let start = at.saturating_sub(NEIGHBORS / 2).min(values.len().saturating_sub(NEIGHBORS));
        let end = (start + NEIGHBORS).min(values.len());
        median(values.get(start..end).unwrap_or_default())
    };
    let levels: Vec<f64> = (0..values.len()).map(level).collect();
    let deviations: Vec<f64> =
        values.iter().zip(&levels).map(|(value, level)| (value - level).abs()).collect();
    // The median absolute deviation as a standard deviation.
    let deviation = 1.4826 * median(&deviations);
    let reach = OUTLIER * deviation;
    let is_usual = |at: usize| deviations.get(at).is_none_or(|distance| *distance <= reach);
    let usual = |(at, (value, level)): (usize, (&f64, &f64))| {
        let is_single = is_usual(at + 1) && at.checked_sub(1).is_none_or(is_usual);
        if is_single && (value - level).abs() > GROSS_OUTLIER * deviation {
            *level
        } else {
            value.clamp(level - reach, level + reach)
        }
    };
    values.iter().zip(&levels).enumerate().map(usual).collect()
}

/// Returns the parts of a series between sorted splits.
pub(super) fn parts(length: usize, splits: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(splits.iter().copied());
    let ends = splits.iter().copied().chain(std::iter::once(length));
    starts.zip(ends).map(|(start, end)| start..end)
}

/// Largest correlation that is assumed: a stronger one is a trend.
const CORRELATION_MAX: f64 = 0.9;

/// The choice of the best places takes this from the estimated correlation, as a multiple of 1 / n (from simulations).
const CHOICE: f64 = 4.0;

/// Returns the correlation of neighboring values around the means of their parts, at least 0: nights whose level wanders are worth
/// fewer independent ones. Each mean makes the estimate smaller by about (1 + 3ρ) / n, which is added again (Kendall, "Note on
/// bias in the estimation of autocorrelation", Biometrika 41, 1954), and so is [`CHOICE`].
pub(super) fn correlation(values: &[f64], parts: &[Range<usize>]) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for part in parts {
        let part = slice(values, part);
        let (mean, sum) = moments(part);
        squares += sum;
        let pairs = part.iter().zip(part.iter().skip(1));
        products += pairs.map(|(one, next)| (one - mean) * (next - mean)).sum::<f64>();
    }
    let (count, means) = (values.len() as f64, parts.len() as f64);
    if squares <= 0.0 || count <= 3.0 * means {
        return 0.0;
    }
    let unbiased = (products / squares * count + means) / (count - 3.0 * means);
    (unbiased + CHOICE / count).clamp(0.0, CORRELATION_MAX)
}

pub(super) fn slice<'a>(values: &'a [f64], part: &Range<usize>) -> &'a [f64] {
    values.get(part.clone()).unwrap_or_default()
}

/// The noise of earlier values around their levels, relative to these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    variance: f64,
    correlation: f64,
    values: usize,
}

impl Noise {
    /// Returns the noise of values whose level changed at the indexes `changes`; `None` for fewer than both
    /// sides of a change need.
    pub fn around(values: &[f64], changes: &[usize]) -> Option<Self> {
        if values.len() < 2 * SIDE_MIN {
            return None;
        }
        let usual = without_outliers(values);
        let levels: Vec<Range<usize>> = parts(values.len(), changes).collect();
        let squares = levels.iter().map(|level| {
            let (mean, squares) = moments(slice(&usual, level));
            squares / (mean * mean)
        });
        let degrees = values.len() - levels.len();
        let variance = squares.sum::<f64>() / degrees.max(1) as f64;
        let correlation = correlation(&usual, &levels);
        variance.is_finite().then_some(Self { variance, correlation, values: values.len() })
    }

    /// Returns the standard deviation, as a share of the level.
    pub(super) fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns the p-value of the t-test of equal means of neighboring values. The larger variance of these and
    /// the earlier values counts.
    pub(super) fn p(&self, left: &[f64], right: &[f64]) -> f64 {
        let ((mean, left_squares), (right_mean, right_squares)) = (moments(left), moments(right));
        let count = left.len() + right.len();
        let own = (left_squares + right_squares) / (count - 2) as f64;
        let variance = own.max(self.variance * mean * mean);
        let worth = (1.0 - self.correlation) / (1.0 + self.correlation);
        let degrees = worth * self.values as f64 - 2.0;
        if degrees <= 0.0 {
            return 1.0;
        }
        // The variance of the difference of the means in an autoregressive process.
        let weight = |at| {
            if at < left.len() { 1.0 / left.len() as f64 } else { -1.0 / right.len() as f64 }
        };
        let pairs = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
        let factor = pairs.map(|(one, other): (usize, usize)| {
            weight(one) * weight(other) * self.correlation.powf(one.abs_diff(other) as f64)
        });
        let error = (variance * factor.sum::<f64>()).sqrt();
        p_of_means(mean, right_mean, error, degrees)
    }
}
