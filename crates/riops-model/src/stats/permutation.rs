//! Permutation test within blocks, for several figures of the same runs at once.
//!
//! Without a difference between A and B, the runs of a block are exchangeable: each assignment of the labels A
//! and B to them is equally likely. The p-value is the share of assignments whose statistic is at least the
//! observed one (Fisher 1935). It is exact for any distribution of the values.

use std::collections::BTreeMap;
use std::fmt;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::blocks::{Sample, Unit};

/// Maximum number of assignments that are enumerated. More are sampled.
pub(super) const ENUMERATED_MAX: f64 = 20_000.0;
/// Relative difference of two statistics that are equal except for rounding.
pub(super) const ROUNDING: f64 = 1e-9;

/// The p-values of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Significance {
    /// For this figure alone.
    pub(super) p: f64,
    /// Adjusted for all figures.
    pub(super) p_adjusted: f64,
}

/// Returns the number of assignments of labels within blocks of these runs of A and B.
pub(super) fn assignments_count(shape: &[(usize, usize)]) -> f64 {
    shape.iter().map(|&(a, b)| choose(a + b, a.min(b))).product()
}

/// Returns the binomial coefficient.
pub(super) fn choose(total: usize, some: usize) -> f64 {
    (0..some).map(|taken| (total - taken) as f64 / (some - taken) as f64).product::<f64>().round()
}

/// Tests all figures.
///
/// The adjustment is the step-down procedure of Holm (1979) with the joint distribution of the figures in the
/// permutations, maxT of Westfall and Young (1993): the figure with the largest statistic is compared with the
/// largest statistic of all figures in each assignment, the next figure with the largest statistic of the
/// remaining figures. Holm's factor, the number of remaining figures, applies between figures that were not
/// measured in the same runs.
pub(super) fn test(samples: &[Sample], resamples: u32, seed: u64) -> Vec<Significance> {
    let families = families(samples, resamples, seed);
    let mut order: Vec<(usize, f64)> = Vec::new();
    for family in &families {
        let observed = |figure: &Figure| (figure.index, figure.statistics.first().copied());
        order.extend(
            family.iter().map(observed).map(|(index, first)| (index, first.unwrap_or(0.0))),
        );
    }
    order.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut results = vec![Significance { p: 1.0, p_adjusted: 1.0 }; samples.len()];
    let mut tested = vec![false; samples.len()];
    let mut largest = 0.0_f64;
    for (index, observed) in order {
        let remaining = |figure: &&Figure| !tested.get(figure.index).copied().unwrap_or(true);
        let shares = families.iter().map(|family| {
            let figures: Vec<&Figure> = family.iter().filter(remaining).collect();
            share_reaching(&figures, observed)
        });
        largest = largest.max(shares.sum::<f64>().min(1.0));
        let own = families.iter().flatten().filter(|figure| figure.index == index);
        let p = share_reaching(&own.collect::<Vec<_>>(), observed);
        if let (Some(result), Some(done)) = (results.get_mut(index), tested.get_mut(index)) {
            *result = Significance { p, p_adjusted: largest };
            *done = true;
        }
    }
    results
}

/// A figure with its statistic in each assignment, the observed one first.
struct Figure {
    index: usize,
    statistics: Vec<f64>,
}

/// Groups the figures by the shape of their blocks. Figures of one family share the assignments.
fn families(samples: &[Sample], resamples: u32, seed: u64) -> Vec<Vec<Figure>> {
    let mut families: BTreeMap<Vec<(usize, usize)>, Vec<usize>> = BTreeMap::new();
    for (index, sample) in samples.iter().enumerate() {
        families.entry(sample.shape()).or_default().push(index);
    }
    let figures = |(shape, indexes): (Vec<(usize, usize)>, Vec<usize>)| {
        let assignments = assignments(&shape, resamples, seed);
        let figure = |index: usize| {
            let sample = samples.get(index)?;
            let statistic = |is_b: &Vec<bool>| sample.estimate(is_b).statistic();
            let statistics: Vec<f64> = assignments.iter().map(statistic).collect();
            let studentized = sample.unit == Unit::Run;
            let statistics = if studentized { statistics } else { standardized(&statistics) };
            Some(Figure { index, statistics })
        };
        indexes.into_iter().filter_map(figure).collect()
    };
    families.into_iter().map(figures).collect()
}

