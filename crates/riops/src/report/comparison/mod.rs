//! Comparison of two groups of runs: what changed between them, and by how much their figures differ. Pure.
//!
//! The run is the unit: each figure of a run is one value, and `stats` judges the values of both groups. Two
//! single runs are shown side by side without a verdict.

mod changes;
mod errors;
mod figures;
mod group;
mod markdown;
mod percentiles;
mod text;
mod view;

use serde::Serialize;

use crate::record::{Record, Status, Validity};
use crate::stats::{Outcome, Settings};
pub use changes::{Change, Topic, differences};
pub use errors::ComparisonError;
pub use figures::{Figure, FigureComparison, StageComparison};
pub(super) use figures::{FigureValues, group_figures};
use group::Blocks;
pub use group::{BLOCK_TAG, Group};
pub use markdown::markdown;
pub(super) use text::change_text;
pub use text::text;
pub use view::{view, view_of};

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

#[cfg(test)]
mod tests;
