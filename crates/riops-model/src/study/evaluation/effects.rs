//! The effect of each axis over all settings of the other axes.

use std::collections::BTreeMap;

use indexmap::IndexSet;

use super::groups::Group;
use super::judge::Judge;
use super::model::{Against, AxisEffect, ValueEffect};
use crate::figure::Figure;
use crate::stats::Block;
use crate::study::Experiment;

/// Returns the effect of each axis with several values, if several axes have several values.
pub(super) fn effects(
    experiment: &Experiment,
    groups: &[Group<'_>],
    judge: &Judge<'_>,
    stage: usize,
    main: Figure,
) -> Vec<AxisEffect> {
    let several: Vec<usize> = experiment
        .axes
        .iter()
        .enumerate()
        .filter_map(|(at, axis)| (axis.values.len() > 1).then_some(at))
        .collect();
    if several.len() < 2 {
        return Vec::new();
    }
    let of_axis = |at: usize| {
        let axis = experiment.axes.get(at)?;
        let combinations = combinations(experiment, groups, at);
        let values = axis.values.iter().enumerate().map(|(position, value)| {
            let against = |figure| {
                (position > 0)
                    .then(|| against(judge, stage, figure, groups, &combinations, position))
                    .flatten()
            };
            ValueEffect {
                value: value.clone(),
                main: against(main),
                latency: against(Figure::P95Us).filter(|_| main != Figure::P95Us),
            }
        });
        Some(AxisEffect {
            axis: axis.name.clone(),
            combinations: combinations.len(),
            values: values.collect(),
        })
    };
    several.into_iter().filter_map(of_axis).filter(|effect| effect.combinations > 0).collect()
}

/// For each combination of the other axes, the cells of all values of this axis; only where all have usable runs.
fn combinations(experiment: &Experiment, groups: &[Group<'_>], at: usize) -> Vec<Vec<usize>> {
    let Some(axis) = experiment.axes.get(at) else {
        return Vec::new();
    };
    let others = |values: &[String]| -> Vec<String> {
        let others = values.iter().enumerate().filter(|(position, _)| *position != at);
        others.map(|(_, value)| value.clone()).collect()
    };
    let keys: IndexSet<_> = experiment.cells.iter().map(|cell| others(&cell.values)).collect();
    let cell_of = |key: &Vec<String>, value: &String| {
        let position = experiment
            .cells
            .iter()
            .position(|cell| cell.values.get(at) == Some(value) && others(&cell.values) == *key)?;
        groups.get(position).filter(|group| !group.runs.is_empty()).map(|_| position)
    };
    keys.iter()
        .filter_map(|key| axis.values.iter().map(|value| cell_of(key, value)).collect())
        .collect()
}

/// A value of an axis relative to its first value. The unit is the block: in each, the geometric means over the
/// combinations are compared, so that the interval shows how runs vary and not how combinations differ.
fn against(
    judge: &Judge<'_>,
    stage: usize,
    figure: Figure,
    groups: &[Group<'_>],
    combinations: &[Vec<usize>],
    position: usize,
) -> Option<Against> {
    let slot = judge.slots.get(stage)?;
    let of_combination = |cells: &Vec<usize>| {
        let (a, b) = (groups.get(*cells.first()?)?, groups.get(*cells.get(position)?)?);
        judge.numbered_blocks(figure, slot, a, b)
    };
    let all: Option<Vec<BTreeMap<u32, Block>>> = combinations.iter().map(of_combination).collect();
    let all = all?;
    let mean = |block_number: u32, pick: fn(&Block) -> &[f64]| -> Option<Vec<f64>> {
        let sides: Option<Vec<&[f64]>> =
            all.iter().map(|blocks| blocks.get(&block_number).map(pick)).collect();
        let sides = sides?;
        let runs = sides.iter().map(|side| side.len()).min()?;
        let of_run = |run: usize| {
            let logs: Option<Vec<f64>> =
                sides.iter().map(|side| side.get(run).map(|value| value.ln())).collect();
            let logs = logs?;
            Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        (0..runs).map(of_run).collect()
    };
    let block = |block_number: &u32| {
        Some(Block {
            a: mean(*block_number, |block| &block.a)?,
            b: mean(*block_number, |block| &block.b)?,
        })
    };
    // Only blocks in which all combinations were measured.
    let blocks: Vec<Block> = all.first()?.keys().filter_map(block).collect();
    judge.one(figure.direction(), &blocks)
}
