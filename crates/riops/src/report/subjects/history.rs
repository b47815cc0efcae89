//! The figures of stored runs over time, with the points at which they changed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::comparison::{TimeChange, change_of_time};
use crate::figure::Figure;
use crate::plan::WorkPlan;
use crate::record::Record;
use crate::report::document::Document;
use crate::report::effect::change_text;
use crate::report::sections::why::why;
use crate::report::table::{Cell, Table, number, word};
use crate::report::words;
use crate::stats::{ChangeSettings, Outcome, change_points};
use crate::store::{RunSummary, StageSummary};
use crate::units::format::{bounded, count, number_of, rate, short_id, to_the_minute};

/// Returns the figures that can be selected for every series.
pub fn history_figures() -> impl Iterator<Item = Figure> {
    [Figure::RowsPerS, Figure::TransactionsPerS].into_iter().chain(Figure::compared_percentiles())
}

/// The main figure of a stage: with a rate the 99th percentile, because the throughput is given.
fn main_figure(run: &RunSummary, stage: &StageSummary) -> Figure {
    let counts_transactions = WorkPlan::default_of(&run.workload)
        .is_some_and(|work| words::of(&work).traits().counts_transactions);
    let is_timed = stage.kind == "statement" || stage.kind == "observed" && stage.transactions == 0;
    if is_timed {
        Figure::Seconds
    } else if run.rate_per_s.is_some() {
        Figure::P99Us
    } else if counts_transactions || stage.rows == 0 {
        Figure::TransactionsPerS
    } else {
        Figure::RowsPerS
    }
}

/// The value of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Id of the run.
    pub run: String,
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// The value, in the unit of the figure.
    pub value: f64,
    /// Whether the value is only a lower bound.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub at_least: bool,
    /// What makes the run other than a plain valid one, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<String>,
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryChange {
    /// Position of the first run after the change, from 0.
    pub index: usize,
    /// Id of this run.
    pub run: String,
    /// Mean up to the change, since the previous one.
    pub mean_before: f64,
    /// Mean from the change on, up to the next one.
    pub mean_after: f64,
    /// The p-value of the t-test of the two means.
    pub p: f64,
    /// Whether the change is an improvement or a regression.
    pub outcome: Outcome,
    /// The change of the time of a transaction, if it is known of the runs around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeChange>,
}

impl HistoryChange {
    /// The change as text: `-5.1%`.
    #[must_use]
    pub fn text(&self) -> String {
        change_text(self.mean_after / self.mean_before)
    }
}

/// Maximum number of runs on each side of a change whose times are compared.
const RUNS_AROUND: usize = 10;

/// A figure of runs with the same workload, stage and sessions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySeries {
    /// Position of the stage in its runs, from 0.
    #[serde(skip)]
    pub stage: usize,
    /// Workload, stage and number of sessions.
    pub name: String,
    /// The figure.
    pub figure: Figure,
    /// The runs.
    pub points: Vec<HistoryPoint>,
    /// The changes.
    pub changes: Vec<HistoryChange>,
}

impl HistorySeries {
    /// Adds to each change what explains it, from the records of the runs around it. `record` returns that of an id.
    pub fn explain(&mut self, record: &dyn Fn(&str) -> Option<Record>) {
        let mut ends: Vec<usize> = self.changes.iter().map(|change| change.index).collect();
        ends.push(self.points.len());
        let mut start = 0;
        for (change, &end) in self.changes.iter_mut().zip(ends.iter().skip(1)) {
            let records = |from: usize, to: usize| -> Vec<Record> {
                let points = self.points.get(from..to).unwrap_or_default();
                points.iter().filter_map(|point| record(&point.run)).collect()
            };
            let before = records(start.max(change.index.saturating_sub(RUNS_AROUND)), change.index);
            let after = records(change.index, end.min(change.index + RUNS_AROUND));
            change.time = change_of_time(&before, &after, self.stage);
            start = change.index;
        }
    }

