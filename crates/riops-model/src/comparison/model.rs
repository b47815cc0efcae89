//! A comparison as plain data.

use serde::Serialize;

use super::changes::Change;
use super::figures::{FigureComparison, StageComparison};
use super::undecided::{Undecided, significant};
use crate::figure::{CostKind, Figure};
use crate::stats::Outcome;

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The run, label or tag that selected the runs.
    pub name: String,
    /// Ids of the compared runs.
    pub runs: Vec<String>,
    /// Ids of the runs that were left out because they are invalid or did not end as planned.
    pub left_out: Vec<String>,
    /// Marks of runs that are less reliable, such as `disturbed`, with the number of runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<(&'static str, usize)>,
}

/// A comparison of two groups of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The workload of all runs.
    pub workload: String,
    /// The first group.
    pub a: Side,
    /// The second group, which is judged relative to the first.
    pub b: Side,
    /// Number of blocks in which runs of both groups were measured together; 1 if they were not.
    pub blocks: usize,
    /// The smallest relevant effect, as a share.
    pub effect: f64,
    /// Differences between the groups, apart from the figures.
    pub changes: Vec<Change>,
    /// The figures.
    pub stages: Vec<StageComparison>,
    /// The certain differences, if the main figure is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// Limits of the conclusion.
    pub notes: Vec<String>,
}

impl Comparison {
    /// All figures of all stages.
    pub fn figures(&self) -> impl Iterator<Item = &FigureComparison> {
        self.stages.iter().flat_map(|stage| &stage.figures)
    }

    /// Whether both groups are single runs, so that there is no verdict.
    pub fn is_of_single_runs(&self) -> bool {
        self.a.runs.len() == 1 && self.b.runs.len() == 1
    }

    /// Whether the main figure has no verdict: neither faster nor slower nor equivalent.
    pub fn is_inconclusive(&self) -> bool {
        let main = self.figures().find(|figure| figure.main).and_then(|main| main.effect.as_ref());
        main.is_none_or(|effect| effect.outcome == Outcome::Inconclusive)
    }

    /// Returns the costs of these kinds that are higher in B. The probability of a false one is at most 5%.
    pub fn costlier(&self, kinds: &[CostKind]) -> Vec<&FigureComparison> {
        let figures: Vec<&Figure> = kinds.iter().flat_map(|kind| kind.figures()).collect();
        let costs = self.stages.iter().flat_map(|stage| &stage.costs);
        let judged: Vec<_> = costs.filter(|cost| figures.contains(&&cost.figure)).collect();
        let is_more = |cost: &&FigureComparison| {
            cost.effect.as_ref().is_some_and(|effect| effect.outcome == Outcome::Slower)
        };
        significant(&judged).into_iter().filter(is_more).collect()
    }

    /// Returns whether a figure of B is worse than the same figure of A.
    pub fn is_slower(&self) -> bool {
        let effects = self.figures().filter_map(|figure| figure.effect.as_ref());
        effects.into_iter().any(|effect| effect.outcome == Outcome::Slower)
    }
}
