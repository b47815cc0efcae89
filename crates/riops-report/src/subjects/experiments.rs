//! Experiments before and beside their results: what is planned, and which are stored.

use crate::render::table::table_lines;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::Note;
use riops_model::study::{Between, Experiment, Reset, Study, start_line};
use riops_model::summary::ExperimentSummary;
use riops_model::units::Span;
use riops_model::units::format::{count, short_id, to_the_minute};
use riops_model::units::text::one_line;

/// Returns the cells of an experiment, how they are measured, and the estimated time.
pub fn plan_text(study: &Study) -> String {
    let experiment = &study.experiment;
    let mut lines = vec![start_line(study)];
    lines.extend(rules(experiment).into_iter().map(|rule| format!("  {rule}")));
    lines.push("cells:".to_owned());
    lines.extend(experiment.cells.iter().map(|cell| format!("  {}", experiment.cell_name(cell))));
    lines.iter().map(|line| one_line(line) + "\n").collect()
}

/// What happens between the runs.
fn rules(experiment: &Experiment) -> Vec<String> {
    let Between { checkpoint, vacuum, idle_device_s, cool_down_s, .. } = experiment.between;
    let Between { before, after, .. } = &experiment.between;
    let time = Span::of_seconds;
    let rules = [
        match experiment.reset {
            Reset::None => None,
            Reset::Restore => Some("each run uses a copy of the database".to_owned()),
            Reset::Prepare => Some("the dataset is recreated before each run".to_owned()),
        },
        checkpoint.then(|| "CHECKPOINT before each run".to_owned()),
        vacuum.then(|| "VACUUM (ANALYZE) before each run".to_owned()),
        idle_device_s
            .map(|limit| format!("wait for idle devices before each run, at most {}", time(limit))),
        (cool_down_s > 0.0).then(|| format!("pause of {} between two runs", time(cool_down_s))),
        before.as_ref().map(|command| format!("`{command}` before each run")),
        after.as_ref().map(|command| format!("`{command}` after each run")),
        experiment.time_limit_s.map(|limit| format!("time limit {}", time(limit))),
        Some(format!("random seed {}", experiment.seed)),
    ];
    rules.into_iter().flatten().collect()
}

/// Returns the stored experiments in lines.
pub fn experiments_text(experiments: &[ExperimentSummary], columns: usize) -> String {
    table_lines(&experiments_table(experiments, |_| false, |_| String::new()), columns).join("\n")
        + "\n"
}

/// `in progress` for an experiment with a run in progress, otherwise whether it has ended.
pub fn experiment_state(experiment: &ExperimentSummary, is_measured: bool) -> &'static str {
    match (experiment.finished_at, is_measured) {
        (_, true) => "in progress",
        (Some(_), false) => "finished",
        (None, false) => "unfinished",
    }
}

/// Returns a table of stored experiments. The ids are links to the pages of the dashboard. `is_measured` returns whether the
/// experiment with this id has a run in progress, and `verdict` its result in a sentence.
pub fn experiments_table(
    experiments: &[ExperimentSummary],
    is_measured: impl Fn(&str) -> bool,
    verdict: impl Fn(&str) -> String,
) -> Table {
    Table::from_items("experiments", experiments, |experiment| {
        let id = Cell::from(short_id(&experiment.id))
            .with_link(format!("/experiments/{}", experiment.id));
        let state = experiment_state(experiment, is_measured(&experiment.id));
        [
            (text_column("id"), id),
            (text_column("created"), to_the_minute(&experiment.created_at.to_string()).into()),
            (text_column("kind"), experiment.kind.as_str().into()),
            (text_column("name"), experiment.name.as_str().into()),
            (number_column("runs"), count(experiment.runs).into()),
            (text_column("state"), state.into()),
            (text_column("verdict").optional(), verdict(&experiment.id).into()),
            (text_column("note"), Note::newest_line(&experiment.notes).unwrap_or_default().into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::study::example;

    #[test]
    fn the_plan_has_the_cells_the_rules_and_the_time() {
        let mut experiment = Experiment { reset: Reset::Restore, ..example::sweep(2) };
        experiment.between.checkpoint = true;
        experiment.between.cool_down_s = 5.0;
        let study = Study { experiment, finished: Vec::new() };
        insta::assert_snapshot!(plan_text(&study), @r"
        example: 2 cells, 3 runs each, about 2min
          each run uses a copy of the database
          CHECKPOINT before each run
          pause of 5s between two runs
          random seed 1
        cells:
          sessions=1
          sessions=2
        ");
    }
}