    /// What a series without changes shows: fewer than two sides of a change cannot show any.
    #[must_use]
    pub fn without_changes(&self) -> String {
        let needed = 2 * ChangeSettings::default().side_min;
        if self.points.len() < needed {
            return format!("unknown: at least {needed} runs are needed");
        }
        "none".to_owned()
    }
}

/// The figures of valid runs over time, one series for each stage of each workload with the same number of
/// sessions and the same rate. `effect` is the smallest relevant change, as a share.
#[must_use]
pub fn history(
    runs: &[RunSummary],
    stages: &[StageSummary],
    figure: Option<Figure>,
    effect: f64,
) -> Vec<HistorySeries> {
    let mut ordered: Vec<&RunSummary> =
        runs.iter().filter(|run| run.valid && run.status == "done").collect();
    ordered.sort_by(|one, next| one.started_at.cmp(&next.started_at));
    let mut by_run: BTreeMap<&str, Vec<&StageSummary>> = BTreeMap::new();
    for stage in stages {
        by_run.entry(&stage.run_id).or_default().push(stage);
    }
    let mut series: Vec<(Vec<String>, HistorySeries)> = Vec::new();
    for run in ordered {
        for stage in by_run.get(run.id.as_str()).into_iter().flatten() {
            let figure = figure.unwrap_or_else(|| main_figure(run, stage));
            let stored = stage.figure(figure.as_str());
            let Some(value) = stored.filter(|&value| value > 0.0) else {
                continue;
            };
            let (name, origin) = (name_of(run, stage), origin_of(run));
            let point = HistoryPoint {
                run: run.id.clone(),
                started_at: run.started_at.clone(),
                value,
                at_least: is_bound(figure, stage),
                marks: run.marks.clone(),
            };
            let is_same = |(known, each): &&mut (Vec<String>, HistorySeries)| {
                *known == origin && each.name == name && each.figure == figure
            };
            if let Some((_, known)) = series.iter_mut().find(is_same) {
                known.points.push(point);
            } else {
                let (points, changes) = (vec![point], Vec::new());
                let at = stage.position.saturating_sub(1) as usize;
                let new = HistorySeries { stage: at, name, figure, points, changes };
                series.push((origin, new));
            }
        }
    }
    let mut series = named_by_origin(series);
    series.sort_by(|one, next| one.name.cmp(&next.name));
    for each in &mut series {
        each.changes = changes(each, effect);
    }
    series
}

fn is_bound(figure: Figure, stage: &StageSummary) -> bool {
    let from = stage.figure("lower_bound_from");
    figure.percent().zip(from).is_some_and(|(percent, from)| percent >= from)
}

/// What distinguishes the series: runs with other values here are not comparable.
fn name_of(run: &RunSummary, stage: &StageSummary) -> String {
    let mut parts = vec![run.title.clone()];
    if run.stages > 1 {
        parts.push(stage.name.clone());
    }
    parts.extend(stage.batch.map(|batch| format!("batch {}", count(batch))));
    let updates = run.update_percent.filter(|&percent| percent > 0.0);
    parts.extend(updates.map(|percent| format!("{percent}% updates")));
    parts.extend(run.rate_per_s.map(|per_s| format!("rate {}/s", rate(per_s))));
    parts.push(number_of(stage.sessions.into(), "session"));
    parts.join(", ")
}

/// What else distinguishes the series: its name has it only where it differs.
fn origin_of(run: &RunSummary) -> Vec<String> {
    let parts = [&run.flavor, &run.client_host, &run.distribution];
    parts.into_iter().map(|part| part.clone().unwrap_or_default()).collect()
}

