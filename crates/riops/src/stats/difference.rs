//! The difference of two means, with its interval: of values that may be zero or negative, which have no ratio.

use super::change::{moments, two_sided_quantile};
use super::summary::mean_reach;

/// Blocks from which on the variation between blocks gives the interval; with fewer, that of the runs within them.
const BLOCKS_MIN: usize = 3;

/// A difference of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The mean of B minus that of A, as the mean over the blocks.
    pub value: f64,
    /// Half the width of its interval, with Student's t distribution; `None` with too few runs.
    pub reach: Option<f64>,
}

/// Returns the difference of the values of A and B, which were measured together in blocks; `None` without values of both. The
/// interval misses the true difference with the probability `alpha`.
#[must_use]
pub fn difference(blocks: &[(Vec<f64>, Vec<f64>)], alpha: f64) -> Option<Difference> {
    let whole: Vec<_> = blocks.iter().filter(|(a, b)| !a.is_empty() && !b.is_empty()).collect();
    let of_blocks: Vec<f64> = whole.iter().map(|(a, b)| moments(b).0 - moments(a).0).collect();
    let count = of_blocks.len() as f64;
    let value = (count > 0.0).then(|| of_blocks.iter().sum::<f64>() / count)?;
    if of_blocks.len() >= BLOCKS_MIN {
        return Some(Difference { value, reach: mean_reach(&of_blocks, alpha) });
    }
    let sides = || whole.iter().flat_map(|(a, b)| [a, b]);
    let degrees: f64 = sides().map(|side| side.len() as f64 - 1.0).sum();
    let squares: f64 = sides().map(|side| moments(side).1).sum();
    let inverse: f64 = sides().map(|side| 1.0 / side.len() as f64).sum();
    let reach = two_sided_quantile(alpha, degrees)
        .map(|quantile| quantile * (squares / degrees * inverse).sqrt() / count);
    Some(Difference { value, reach })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_two_sample_t_test() {
        // Student's sleep data (1908): a difference of 1.58, t = 1.8608 with 18 degrees of freedom, quantile 2.1009.
        let first = vec![0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = vec![1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = difference(&[(first, second)], 0.05).unwrap();
        assert!((found.value - 1.58).abs() < 1e-9);
        assert!((found.reach.unwrap() - 1.58 / 1.8608 * 2.1009).abs() < 1e-3);
    }

    #[test]
    fn the_level_of_a_block_does_not_matter() {
        let block = |level: f64, by: f64| (vec![level], vec![level + by]);
        let found =
            difference(&[block(0.0, 1.0), block(100.0, 1.2), block(-50.0, 0.8)], 0.05).unwrap();
        assert!((found.value - 1.0).abs() < 1e-12);
        assert!(found.reach.unwrap() < 0.51);
        assert_eq!(difference(&[block(1.0, 2.0)], 0.05).unwrap().reach, None);
        assert_eq!(difference(&[(vec![1.0], Vec::new())], 0.05), None);
    }
}
