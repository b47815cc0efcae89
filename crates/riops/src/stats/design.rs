//! What a design, the number of blocks and runs, can show at all.

use std::fmt;

use serde::Serialize;

use super::permutation::{ENUMERATED_MAX, assignments_count, choose};

/// Maximum that is searched for [`Needed`].
const NEEDED_MAX: usize = 60;
/// Runs on a side without which there is no interval.
const INTERVAL_MIN: usize = 3;

/// Number of blocks and runs of a comparison, and the smallest p-value that it can attain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Design {
    /// Blocks with runs of both.
    pub blocks: usize,
    /// Runs of A in these blocks.
    pub runs_a: usize,
    /// Runs of B in these blocks.
    pub runs_b: usize,
    /// Smallest p-value that this design can attain, however large the difference is.
    pub smallest_p: f64,
    /// Why the design cannot show a difference; `None` if it can.
    pub needed: Option<Needed>,
}

/// What a design needs to be able to show a difference, with or without blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Needed {
    /// Runs of A, and of B.
    pub runs_of_each: usize,
}

impl Needed {
    /// Returns the smallest design whose p-value can be `alpha`; `None` if it would be too large.
    pub fn at(alpha: f64) -> Option<Self> {
        let enough = |runs: &usize| 2.0 / choose(2 * runs, *runs) <= alpha;
        (INTERVAL_MIN..=NEEDED_MAX).find(enough).map(|runs_of_each| Self { runs_of_each })
    }
}

impl fmt::Display for Needed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "at least {} runs of each are needed", self.runs_of_each)
    }
}

/// Describes blocks of these runs of A and B. `has_interval` says whether the variation can be estimated.
pub(super) fn design(
    shape: &[(usize, usize)],
    alpha: f64,
    resamples: u32,
    has_interval: bool,
) -> Design {
    let count = assignments_count(shape);
    // If all blocks are balanced, exchanging A and B everywhere gives the same statistic.
    let mirrored = if shape.iter().all(|(a, b)| a == b) { 2.0 } else { 1.0 };
    let smallest_p = if count <= ENUMERATED_MAX {
        mirrored / count
    } else {
        (mirrored / count).max(1.0 / (f64::from(resamples) + 1.0))
    };
    let can_show = smallest_p <= alpha && has_interval;
    let needed = if can_show { None } else { Needed::at(alpha) };
    let (runs_a, runs_b) = shape.iter().fold((0, 0), |(a, b), block| (a + block.0, b + block.1));
    Design { blocks: shape.len(), runs_a, runs_b, smallest_p, needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_the_smallest_p_and_what_is_needed() {
        let of = |shape: &[(usize, usize)]| {
            let design = design(shape, 0.05, 10_000, true);
            (design.smallest_p, design.needed)
        };
        let needs_4 = Some(Needed { runs_of_each: 4 });
        assert_eq!(of(&[(1, 1); 5]), (2.0 / 32.0, needs_4));
        assert_eq!(of(&[(1, 1); 6]), (2.0 / 64.0, None));
        assert_eq!(of(&[(3, 3)]), (2.0 / 20.0, needs_4));
        assert_eq!(of(&[(4, 4)]), (2.0 / 70.0, None));
        assert_eq!(of(&[(2, 2); 2]), (2.0 / 36.0, needs_4));
        assert_eq!(of(&[(20, 20)]), (1.0 / 10_001.0, None));
        assert_eq!(of(&[(2, 5)]).0, 1.0 / 21.0);
    }

    #[test]
    fn a_design_without_an_interval_needs_more_runs() {
        let found = design(&[(2, 10)], 0.05, 10_000, false);
        assert_eq!(found.needed, Some(Needed { runs_of_each: 4 }));
        assert_eq!(found.needed.unwrap().to_string(), "at least 4 runs of each are needed");
        assert_eq!((found.blocks, found.runs_a, found.runs_b), (1, 2, 10));
    }
}
