//! Comparison of two groups of runs: what changed between them, and by how much their figures differ. Pure.
//!
//! The run is the unit: each figure of a run is one value, and `stats` judges the values of both groups. Two
//! single runs are shown side by side without a verdict.

mod changes;
mod errors;
mod figures;
mod markdown;
mod percentiles;
mod text;
mod view;

use serde::Serialize;

use super::words;
use crate::record::{Record, Status, Validity};
use crate::stats::{Block, Effect, Outcome, Settings};
pub use changes::{Change, Topic, differences};
pub use errors::ComparisonError;
pub(super) use figures::group_figures;
pub use figures::{Figure, FigureComparison};
pub use markdown::markdown;
pub(super) use text::change_text;
pub use text::text;
pub use view::{view, view_of};

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

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The run, label or tag that selected the runs.
    pub name: String,
    /// Ids of the compared runs.
    pub runs: Vec<String>,
    /// Ids of the runs that were left out because they are invalid or did not end as planned.
    pub left_out: Vec<String>,
}

/// The figures of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageComparison {
    /// Name of the stage; absent if the runs have only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Its figures; the main one first.
    pub figures: Vec<FigureComparison>,
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
    /// What differs between the groups, apart from the figures.
    pub changes: Vec<Change>,
    /// The figures.
    pub stages: Vec<StageComparison>,
    /// What limits the conclusion.
    pub notes: Vec<String>,
}

impl Comparison {
    /// All figures of all stages.
    pub fn figures(&self) -> impl Iterator<Item = &FigureComparison> {
        self.stages.iter().flat_map(|stage| &stage.figures)
    }

    /// Whether both groups are single runs, so that there is no verdict.
    #[must_use]
    pub fn is_of_single_runs(&self) -> bool {
        self.a.runs.len() == 1 && self.b.runs.len() == 1
    }

    /// Whether a figure of B is worse than that of A.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        let effects = self.figures().filter_map(|figure| figure.effect.as_ref());
        effects.into_iter().any(|effect| effect.outcome == Outcome::Slower)
    }
}

/// Compares two groups of runs of one workload.
///
/// # Errors
/// [`ComparisonError`] if a group has no usable run, if a run is in both groups, or if the runs are of several
/// workloads.
pub fn compare(
    a: Group<'_>,
    b: Group<'_>,
    settings: &Settings,
) -> Result<Comparison, ComparisonError> {
    let workload = errors::one_workload(a, b)?;
    errors::no_common_run(a, b)?;
    let (runs_a, left_out_a) = usable(a)?;
    let (runs_b, left_out_b) = usable(b)?;
    let blocks = Blocks::of(&runs_a, &runs_b);
    let stages = figures::stages(&runs_a, &runs_b, &blocks, settings);
    let side = |group: Group<'_>, runs: &[&Record], left_out| Side {
        name: group.name.to_owned(),
        runs: runs.iter().map(|run| run.id.to_string()).collect(),
        left_out,
    };
    let mut comparison = Comparison {
        workload,
        a: side(a, &runs_a, left_out_a),
        b: side(b, &runs_b, left_out_b),
        blocks: blocks.count(),
        effect: settings.effect,
        changes: changes::changes(&runs_a, &runs_b),
        stages,
        notes: Vec::new(),
    };
    comparison.notes = notes(&comparison, &runs_a, &runs_b);
    Ok(comparison)
}

/// Returns the runs that are compared, and the ids of the others. A group whose only run is invalid is compared
/// all the same, because the result is then only shown beside the other.
fn usable(group: Group<'_>) -> Result<(Vec<&Record>, Vec<String>), ComparisonError> {
    let measured: Vec<_> = group.records.iter().filter(|run| !run.stages.is_empty()).collect();
    // An imported run is neither valid nor invalid.
    let is_good =
        |run: &&&Record| run.validity() != Validity::Invalid && run.status == Status::Done;
    let good: Vec<_> = measured.iter().filter(is_good).copied().collect();
    let kept = match (good.is_empty(), measured.as_slice()) {
        (true, [single]) => vec![*single],
        (true, _) => return Err(ComparisonError::NothingValid(group.name.to_owned())),
        (false, _) => good,
    };
    let is_kept = |run: &&Record| kept.iter().any(|each| each.id == run.id);
    let left_out = group.records.iter().filter(|run| !is_kept(run));
    let ids = left_out.map(|run| run.id.to_string()).collect();
    Ok((kept, ids))
}