/// Divides the statistics by their root mean square, which makes figures with different noise comparable. For pairs
/// this has the same order as Student's t.
fn standardized(statistics: &[f64]) -> Vec<f64> {
    let squares: f64 = statistics.iter().map(|statistic| statistic * statistic).sum();
    let scale = (squares / statistics.len().max(1) as f64).sqrt();
    let divided = |statistic: &f64| if scale > 0.0 { statistic / scale } else { 0.0 };
    statistics.iter().map(divided).collect()
}

/// Returns the share of assignments in which at least one of the figures reaches the statistic.
fn share_reaching(figures: &[&Figure], observed: f64) -> f64 {
    let assignments = figures.first().map_or(0, |figure| figure.statistics.len());
    let least = observed * (1.0 - ROUNDING);
    let reaches = |assignment: &usize| {
        figures.iter().any(|figure| figure.statistics.get(*assignment).is_some_and(|t| *t >= least))
    };
    (0..assignments).filter(reaches).count() as f64 / assignments.max(1) as f64
}

/// Returns assignments, the observed one first: all of them, or a sample. Counting the observed assignment gives
/// the sampled p-value its +1 in numerator and denominator (Phipson and Smyth 2010): it is never 0 and never too
/// small.
pub(super) fn assignments(shape: &[(usize, usize)], resamples: u32, seed: u64) -> Vec<Vec<bool>> {
    let observed: Vec<Vec<bool>> =
        shape.iter().map(|&(a, b)| [vec![false; a], vec![true; b]].concat()).collect();
    if assignments_count(shape) <= ENUMERATED_MAX {
        return shape.iter().fold(vec![Vec::new()], |rows: Vec<Vec<bool>>, &(a, b)| {
            let of_block = of_one_block(a, b);
            rows.iter()
                .flat_map(|row| of_block.iter().map(|block| [row.as_slice(), block].concat()))
                .collect()
        });
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows = vec![observed.concat()];
    for _ in 0..resamples {
        let mut blocks = observed.clone();
        for block in &mut blocks {
            block.shuffle(&mut rng);
        }
        rows.push(blocks.concat());
    }
    rows
}

/// Returns all orders of `a` times false and `b` times true, starting with all false first.
fn of_one_block(a: usize, b: usize) -> Vec<Vec<bool>> {
    if a == 0 || b == 0 {
        return vec![[vec![false; a], vec![true; b]].concat()];
    }
    let starting = |first: bool, rest: Vec<Vec<bool>>| {
        rest.into_iter().map(move |row| [vec![first], row].concat())
    };
    starting(false, of_one_block(a - 1, b)).chain(starting(true, of_one_block(a, b - 1))).collect()
}

// The differences that a design, the number of blocks and runs, can show at all.

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

/// The size that a design needs to show a difference, with or without blocks.
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
    use crate::stats::Block;

    fn pairs(ratios: &[f64]) -> Sample {
        let block = |ratio: &f64| Block { a: vec![100.0], b: vec![100.0 * ratio] };
        Sample::new(&ratios.iter().map(block).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn enumerates_every_assignment_once_and_the_observed_one_first() {
        for shape in [vec![(1, 1); 6], vec![(3, 3)], vec![(2, 2), (1, 3)]] {
            let rows = assignments(&shape, 10, 1);
            assert_eq!(rows.len() as f64, assignments_count(&shape));
            let unique: std::collections::BTreeSet<_> = rows.iter().collect();
            assert_eq!(unique.len(), rows.len());
            let observed: Vec<bool> =
                shape.iter().flat_map(|&(a, b)| [vec![false; a], vec![true; b]].concat()).collect();
            assert_eq!(rows[0], observed);
        }
    }

    #[test]
    fn samples_assignments_that_keep_the_number_of_runs_in_each_block() {
        let shape = [(10, 10), (2, 3)];
        let rows = assignments(&shape, 50, 1);
        assert_eq!(rows.len(), 51);
        for row in rows {
            assert_eq!(row[..20].iter().filter(|is_b| **is_b).count(), 10);
            assert_eq!(row[20..].iter().filter(|is_b| **is_b).count(), 3);
        }
    }

    #[test]
    fn pairs_with_the_same_sign_have_the_smallest_p() {
        let tested = test(&[pairs(&[1.05, 1.04, 1.06, 1.05, 1.07, 1.03])], 10, 1);
        assert_eq!(tested[0].p, 2.0 / 64.0);
        let tested = test(&[pairs(&[1.05, 1.04, 1.06, 1.05, 1.07, 0.999])], 10, 1);
        assert_eq!(tested[0].p, 4.0 / 64.0);
    }

    #[test]
    fn two_samples_have_the_p_of_the_enumeration_by_hand() {
        // Complete separation of 4 and 4 runs: two of 70 assignments.
        let block = Block { a: vec![1.0, 1.1, 1.2, 1.3], b: vec![2.0, 2.1, 2.2, 2.3] };
        let tested = test(&[Sample::new(&[block]).unwrap()], 10, 1);
        assert_eq!(tested[0].p, 2.0 / 70.0);
    }

    #[test]
    fn figures_of_the_same_runs_are_not_penalized_for_each_other() {
        let ratios = [1.05, 1.04, 1.06, 1.05, 1.07, 1.03];
        let inverse: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
        let tested = test(&[pairs(&ratios), pairs(&inverse), pairs(&ratios)], 10, 1);
        assert!(tested.iter().all(|figure| figure.p_adjusted == 2.0 / 64.0), "{tested:?}");
    }

    #[test]
    fn figures_of_other_runs_are_adjusted_as_in_holm() {
        // Seven and six pairs: smallest p of 2/128 and 2/64.
        let six = pairs(&[1.05, 1.04, 1.06, 1.05, 1.07, 1.03]);
        let seven = pairs(&[1.50, 1.51, 1.49, 1.50, 1.52, 1.48, 1.50]);
        let tested = test(&[six, seven], 10, 1);
        assert_eq!((tested[1].p, tested[0].p), (2.0 / 128.0, 2.0 / 64.0));
        assert_eq!((tested[1].p_adjusted, tested[0].p_adjusted), (2.0 / 128.0, 2.0 / 64.0));
        let tested = test(&[pairs(&[1.0, 1.1, 0.9, 1.0]), pairs(&[1.0; 5])], 10, 1);
        assert!(tested.iter().all(|figure| figure.p_adjusted == 1.0), "{tested:?}");
    }

    #[test]
    fn adjusted_values_are_never_below_the_unadjusted_ones() {
        let tested = test(
            &[
                pairs(&[1.05, 1.04, 1.06, 1.05, 1.07, 1.03]),
                pairs(&[1.05, 0.99, 1.06, 0.98, 1.07, 1.00]),
                pairs(&[1.01, 0.99, 1.02, 0.98, 1.00, 0.97]),
            ],
            10,
            1,
        );
        assert!(tested.iter().all(|figure| figure.p_adjusted >= figure.p), "{tested:?}");
        assert!(tested[2].p_adjusted >= tested[1].p_adjusted, "{tested:?}");
    }

    #[test]
    fn states_the_smallest_p_and_the_runs_that_are_needed() {
        let p_and_need = |shape: &[(usize, usize)]| {
            let design = design(shape, 0.05, 10_000, true);
            (design.smallest_p, design.needed)
        };
        let needs_4 = Some(Needed { runs_of_each: 4 });
        assert_eq!(p_and_need(&[(1, 1); 5]), (2.0 / 32.0, needs_4));
        assert_eq!(p_and_need(&[(1, 1); 6]), (2.0 / 64.0, None));
        assert_eq!(p_and_need(&[(3, 3)]), (2.0 / 20.0, needs_4));
        assert_eq!(p_and_need(&[(4, 4)]), (2.0 / 70.0, None));
        assert_eq!(p_and_need(&[(2, 2); 2]), (2.0 / 36.0, needs_4));
        assert_eq!(p_and_need(&[(20, 20)]), (1.0 / 10_001.0, None));
        assert_eq!(p_and_need(&[(2, 5)]).0, 1.0 / 21.0);
    }

    #[test]
    fn a_design_without_an_interval_needs_more_runs() {
        let design = design(&[(2, 10)], 0.05, 10_000, false);
        assert_eq!(design.needed, Some(Needed { runs_of_each: 4 }));
        assert_eq!(design.needed.unwrap().to_string(), "at least 4 runs of each are needed");
        assert_eq!((design.blocks, design.runs_a, design.runs_b), (1, 2, 10));
    }
}
