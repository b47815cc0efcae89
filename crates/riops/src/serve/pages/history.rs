//! The figures of the stored runs with a label, with their change points.

use axum::extract::{RawQuery, State};
use indexmap::IndexMap;
use serde::Serialize;

use super::super::app::{Shared, layout};
use super::super::failure::{Answer, Failure};
use super::super::query::Query;
use crate::plan::WorkPlan;
use crate::report::chart::Chart;
use crate::report::{change_text, history_chart, history_summary};
use crate::stats::{ChangeSettings, Outcome};
use crate::store::RunFilter;
use crate::study::{HistoryChange, HistoryChoice, HistoryPoint, HistorySeries, history_of};
use crate::summary::RunSummary;
use crate::units::format::to_the_minute;

/// Maximum number of runs of a history: the newest ones.
const RUNS_MAX: u32 = 2_000;
/// Maximum number of labels to select from: the labels of the newest runs.
const LABELS_MAX: usize = 100;

/// The values of `history.html`.
#[derive(Serialize)]
struct History {
    label: String,
    workload: String,
    workloads: Vec<String>,
    figure: &'static str,
    figures: Vec<(&'static str, &'static str)>,
    series: Vec<View>,
    /// The labels to select from, if none is selected.
    labels: Vec<Choice>,
}

/// A label of stored runs.
#[derive(Serialize)]
struct Choice {
    label: String,
    href: String,
    runs: usize,
}

/// A series of comparable runs.
#[derive(Serialize)]
struct View {
    name: String,
    figure: &'static str,
    /// The result, in a sentence.
    summary: String,
    chart: Option<Chart>,
    rows: Vec<Row>,
}

/// A run, newest first.
#[derive(Serialize)]
struct Row {
    id: String,
    started: String,
    value: String,
    /// The change that this run is the first to show, and its tone.
    change: Option<(String, &'static str)>,
    /// Why a new era begins with this run.
    acknowledged: Option<String>,
    /// What makes the run other than a plain valid one.
    marks: Option<String>,
}

/// The history of a label.
pub(in crate::serve) async fn history(State(app): Shared, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(&query.unwrap_or_default());
    let given = |name: &str| query.given(name).map(str::to_owned);
    let (label, workload) = (given("label"), given("workload"));
    let choice = query.given("figure").map(|name| {
        let choice = HistoryChoice::all().find(|choice| choice.option == name);
        choice.ok_or_else(|| Failure::Request(format!("\"{name}\" is not a figure")))
    });
    let choice = choice.transpose()?;
    let (figure, figures) =
        choice.map_or(("", Vec::new()), |choice| (choice.option, choice.figures));
    let filter = RunFilter {
        label: label.clone(),
        workload: workload.clone(),
        valid: Some(true),
        unverified: true,
        limit: Some(RUNS_MAX),
        ..RunFilter::default()
    };
    let read = app.stored.any(move |store| {
        let runs = store.list(&filter)?;
        if filter.label.is_none() {
            return Ok((Vec::new(), choices(&runs)));
        }
        let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        let effect = ChangeSettings::default().change_min;
        let record = |id: &str| store.select(id).ok()?.into_iter().next();
        let series = history_of(&runs, &store.stages(&ids)?, &figures, effect, &record);
        Ok((series, Vec::new()))
    });
    let (series, labels) = read.await?;
    let page = History {
        label: label.unwrap_or_default(),
        workload: workload.unwrap_or_default(),
        workloads: WorkPlan::names(),
        figure,
        figures: HistoryChoice::all().map(|choice| (choice.option, choice.name)).collect(),
        series: series
            .iter()
            .enumerate()
            .map(|(position, series)| view(position, series))
            .collect(),
        labels,
    };
    app.page("history.html", layout("riops: history", "/history"), page)
}

/// Returns the labels of these runs, starting with the newest run.
fn choices(runs: &[RunSummary]) -> Vec<Choice> {
    let mut counts: IndexMap<&String, usize> = IndexMap::new();
    for label in runs.iter().filter_map(|run| run.label.as_ref()) {
        *counts.entry(label).or_default() += 1;
    }
    let choice = |(label, runs): (&String, usize)| Choice {
        label: label.clone(),
        href: Query::default().with("label", label).after("/history"),
        runs,
    };
    counts.into_iter().take(LABELS_MAX).map(choice).collect()
}

fn view(position: usize, series: &HistorySeries) -> View {
    let rows = series.points.iter().enumerate().rev();
    View {
        name: series.name.clone(),
        figure: series.figure.name(),
        summary: history_summary(series),
        chart: (series.points.len() > 1).then(|| history_chart(position, series)),
        rows: rows.map(|(index, point)| row(series, index, point)).collect(),
    }
}

fn row(series: &HistorySeries, index: usize, point: &HistoryPoint) -> Row {
    let change = series.changes.iter().find(|change| change.index == index);
    let shown = |change: &HistoryChange| {
        (
            change_text(change.ratio()),
            if change.outcome == Outcome::Slower { "bad" } else { "good" },
        )
    };
    Row {
        id: point.run.clone(),
        started: to_the_minute(&point.started_at),
        value: series.figure.text(point.value),
        change: change.map(shown),
        acknowledged: point.acknowledged.clone(),
        marks: point.marks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::report::chart::Content;
    use crate::study::GateVerdict;

    fn series(values: &[f64], changes: Vec<HistoryChange>) -> HistorySeries {
        let points = values.iter().enumerate().map(|(position, &value)| HistoryPoint {
            run: position.to_string(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            value,
            at_least: false,
            marks: None,
            acknowledged: None,
        });
        HistorySeries {
            stage: 0,
            name: "rows, 2 sessions".to_owned(),
            figure: Figure::RowsPerS,
            points: points.collect(),
            changes,
            runs_needed: 12,
            verdict: GateVerdict::NotSlower,
        }
    }

    #[test]
    fn the_run_that_shows_a_change_is_marked() {
        let change = HistoryChange {
            index: 2,
            range: None,
            run: "2".to_owned(),
            mean_before: 1000.0,
            mean_after: 900.0,
            p: 0.000_1,
            outcome: Outcome::Slower,
            time: None,
        };
        let view = view(0, &series(&[1000.0, 1000.0, 900.0, 900.0], vec![change]));
        let changed: Vec<_> = view.rows.iter().filter(|row| row.change.is_some()).collect();
        assert_eq!(changed.len(), 1);
        // Newest first.
        assert_eq!((changed[0].id.as_str(), view.rows[0].id.as_str()), ("2", "3"));
        assert_eq!(changed[0].change, Some(("-10.0%".to_owned(), "bad")));
        let expected =
            "4 runs: 1 change of rows/s, the last by -10.0% with run 3 (from 1,000 to 900).";
        assert_eq!(view.summary, expected);
        let plot = view.chart.unwrap().plot;
        // The step fills the chart, and the runs are named.
        assert_eq!(plot.y.range, Some((885.0, 1015.0)));
        let Content::Points { names, series, .. } = plot.content else { panic!() };
        assert_eq!(names[2], "2026-01-01 2");
        let means: Vec<f64> = series[1].points.iter().map(|point| point.y).collect();
        assert_eq!(means, [1000.0, 1000.0, 900.0, 900.0]);
    }

    #[test]
    fn a_single_run_has_no_chart() {
        let view = view(0, &series(&[5.0], Vec::new()));
        assert!(
            view.chart.is_none() && view.summary.contains("1 of the 12 runs needed"),
            "{}",
            view.summary
        );
    }
}