/// The positions of the runs of each block, for both groups.
pub(super) struct Blocks(Vec<(Vec<usize>, Vec<usize>)>);

impl Blocks {
    /// If all runs have a block and each block has runs of both groups, those blocks; otherwise one block of all
    /// runs.
    fn of(a: &[&Record], b: &[&Record]) -> Self {
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

    fn count(&self) -> usize {
        self.0.len()
    }

    /// The values of each block. `None` if a run has no value or one that is not positive: it has no logarithm.
    fn values(&self, a: &[Option<f64>], b: &[Option<f64>]) -> Option<Vec<Block>> {
        let of = |values: &[Option<f64>], positions: &[usize]| -> Option<Vec<f64>> {
            let value = |&position: &usize| {
                values.get(position).copied().flatten().filter(|&value| value > 0.0)
            };
            positions.iter().map(value).collect()
        };
        self.0.iter().map(|(of_a, of_b)| Some(Block { a: of(a, of_a)?, b: of(b, of_b)? })).collect()
    }
}

/// What limits the conclusion.
fn notes(comparison: &Comparison, a: &[&Record], b: &[&Record]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, side, runs) in [("A", &comparison.a, a), ("B", &comparison.b, b)] {
        if !side.left_out.is_empty() {
            let count = super::format::number_of(side.left_out.len() as u64, "run");
            notes.push(format!(
                "{count} of {name} left out: invalid, interrupted or without a measurement"
            ));
        }
        if runs.iter().any(|run| run.validity() == Validity::Invalid) {
            notes.push(format!("the run of {name} is NOT VALID"));
        }
        if runs.iter().any(|run| run.validity() == Validity::NotVerified) {
            notes.push(format!("runs of {name} are imported: riops verified nothing"));
        }
        let disturbed = runs
            .iter()
            .filter(|run| run.verdict.warnings.iter().any(|warning| warning.kind.is_disturbance()));
        match disturbed.count() {
            0 => {}
            count => notes.push(format!("{count} of {} runs of {name} were disturbed", runs.len())),
        }
    }
    if comparison.is_of_single_runs() {
        notes.push(
            "one run each: no verdict, because two runs also differ by chance; repeat both with --repeat"
                .to_owned(),
        );
    } else if comparison.blocks == 1 && !overlap(a, b) {
        notes.push(
            "the groups were measured one after the other: a drift of the machine looks like a difference"
                .to_owned(),
        );
    }
    notes
}

/// Whether the two groups overlap in time.
fn overlap(a: &[&Record], b: &[&Record]) -> bool {
    let span = |runs: &[&Record]| {
        let starts = runs.iter().map(|run| run.started_at);
        starts.clone().min().zip(starts.max())
    };
    match (span(a), span(b)) {
        (Some((first_a, last_a)), Some((first_b, last_b))) => first_a < last_b && first_b < last_a,
        _ => false,
    }
}

/// Whether the main result of a run counts transactions and not rows.
fn counts_transactions(record: &Record) -> bool {
    words::of(&record.plan.work).counts_transactions()
}

/// Effects of all figures in the same order. The first one is the main figure.
fn judged(
    figures: &[(crate::stats::Direction, Option<Vec<Block>>)],
    settings: &Settings,
) -> Vec<Option<Effect>> {
    let with_values: Vec<_> = figures
        .iter()
        .filter_map(|(direction, blocks)| Some((*direction, blocks.clone()?)))
        .collect();
    let mut effects = crate::stats::compare(&with_values, settings).into_iter();
    figures
        .iter()
        .map(
            |(_, blocks)| if blocks.is_some() { effects.next().and_then(Result::ok) } else { None },
        )
        .collect()
}

#[cfg(test)]
mod tests;
