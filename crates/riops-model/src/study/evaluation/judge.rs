//! The comparison of a cell with the baseline, and of the values of an axis.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{Group, Slot};
use super::model::Against;
use crate::figure::Figure;
use crate::stats::{Block, Direction, Effect, Settings, compare};

/// The figures of a session loop that are compared.
const JUDGED: [Figure; 6] = [
    Figure::TransactionsPerS,
    Figure::RowsPerS,
    Figure::P50Us,
    Figure::P95Us,
    Figure::P99Us,
    Figure::ErrorsPerS,
];

/// The runs to compare, and their blocks.
pub(super) struct Judge<'a> {
    pub(super) settings: Settings,
    pub(super) slots: &'a [Slot],
    /// Whether the runs of a block were measured close together.
    pub(super) in_blocks: bool,
    /// The throughput that the workload counts.
    pub(super) throughput: Figure,
}

impl Judge<'_> {
    /// Compares a group with the baseline in each figure of each stage: the position of the stage, the figure and
    /// the result. The p-values are adjusted for all of them.
    pub(super) fn all(&self, base: &Group<'_>, other: &Group<'_>) -> Vec<(usize, Figure, Against)> {
        let mut asked = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            for figure in self.figures(base, slot) {
                asked.extend(
                    self.blocks(figure, slot, base, other).map(|blocks| (at, figure, blocks)),
                );
            }
        }
        let figures: Vec<_> =
            asked.iter().map(|(_, figure, blocks)| (figure.direction(), blocks.clone())).collect();
        let effects = compare(&figures, &self.settings);
        asked
            .into_iter()
            .zip(effects)
            .filter_map(|((at, figure, blocks), effect)| {
                let against = match effect {
                    Ok(effect) => of_effect(&effect),
                    Err(_) => without_verdict(&blocks)?,
                };
                Some((at, figure, against))
            })
            .chain(self.costs(base, other))
            .collect()
    }

    /// The costs of a transaction relative to the baseline. They explain a difference and are not results of their own: they
    /// have no verdict, for which the p-values of all figures would be adjusted.
    pub(super) fn costs(
        &self,
        base: &Group<'_>,
        other: &Group<'_>,
    ) -> Vec<(usize, Figure, Against)> {
        let slots = self.slots.iter().enumerate();
        let costs = slots.flat_map(|slot| Figure::costs().map(move |figure| (slot, figure)));
        costs
            .filter_map(|((at, slot), figure)| {
                let blocks = self.blocks(figure, slot, base, other)?;
                let against = self.one(figure.direction(), &blocks)?;
                let Against { ratio, means, interval, .. } = against;
                Some((at, figure, Against { interval, ..Against::new(ratio, means) }))
            })
            .collect()
    }

    /// The figures that are compared. Throughput and duration of a fixed amount of work are the same figure.
    fn figures(&self, base: &Group<'_>, slot: &Slot) -> Vec<Figure> {
        let is_statement = base.at(slot).iter().any(|run| run.stage.is_timed());
        if is_statement {
            return vec![Figure::Seconds];
        }
        let is_other = |figure: Figure| {
            figure != self.throughput
                && [Figure::RowsPerS, Figure::TransactionsPerS].contains(&figure)
        };
        JUDGED.into_iter().filter(|figure| !is_other(*figure)).collect()
    }

    /// The values of a figure in blocks with runs of both; `None` if a run of them has no value.
    pub(super) fn blocks(
        &self,
        figure: Figure,
        slot: &Slot,
        a: &Group<'_>,
        b: &Group<'_>,
    ) -> Option<Vec<Block>> {
        Some(self.numbered_blocks(figure, slot, a, b)?.into_values().collect())
    }

    /// The same by the number of the block.
    pub(super) fn numbered_blocks(
        &self,
        figure: Figure,
        slot: &Slot,
        a: &Group<'_>,
        b: &Group<'_>,
    ) -> Option<BTreeMap<u32, Block>> {
        let values = |group: &Group<'_>, block: Option<u32>| -> Option<Vec<f64>> {
            let runs = group.runs.iter().filter(|run| block.is_none_or(|block| run.block == block));
            runs.map(|run| figure.exact(run.record, slot.stage_in(run.record)?)).collect()
        };
        if !self.in_blocks {
            let all = Block { a: values(a, None)?, b: values(b, None)? };
            return Some(BTreeMap::from([(1, all)]));
        }
        let numbers = |group: &Group<'_>| -> BTreeSet<u32> {
            group.runs.iter().map(|run| run.block).collect()
        };
        let block = |block_number: u32| {
            let block =
                Block { a: values(a, Some(block_number))?, b: values(b, Some(block_number))? };
            Some((block_number, block))
        };
        numbers(a).intersection(&numbers(b)).copied().map(block).collect()
    }

    /// Compares blocks of one figure.
    pub(super) fn one(&self, direction: Direction, blocks: &[Block]) -> Option<Against> {
        match compare(&[(direction, blocks.to_vec())], &self.settings).pop()? {
            Ok(effect) => Some(of_effect(&effect)),
            Err(_) => without_verdict(blocks),
        }
    }
}

/// The result of a comparison.
pub(crate) fn of_effect(effect: &Effect) -> Against {
    let design = &effect.design;
    Against {
        ratio: effect.ratio,
        means: effect.means,
        interval: effect.interval,
        p_adjusted: Some(effect.p_adjusted),
        outcome: Some(effect.outcome),
        runs_needed: design
            .needed
            .map(|needed| needed.runs_of_each.saturating_sub(design.runs_a.min(design.runs_b))),
        runs_expected: effect.runs_expected,
    }
}

/// The plain ratio of the means, for a single run of each side or values that are zero.
fn without_verdict(blocks: &[Block]) -> Option<Against> {
    let mean = |pick: fn(&Block) -> &[f64]| {
        let values: Vec<f64> = blocks.iter().flat_map(pick).copied().collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let (a, b) = (mean(|block| &block.a)?, mean(|block| &block.b)?);
    (a > 0.0).then(|| Against::new(b / a, [a, b]))
}
