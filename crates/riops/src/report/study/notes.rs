//! What limits the conclusions of an experiment.

use super::super::format::number_of;
use super::model::StudyView;

/// Returns what limits the conclusions.
pub(super) fn notes(view: &StudyView) -> Vec<String> {
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
        notes.push(format!("a verdict requires {more} of each cell"));
    }
    if single_runs(view) {
        notes.push(
            "one run of each cell: no intervals and no verdicts, because runs also differ by chance"
                .to_owned(),
        );
    }
    notes
}

/// The largest number of further runs that a comparison with the baseline requires.
fn runs_needed(view: &StudyView) -> Option<usize> {
    let groups = view.cells.iter().map(|cell| &cell.group);
    let mains = groups.filter_map(|group| view.main_of(group)?.against_baseline.as_ref());
    mains.filter_map(|against| against.runs_needed).max()
}

fn single_runs(view: &StudyView) -> bool {
    let mut measured =
        view.cells.iter().map(|cell| cell.group.runs.usable).filter(|&runs| runs > 0);
    view.baseline.is_some() && view.cells.len() > 1 && measured.all(|runs| runs == 1)
}
