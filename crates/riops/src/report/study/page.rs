//! The result of an experiment as an HTML page.

use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::charts::charts;
use super::improvement::factor;
use super::lead::{conclusion, head};
use super::limits::NODES_TITLE;
use super::model::{StudyKind, StudyView};
use super::tables::tables;
use super::text::title;
use crate::report::page::{Chart, Layout, Table, environment};

/// The values of the template `study.html`.
#[derive(Debug, Serialize)]
struct Page<'a> {
    layout: &'a Layout,
    title: String,
    id: &'a str,
    badge: Badge,
    facts: Vec<Fact>,
    headline: Option<Headline>,
    conclusion: Vec<Fact>,
    tables: Vec<Table>,
    details: Vec<Table>,
    charts: Vec<Chart>,
}

/// Whether the experiment is complete, in a word.
#[derive(Debug, Serialize)]
struct Badge {
    text: &'static str,
    tone: &'static str,
}

/// A labeled text, as the macros of the pages show it.
#[derive(Debug, Serialize)]
struct Fact {
    label: &'static str,
    texts: Vec<String>,
    tone: Option<&'static str>,
}

/// The main figure of the best cell.
#[derive(Debug, Serialize)]
struct Headline {
    label: String,
    value: String,
    unit: String,
    detail: String,
}

/// Returns the page within a frame that the caller chooses.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn html(view: &StudyView, layout: &Layout) -> Result<String, minijinja::Error> {
    let is_detail = |table: &Table| table.title == NODES_TITLE;
    let (details, tables) = tables(view).into_iter().partition(is_detail);
    let page = Page {
        layout,
        title: title(view),
        id: &view.id,
        badge: badge(view),
        facts: facts(head(view)),
        headline: headline(view),
        conclusion: facts(conclusion(view)),
        tables,
        details,
        charts: charts(view),
    };
    environment()?.get_template("study.html")?.render(Value::from(Serde(page)))
}

fn badge(view: &StudyView) -> Badge {
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    if view.planned_runs.is_some_and(|planned| done < planned) {
        return Badge { text: "incomplete", tone: "warn" };
    }
    match view.runs.usable == done {
        true => Badge { text: "all runs valid", tone: "good" },
        false => Badge { text: "some runs not usable", tone: "warn" },
    }
}

fn facts(lines: Vec<(&'static str, Vec<String>)>) -> Vec<Fact> {
    let tone = |label| match label {
        "not usable" => Some("bad"),
        "note" => Some("warn"),
        "verdict" | "best" => Some("good"),
        _ => None,
    };
    let fact = |(label, texts)| Fact { label, texts, tone: tone(label) };
    lines.into_iter().map(fact).collect()
}

fn headline(view: &StudyView) -> Option<Headline> {
    if view.kind != StudyKind::Sweep {
        return None;
    }
    let cell = view.cells.get(view.best?)?;
    let main = view.main_of(&cell.group)?;
    let text = |value| main.figure.text(value);
    let interval = main
        .estimate
        .interval
        .map(|found| format!("95% interval {} to {}", text(found.low), text(found.high)));
    let against = main.against_baseline.as_ref();
    let scaling = against.map(|against| format!("{}x the baseline", factor(against.ratio)));
    let detail: Vec<String> = interval.into_iter().chain(scaling).collect();
    Some(Headline {
        label: format!("Best: {}", cell.name),
        value: text(main.estimate.value),
        unit: main.figure.name().to_owned(),
        detail: detail.join(" · "),
    })
}
