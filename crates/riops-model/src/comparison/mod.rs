//! Comparison of two groups of runs: what changed between them, and by how much their figures differ. Pure.
//!
//! The run is the unit: each figure of a run is one value, and `stats` judges the values of both groups. Two
//! single runs are shown side by side without a verdict.

mod changes;
mod conditions;
mod figures;
mod model;
mod notes;
mod undecided;
mod why;

use std::collections::{BTreeSet, HashSet};

use crate::figure::{Figure, Summary};
use crate::record::{Record, Status, Validity};
use crate::stats::Settings;
use crate::summary::RunKey;
use crate::units::format::number_of;
pub use changes::{Change, Topic, changes, differences};
use figures::Blocks;
pub use figures::{
    BLOCK_TAG, FigureComparison, FigureValues, Group, ROUND_TAG, StageComparison, group_figures,
};
pub use model::{Comparison, Side};
pub(crate) use notes::predicate;
pub use notes::{marked, missing_note, sampling_note, server_notes};
pub(crate) use undecided::OVERHEAD_S;
pub use undecided::{Certain, Difference, Undecided};

pub use why::{PartChange, TimeChange};
pub(crate) use why::{RunBlock, time_change};

/// Maximum number of runs in both groups. All their records are in memory: of small runs, about 300 MB.
pub const RUNS_MAX: usize = 10_000;

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
    let keys = |group: Group<'_>| group.records.iter().map(RunKey::from_record).collect::<Vec<_>>();
    let workload = require_comparable(&keys(a), &keys(b))?;
    let throughput = |run: &Record| Figure::throughput_of(&run.plan.work);
    let mut runs = a.records.iter().chain(b.records).map(throughput);
    if runs.next().is_some_and(|first| runs.any(|other| other != first)) {
        return Err(ComparisonError::Counts);
    }
    let (runs_a, left_out_a) = usable(a)?;
    let (runs_b, left_out_b) = usable(b)?;
    let blocks = Blocks::from_runs(&runs_a, &runs_b);
    let changes = changes::changes(&runs_a, &runs_b);
    let stages = figures::stages(&runs_a, &runs_b, &blocks, &changes, settings);
    let side = |group: Group<'_>, runs: &[&Record], left_out| Side {
        name: group.name.to_owned(),
        runs: runs.iter().map(|run| run.id.to_string()).collect(),
        left_out,
        marked: notes::marked(runs.iter().copied()),
    };
    let mut comparison = Comparison {
        workload,
        a: side(a, &runs_a, left_out_a),
        b: side(b, &runs_b, left_out_b),
        blocks: blocks.count(),
        effect: settings.effect,
        changes,
        stages,
        undecided: None,
        notes: Vec::new(),
    };
    comparison.undecided = undecided(&comparison, &runs_a, &runs_b);
    comparison.notes = notes::notes(&comparison, &runs_a, &runs_b);
    Ok(comparison)
}

/// Returns the certain differences if the main figure is undecided.
fn undecided(comparison: &Comparison, a: &[&Record], b: &[&Record]) -> Option<Undecided> {
    let main = comparison.figures().find(|figure| figure.main)?;
    if !comparison.is_inconclusive() {
        return None;
    }
    let design = &main.effect.as_ref()?.design;
    let needed = design.needed.map(|needed| needed.runs_of_each);
    let runs_decide = needed.or(main.effect.as_ref()?.runs_expected);
    // More runs do not make a lower bound exact.
    let runs_decide = runs_decide.filter(|_| !main.a_at_least && !main.b_at_least);
    let mut certain = Vec::new();
    for stage in &comparison.stages {
        let figures = stage.figures.iter().filter(|figure| !figure.main).filter_map(|figure| {
            let effect = figure.effect.as_ref()?;
            Certain::figure(&figure.name, effect.ratio, effect.outcome)
        });
        let parts = stage.time.iter().flat_map(Certain::parts);
        let prefix = stage.stage.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        certain.extend(figures.chain(Certain::costs(stage)).chain(parts).map(|difference| {
            Certain { name: format!("{prefix}{}", difference.name), ..difference }
        }));
    }
    Some(Undecided::new(certain, runs_decide, a, b))
}

/// Compares the stages of two groups of usable runs.
pub(crate) fn stages_of(a: &[&Record], b: &[&Record]) -> Vec<StageComparison> {
    let changes = changes::changes(a, b);
    figures::stages(a, b, &Blocks::from_runs(a, b), &changes, &Settings::default())
}

/// Returns the change of the time of a transaction in a stage of two groups of runs that were not measured together.
pub fn change_of_time(a: &[Record], b: &[Record], stage: usize) -> Option<TimeChange> {
    let of_a: Vec<&Record> = a.iter().collect();
    let of_b: Vec<&Record> = b.iter().collect();
    let [a, b] = [&of_a, &of_b].map(|records| {
        let stages = records.iter().filter_map(|record| Some((record, record.stages.get(stage)?)));
        stages.map(|(record, stage)| Summary { record, stage }).collect()
    });
    time_change(&[RunBlock { a, b }], &changes::changes(&of_a, &of_b))
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
    let ids: HashSet<_> = kept.iter().map(|run| run.id).collect();
    let left_out = group.records.iter().filter(|run| !ids.contains(&run.id));
    let ids = left_out.map(|run| run.id.to_string()).collect();
    Ok((kept, ids))
}

/// Two groups of runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// No run of the group can be used.
    #[error("no run of \"{0}\" is valid and ended as planned: there is nothing to compare")]
    NothingValid(String),
    /// The records of all runs are in memory at once.
    #[error(
        "{} are too many for one comparison, at most {RUNS_MAX}: select fewer, for example by another tag",
        number_of(*.0 as u64, "run")
    )]
    TooMany(usize),
    /// A run is in both groups.
    #[error("run {0} is in both groups: choose groups without common runs")]
    Common(String),
    /// The runs are of several workloads.
    #[error("the runs are of several workloads ({0}): select one with --workload")]
    Workloads(String),
    /// Some runs count transactions, and others rows.
    #[error("some of the runs count transactions, the others rows: they have no figure in common")]
    Counts,
}

/// Checks what the ids and workloads of the runs show, before their records are read. Returns the workload of all runs.
///
/// # Errors
/// [`ComparisonError`] if the runs are of several workloads (imported ones fit any), if a run is in both groups (it
/// would be compared with itself), or if there are too many.
pub fn require_comparable(a: &[RunKey], b: &[RunKey]) -> Result<String, ComparisonError> {
    let runs = || a.iter().chain(b);
    let workloads: BTreeSet<&str> = runs().map(|run| run.workload.as_str()).collect();
    let measured: BTreeSet<&str> =
        runs().filter(|run| run.is_measured()).map(|run| run.workload.as_str()).collect();
    let workload = workloads.into_iter().collect::<Vec<_>>().join(", ");
    if measured.len() > 1 {
        return Err(ComparisonError::Workloads(workload));
    }
    let of_b: HashSet<&str> = b.iter().map(|run| run.id.as_str()).collect();
    if let Some(common) = a.iter().find(|run| of_b.contains(run.id.as_str())) {
        return Err(ComparisonError::Common(common.id.clone()));
    }
    let count = a.len() + b.len();
    if count > RUNS_MAX { Err(ComparisonError::TooMany(count)) } else { Ok(workload) }
}
