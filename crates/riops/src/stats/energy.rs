//! E-divisive: the split of a series at which the distributions of the two sides differ most, by their energy
//! distance (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate
//! data", JASA 109 (505), 2014, equations 5 to 7, with exponent 1).

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
            let (_, found) = best_split(&values, side_min).unwrap();
            prop_assert!((found - by_definition(&values, side_min)).abs() < 1e-6);
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