/// Adds to the names of series with the same name where they come from.
fn named_by_origin(series: Vec<(Vec<String>, HistorySeries)>) -> Vec<HistorySeries> {
    let known: Vec<_> =
        series.iter().map(|(origin, each)| (each.name.clone(), origin.clone())).collect();
    let named = |(origin, mut each): (Vec<String>, HistorySeries)| {
        let others = || known.iter().filter(|(name, _)| *name == each.name);
        let differs = |(position, part): &(usize, &String)| {
            !part.is_empty() && others().any(|(_, other)| other.get(*position) != Some(*part))
        };
        let parts: Vec<_> = origin.iter().enumerate().filter(differs).collect();
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| format!(", {part}")).collect();
        each.name.extend(parts);
        each
    };
    series.into_iter().map(named).collect()
}

fn changes(series: &HistorySeries, effect: f64) -> Vec<HistoryChange> {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let settings = ChangeSettings { change_min: effect, ..ChangeSettings::default() };
    change_points(&values, &settings)
        .into_iter()
        .filter_map(|found| {
            Some(HistoryChange {
                index: found.index,
                run: series.points.get(found.index)?.run.clone(),
                mean_before: found.mean_before,
                mean_after: found.mean_after,
                p: found.p,
                outcome: found.outcome(series.figure.direction()),
                time: None,
            })
        })
        .collect()
}

/// The document of the series: a line for each run, and a line where the level changed.
#[must_use]
pub fn history_document(series: &[HistorySeries]) -> Document {
    let mut document = Document::default();
    for (position, each) in series.iter().enumerate() {
        if position > 0 {
            document.gap();
        }
        document.title(format!("{}: {}", each.name, each.figure.name()));
        document.gap();
        document.table(table(each));
        document.gap();
        if each.changes.is_empty() {
            document.line("changes", each.without_changes());
        }
        for (position, change) in each.changes.iter().enumerate() {
            document.line(if position == 0 { "changes" } else { "" }, change_line(each, change));
            if let Some(time) = &change.time {
                why(&mut document, time);
            }
        }
    }
    document
}

fn table(series: &HistorySeries) -> Table {
    let largest = series.points.iter().map(|point| point.value).fold(f64::MIN_POSITIVE, f64::max);
    let columns = [
        word("id"),
        word("started (UTC)"),
        number(series.figure.name()).drawn(),
        word("change"),
        word("status"),
    ];
    let row = |(index, point): (usize, &HistoryPoint)| {
        let change = series.changes.iter().find(|change| change.index == index);
        vec![
            short_id(&point.run).into(),
            to_the_minute(&point.started_at).into(),
            Cell::from(bounded(series.figure.text(point.value), point.at_least))
                .with_bar(point.value / largest),
            change.map(verdict).unwrap_or_default().into(),
            point.marks.clone().unwrap_or_default().into(),
        ]
    };
    Table::new("runs", columns, series.points.iter().enumerate().map(row))
}

/// `SLOWER -5.1%`.
fn verdict(change: &HistoryChange) -> String {
    let name = change.outcome.as_str().to_uppercase();
    format!("{name} {}", change.text())
}

