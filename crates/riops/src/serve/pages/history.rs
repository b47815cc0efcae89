//! A figure over the stored runs with a label, with its change points.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Serialize;

use super::super::app::{Place, Shared, layout};
use super::super::failure::Failure;
use super::super::query::Query;
use crate::report::page::{Axis, AxisScale, Chart, Content, Mark, Plot, Series, Unit, rounded};
use crate::report::{counts_transactions, duration_us, percent, rate};
use crate::stats::{ChangePoint, ChangeSettings, Direction, Outcome, change_points};
use crate::store::{RunFilter, RunSummary};

/// Runs of a history: the newest ones.
const RUNS_MAX: u32 = 2_000;
/// Labels to select from: those of the newest runs.
const LABELS_MAX: usize = 100;

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Rows,
    Transactions,
    P99,
}

impl Figure {
    const ALL: [Self; 3] = [Self::Rows, Self::Transactions, Self::P99];

    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows_per_s",
            Self::Transactions => "transactions_per_s",
            Self::P99 => "p99_us",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Rows => "rows per second",
            Self::Transactions => "transactions per second",
            Self::P99 => "99th percentile of the latency",
        }
    }

    fn of(self, run: &RunSummary) -> Option<f64> {
        let value = match self {
            Self::Rows => run.rows_per_s,
            Self::Transactions => run.transactions_per_s,
            Self::P99 => run.p99_us,
        };
        value.filter(|value| *value > 0.0)
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Rows | Self::Transactions => rate(value),
            Self::P99 => duration_us(value),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Rows | Self::Transactions => Unit::PerSecond,
            Self::P99 => Unit::DurationUs,
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::Rows | Self::Transactions => Direction::HigherIsBetter,
            Self::P99 => Direction::LowerIsBetter,
        }
    }
}

