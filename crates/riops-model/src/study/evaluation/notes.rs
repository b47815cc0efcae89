//! Limits of the conclusions of an experiment.

use super::groups::Group;
use super::model::{CellView, StudyKind, StudyView};
use crate::comparison::{missing_note, predicate, sampling_note, server_notes};
use crate::record::Record;
use crate::stats::Outcome;
use crate::units::format::number_of;

/// From this number of comparisons on, one false difference is probable enough to be mentioned.
const COMPARED_MANY: usize = 3;

/// With more cells, the marked runs of each are not listed.
const LISTED_MAX: usize = 3;

/// Returns what limits the conclusions.
pub(super) fn notes(view: &StudyView, groups: &[Group<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    if let Some(planned) = view.planned_runs.filter(|&planned| done < planned) {
        notes.push(format!(
            "incomplete: {} of {planned} not run yet",
            number_of(planned - done, "run")
        ));
    }
    // The verdict on an improvement has the number.
    if let Some(needed) = runs_needed(view).filter(|_| view.improvement.is_none()) {
        let more = number_of(needed as u64, "more run");
        notes.push(format!("no conclusion yet: {more} per combination are needed"));
    }
    if let Some(compared) = compared(view).filter(|&compared| compared >= COMPARED_MANY) {
        notes.push(format!(
            "{compared} cells were compared with the baseline, each with an error probability of 5%: confirm a single small difference with riops ab"
        ));
    }
    notes.extend(marks(view, groups));
    if let [a, b] = groups {
        notes.extend(server_notes(&a.records(), &b.records()));
        notes.extend(sampling_note(&a.records(), &b.records()));
    }
    notes.extend(missing_notes(view, groups));
    if has_single_runs(view) {
        notes.push(
            "one run per combination is not enough for intervals and verdicts: runs also differ by chance"
                .to_owned(),
        );
    }
    notes
}

/// Cells of which another share of the transactions succeeded than of the baseline.
fn missing_notes(view: &StudyView, groups: &[Group<'_>]) -> Vec<String> {
    let cells = || view.cells.iter().zip(groups);
    let Some((base, of_base)) = view.baseline.and_then(|at| cells().nth(at)) else {
        return Vec::new();
    };
    let measured = cells().filter(|(_, group)| !group.runs.is_empty());
    let notes = measured.filter_map(|(cell, group)| {
        missing_note([&base.name, &cell.name], &of_base.records(), &group.records())
    });
    notes.take(LISTED_MAX).collect()
}

/// The number of runs that are disturbed, not steady or similar, and in which cells they are.
fn marks(view: &StudyView, groups: &[Group<'_>]) -> Vec<String> {
    let all: Vec<&Record> = groups.iter().flat_map(Group::records).collect();
    let of_mark = |(mark, count): (&'static str, usize)| {
        let of_cell = |(cell, group): (&CellView, &Group<'_>)| {
            let runs = group.records();
            let count = runs.iter().filter(|run| run.marks().contains(&mark)).count();
            format!("{}: {count} of {}", cell.name, runs.len())
        };
        let cells: Vec<String> = match groups.len() {
            2..=LISTED_MAX => view.cells.iter().zip(groups).map(of_cell).collect(),
            _ => Vec::new(),
        };
        let list =
            if cells.is_empty() { String::new() } else { format!(" ({})", cells.join(", ")) };
        let (runs, predicate) = (number_of(all.len() as u64, "run"), predicate(mark, count));
        format!("{count} of {runs} {predicate}{list}")
    };
    // The tables have the thresholds.
    let marked = view.marked.iter().filter(|(mark, _)| *mark != "breached");
    marked.copied().map(of_mark).collect()
}

/// The number of cells with a verdict, if one of them differs from the baseline.
fn compared(view: &StudyView) -> Option<usize> {
    if view.kind != StudyKind::Sweep {
        return None;
    }
    let outcomes: Vec<Outcome> = view
        .cells
        .iter()
        .filter_map(|cell| view.main_of(&cell.group)?.against_baseline.as_ref()?.outcome)
        .collect();
    let differs = |outcome: &Outcome| matches!(outcome, Outcome::Faster | Outcome::Slower);
    outcomes.iter().any(differs).then_some(outcomes.len())
}

/// The largest number of further runs that a comparison with the baseline requires.
fn runs_needed(view: &StudyView) -> Option<usize> {
    let groups = view.cells.iter().map(|cell| &cell.group);
    let mains = groups.filter_map(|group| view.main_of(group)?.against_baseline.as_ref());
    mains.filter_map(|against| against.runs_needed).max()
}

fn has_single_runs(view: &StudyView) -> bool {
    let mut measured =
        view.cells.iter().map(|cell| cell.group.runs.usable).filter(|&runs| runs > 0);
    view.baseline.is_some() && view.cells.len() > 1 && measured.all(|runs| runs == 1)
}