fn change_line(series: &HistorySeries, change: &HistoryChange) -> String {
    let at = series
        .points
        .get(change.index)
        .map_or_else(String::new, |point| to_the_minute(&point.started_at));
    let text = |value| series.figure.text(value);
    format!(
        "{} since {at} ({}): {} → {} (p {:.1e})",
        verdict(change),
        short_id(&change.run),
        text(change.mean_before),
        text(change.mean_after),
        change.p
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document_text;

    /// Runs with these rates, in thousands of rows per second, and this number of sessions.
    fn stored(rates: &[f64], sessions: u32) -> (Vec<RunSummary>, Vec<StageSummary>) {
        let each = rates.iter().enumerate().map(|(number, thousands)| {
            let id = format!("run-{sessions}-{number:03}");
            let run = RunSummary {
                id: id.clone(),
                started_at: format!("2026-01-{:02}T00:00:00Z", number + 1),
                workload: "rows".to_owned(),
                title: "rows".to_owned(),
                status: "done".to_owned(),
                valid: true,
                stages: 1,
                ..RunSummary::default()
            };
            let stage = StageSummary {
                run_id: id,
                name: "rows".to_owned(),
                sessions,
                rows: 1,
                rows_per_s: thousands * 1e3,
                service_p99_us: Some(100.0),
                ..StageSummary::default()
            };
            (run, stage)
        });
        each.unzip()
    }

    const SHIFT: [f64; 12] =
        [99.0, 101.0, 100.0, 99.5, 100.5, 100.0, 94.5, 95.0, 95.5, 94.0, 95.0, 95.5];

    #[test]
    fn a_change_names_the_first_run_after_it() {
        let (runs, stages) = stored(&SHIFT, 4);
        let found = history(&runs, &stages, None, 0.02);
        let [series] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((series.figure, series.name.as_str()), (Figure::RowsPerS, "rows, 4 sessions"));
        let [change] = series.changes.as_slice() else { panic!("{series:?}") };
        assert_eq!((change.index, change.run.as_str()), (6, "run-4-006"));
        assert_eq!(change.outcome, Outcome::Slower);
        insta::assert_snapshot!(document_text(&history_document(&found), 100));
    }

    #[test]
    fn marked_runs_are_marked_in_the_history() {
        let (mut runs, stages) = stored(&SHIFT[..2], 4);
        runs[1].marks = Some("disturbed".to_owned());
        let text = document_text(&history_document(&history(&runs, &stages, None, 0.02)), 100);
        let rows: Vec<_> = text.lines().filter(|line| line.contains("2026-01-0")).collect();
        assert!(!rows[0].contains("disturbed") && rows[1].ends_with("  disturbed"), "{text}");
    }

    #[test]
    fn too_few_runs_are_not_a_series_without_changes() {
        let text = |runs: usize| {
            let (runs, stages) = stored(&SHIFT[..runs], 4);
            document_text(&history_document(&history(&runs, &stages, None, 0.02)), 100)
        };
        let few = text(11);
        assert!(few.contains("changes      unknown: at least 12 runs are needed"), "{few}");
        assert!(!text(12).contains("unknown"), "{}", text(12));
    }

    #[test]
    fn only_comparable_valid_runs_form_a_series() {
        let (mut runs, mut stages) = stored(&SHIFT, 4);
        let (other_runs, other_stages) = stored(&SHIFT[..3], 8);
        runs.extend(other_runs);
        stages.extend(other_stages);
        runs[0].valid = false;
        let lengths: Vec<_> = history(&runs, &stages, None, 0.02)
            .iter()
            .map(|series| (series.name.clone(), series.points.len()))
            .collect();
        let expected = [("rows, 4 sessions".to_owned(), 11), ("rows, 8 sessions".to_owned(), 3)];
        assert_eq!(lengths, expected);
        // Another machine is another series.
        runs[1].client_host = Some("fast".to_owned());
        let names: Vec<_> = history(&runs, &stages, None, 0.02)
            .into_iter()
            .map(|series| (series.name, series.points.len()))
            .collect();
        assert_eq!(
            names[..2],
            [("rows, 4 sessions".to_owned(), 10), ("rows, 4 sessions, fast".to_owned(), 1)]
        );
    }

    #[test]
    fn with_a_rate_the_latency_is_the_main_figure() {
        let (mut runs, stages) = stored(&SHIFT, 4);
        for run in &mut runs {
            run.rate_per_s = Some(1_000.0);
        }
        let found = history(&runs, &stages, None, 0.02);
        assert_eq!(found[0].figure, Figure::P99Us);
        assert_eq!(found[0].name, "rows, rate 1,000/s, 4 sessions");
        assert_eq!(found[0].changes, []);
        let rows = history(&runs, &stages, Some(Figure::RowsPerS), 0.02);
        assert_eq!(rows[0].changes.len(), 1);
    }
}