/// The values of `history.html`.
#[derive(Serialize)]
struct History {
    label: String,
    /// Title of the workload, and those of all runs with the label.
    workload: String,
    titles: Vec<String>,
    figure: &'static str,
    figures: Vec<(&'static str, &'static str)>,
    /// What was found, in a sentence.
    summary: Option<String>,
    chart: Option<Chart>,
    rows: Vec<Row>,
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

/// A run, newest first.
#[derive(Serialize)]
struct Row {
    id: String,
    started: String,
    title: String,
    server: String,
    value: String,
    /// The change that this run is the first to show, and its tone.
    change: Option<(String, &'static str)>,
}

/// The history of a label.
pub(in crate::serve) async fn history(State(app): Shared, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(&query.unwrap_or_default());
    let answer = async {
        let given = |name: &str| query.given(name).map(str::to_owned);
        let label = given("label");
        let figure = given("figure").map(|name| {
            let found = Figure::ALL.into_iter().find(|figure| figure.name() == name);
            found.ok_or_else(|| Failure::Request(format!("\"{name}\" is not a figure")))
        });
        let figure = figure.transpose()?;
        let filter = RunFilter {
            label: label.clone(),
            valid: Some(true),
            limit: Some(RUNS_MAX),
            ..RunFilter::default()
        };
        let runs = app.stored.with(move |store| Ok(store.list(&filter)?)).await?;
        let runs = runs.unwrap_or_default();
        let page = match label {
            Some(label) => view(label, given("workload"), figure, runs),
            None => {
                History { labels: choices(&runs), ..view(String::new(), None, figure, Vec::new()) }
            }
        };
        app.page("history.html", layout("riops: history", Place::History), page)
    };
    app.answer(answer.await)
}

/// Returns the labels of these runs, those of the newest runs first.
fn choices(runs: &[RunSummary]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for label in runs.iter().filter_map(|run| run.label.as_ref()) {
        if let Some(choice) = choices.iter_mut().find(|choice| choice.label == *label) {
            choice.runs += 1;
        } else if choices.len() < LABELS_MAX {
            let href = Query::default().with("label", label).after("/history");
            choices.push(Choice { label: label.clone(), href, runs: 1 });
        }
    }
    choices
}

/// Returns the main figure of the newest run.
fn main_figure(runs: &[RunSummary]) -> Figure {
    match runs.first() {
        Some(run) if counts_transactions(&run.workload) => Figure::Transactions,
        _ => Figure::Rows,
    }
}

/// `runs` are the newest first, as the list of runs. Only those with one title are comparable: by default that of the
/// newest run.
fn view(
    label: String,
    workload: Option<String>,
    figure: Option<Figure>,
    mut runs: Vec<RunSummary>,
) -> History {
    let mut titles: Vec<String> = runs.iter().map(|run| run.title.clone()).collect();
    let workload = workload.or_else(|| titles.first().cloned()).unwrap_or_default();
    titles.sort_unstable();
    titles.dedup();
    runs.retain(|run| run.title == workload);
    let figure = figure.unwrap_or_else(|| main_figure(&runs));
    let oldest_first = || runs.iter().rev().filter_map(|run| Some((run, figure.of(run)?)));
    let values: Vec<f64> = oldest_first().map(|(_, value)| value).collect();
    let changes = change_points(&values, &ChangeSettings::default());
    let mut rows: Vec<Row> = oldest_first()
        .enumerate()
        .map(|(index, (run, value))| {
            let change = changes.iter().find(|change| change.index == index);
            row(run, figure, value, change)
        })
        .collect();
    rows.reverse();
    History {
        workload,
        titles,
        figure: figure.name(),
        figures: Figure::ALL.map(|figure| (figure.name(), figure.title())).to_vec(),
        summary: (!label.is_empty()).then(|| summary(figure, &values, &changes)),
        chart: (values.len() > 1).then(|| chart(figure, &values, &changes)),
        rows,
        label,
        labels: Vec::new(),
    }
}

fn signed(change: &ChangePoint) -> String {
    let sign = if change.change() < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(change.change().abs()))
}

fn row(run: &RunSummary, figure: Figure, value: f64, change: Option<&ChangePoint>) -> Row {
    let tone = |change: &ChangePoint| match change.outcome(figure.direction()) {
        Outcome::Slower => "bad",
        _ => "good",
    };
    Row {
        id: run.id.clone(),
        started: run.started_at.get(..16).unwrap_or(&run.started_at).replace('T', " "),
        title: run.title.clone(),
        server: run.server.clone(),
        value: figure.text(value),
        change: change.map(|change| (signed(change), tone(change))),
    }
}

fn summary(figure: Figure, values: &[f64], changes: &[ChangePoint]) -> String {
    let number = values.len();
    let plural = if number == 1 { "" } else { "s" };
    let runs = format!("{number} valid run{plural} with this label");
    match changes.last() {
        None if number < 2 => format!("{runs}: too few for a history."),
        None => format!("{runs}: no change of the {}.", figure.title()),
        Some(last) => format!(
            "{runs}: the {} changed {} time{}, last by {} with run {} (from {} to {}).",
            figure.title(),
            changes.len(),
            if changes.len() == 1 { "" } else { "s" },
            signed(last),
            last.index + 1,
            figure.text(last.mean_before),
            figure.text(last.mean_after),
        ),
    }
}

fn chart(figure: Figure, values: &[f64], changes: &[ChangePoint]) -> Chart {
    let title = figure.title();
    // The mean from each change to the next one.
    let bounds: Vec<usize> = changes.iter().map(|change| change.index).collect();
    let mean = |index: usize| {
        let start = bounds.iter().rev().find(|&&bound| bound <= index).copied().unwrap_or(0);
        let end = bounds.iter().find(|&&bound| bound > index).copied().unwrap_or(values.len());
        let part = values.get(start..end).unwrap_or_default();
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    let line = |label: &str, values: Vec<f64>| Series {
        label: label.to_owned(),
        values: values.into_iter().map(|value| Some(rounded(value))).collect(),
    };
    let x = Axis {
        label: "run, oldest first".to_owned(),
        unit: Unit::Count,
        scale: AxisScale::Linear,
        range: Some((1.0, values.len() as f64)),
    };
    let mark =
        |change: &ChangePoint| Mark { t_s: change.index as f64 + 1.0, label: signed(change) };
    Chart {
        id: "history-chart".to_owned(),
        title: format!("History of the {title}"),
        summary: summary(figure, values, changes),
        plot: Plot {
            x,
            y: Axis::of(title, figure.unit(), AxisScale::Linear),
            marks: changes.iter().map(mark).collect(),
            sync: None,
            content: Content::Lines {
                xs: (1..=values.len()).map(|number| number as f64).collect(),
                series: vec![
                    line(title, values.to_vec()),
                    line("mean between changes", (0..values.len()).map(mean).collect()),
                ],
            },
        },
        table: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize, rows_per_s: f64) -> RunSummary {
        RunSummary {
            id: number.to_string(),
            workload: "rows".to_owned(),
            title: "rows".to_owned(),
            rows_per_s: Some(rows_per_s),
            ..RunSummary::default()
        }
    }

    #[test]
    fn the_run_that_shows_a_change_is_marked() {
        // Newest first.
        let runs: Vec<RunSummary> = (0..30)
            .rev()
            .map(|number| {
                run(number, if number < 15 { 1000.0 } else { 900.0 } + (number % 3) as f64)
            })
            .collect();
        let page = view("nightly".to_owned(), None, None, runs);
        let changed: Vec<&str> = page
            .rows
            .iter()
            .filter(|row| row.change.is_some())
            .map(|row| row.id.as_str())
            .collect();
        assert_eq!(changed, ["15"]);
        let (text, tone) = page.rows[14].change.as_ref().unwrap();
        assert!(text.starts_with("−10") && *tone == "bad", "{text} {tone}");
        let summary = page.summary.unwrap();
        assert!(summary.contains("30 valid runs") && summary.contains("with run 16"), "{summary}");
        assert_eq!(page.chart.unwrap().plot.marks.len(), 1);
    }

    #[test]
    fn without_a_label_or_runs_there_is_no_chart() {
        assert!(view(String::new(), None, None, Vec::new()).chart.is_none());
        let page = view("a".to_owned(), None, None, vec![run(1, 5.0)]);
        assert!(page.chart.is_none() && page.summary.unwrap().contains("too few"));
    }

    #[test]
    fn runs_of_another_title_are_not_part_of_the_history() {
        let other = RunSummary { title: "other".to_owned(), ..run(3, 9.0) };
        let runs = || vec![other.clone(), run(2, 5.0), run(1, 5.0)];
        let newest = view("a".to_owned(), None, None, runs());
        assert_eq!((newest.workload.as_str(), newest.rows.len()), ("other", 1));
        assert_eq!(newest.titles, ["other", "rows"]);
        let selected = view("a".to_owned(), Some("rows".to_owned()), None, runs());
        assert_eq!(selected.rows.len(), 2);
    }
}
