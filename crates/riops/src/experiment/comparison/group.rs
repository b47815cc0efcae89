//! Groups of runs, and the blocks in which runs of two groups were measured together.

use crate::record::Record;
use crate::stats::Block;

/// Tag of runs that were measured together: runs of both groups with the same value form a block.
pub const BLOCK_TAG: &str = "block";

/// A group of runs, with the run, label or tag that selected them.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The selection.
    pub name: &'a str,
    /// All selected runs, oldest first.
    pub records: &'a [Record],
}

/// The positions of the runs of each block, for both groups.
pub(super) struct Blocks(Vec<(Vec<usize>, Vec<usize>)>);

impl Blocks {
    /// If all runs have a block and each block has runs of both groups, those blocks; otherwise one block of all
    /// runs.
    pub(super) fn of(a: &[&Record], b: &[&Record]) -> Self {
        Self::tagged(a, b)
            .unwrap_or_else(|| Self(vec![((0..a.len()).collect(), (0..b.len()).collect())]))
    }

    fn tagged(a: &[&Record], b: &[&Record]) -> Option<Self> {
        let mut blocks: Vec<(&String, Vec<usize>, Vec<usize>)> = Vec::new();
        for (is_a, runs) in [(true, a), (false, b)] {
            for (position, run) in runs.iter().enumerate() {
                let name = run.tags.get(BLOCK_TAG)?;
                let known = blocks.iter().position(|block| block.0 == name);
                let at = known.unwrap_or(blocks.len());
                if known.is_none() {
                    blocks.push((name, Vec::new(), Vec::new()));
                }
                let block = blocks.get_mut(at)?;
                if is_a { &mut block.1 } else { &mut block.2 }.push(position);
            }
        }
        let is_complete = blocks.iter().all(|(_, a, b)| !a.is_empty() && !b.is_empty());
        is_complete.then(|| Self(blocks.into_iter().map(|(_, a, b)| (a, b)).collect()))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The runs of each block.
    pub(super) fn pairs<T: Copy>(&self, a: &[T], b: &[T]) -> Vec<(Vec<T>, Vec<T>)> {
        let of = |runs: &[T], positions: &[usize]| -> Vec<T> {
            positions.iter().filter_map(|&position| runs.get(position).copied()).collect()
        };
        self.0.iter().map(|(of_a, of_b)| (of(a, of_a), of(b, of_b))).collect()
    }

    /// The values of each block. `None` if a run has no value or one that is not positive: it has no logarithm.
    pub(super) fn values(&self, a: &[Option<f64>], b: &[Option<f64>]) -> Option<Vec<Block>> {
        let of = |values: &[Option<f64>], positions: &[usize]| -> Option<Vec<f64>> {
            let value = |&position: &usize| {
                values.get(position).copied().flatten().filter(|&value| value > 0.0)
            };
            positions.iter().map(value).collect()
        };
        self.0.iter().map(|(of_a, of_b)| Some(Block { a: of(a, of_a)?, b: of(b, of_b)? })).collect()
    }
}
