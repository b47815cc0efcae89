//! The result of an experiment as an HTML page.

use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::super::comparison::{change_interval, change_text, outcome_text};
use super::super::format::factor;
use super::cells::with_interval;
use super::charts::charts;
use super::lead::{conclusion, head};
use super::limits::NODES_TITLE;
use super::model::{StudyKind, StudyView};
use super::tables::tables;
use super::text::title;
use crate::experiment::Level;
use crate::report::format::rate;
use crate::report::page::{Chart, Layout, Table, environment};
use crate::stats::Outcome;

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
pub(super) struct Badge {
    pub(super) text: String,
    pub(super) tone: &'static str,
}

/// A labeled text, as the macros of the pages show it.
#[derive(Debug, Serialize)]
struct Fact {
    label: &'static str,
    texts: Vec<String>,
    tone: Option<&'static str>,
}

/// The main result.
#[derive(Debug, Serialize)]
pub(super) struct Headline {
    label: String,
    pub(super) value: String,
    pub(super) unit: String,
    pub(super) detail: String,
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
        facts: facts(view, head(view)),
        headline: headline(view),
        conclusion: facts(view, conclusion(view)),
        tables,
        details,
        charts: charts(view),
    };
    environment()?.get_template("study.html")?.render(Value::from(Serde(page)))
}

pub(super) fn badge(view: &StudyView) -> Badge {
    let done = view.runs.usable + view.runs.invalid + view.runs.failed;
    if view.planned_runs.is_some_and(|planned| done < planned) {
        return Badge { text: "incomplete".to_owned(), tone: "warn" };
    }
    if view.runs.usable != done {
        return Badge { text: "some runs not usable".to_owned(), tone: "warn" };
    }
    let marks = view.marked.iter().map(|(mark, count)| format!(", {count} of {done} {mark}"));
    let text = format!("all runs valid{}", marks.collect::<String>());
    Badge { text, tone: if view.marked.is_empty() { "good" } else { "warn" } }
}

fn facts(view: &StudyView, lines: Vec<(&'static str, Vec<String>)>) -> Vec<Fact> {
    let outcome = view.improvement.as_ref().and_then(|improvement| {
        let row = improvement.rows.iter().find(|row| row.figure == view.main)?;
        row.against.as_ref()?.outcome
    });
    let tone = |label| match (label, outcome) {
        ("not usable", _) | ("verdict", Some(Outcome::Slower)) => Some("bad"),
        ("note" | "caution", _) => Some("warn"),
        ("verdict", Some(Outcome::Faster)) => Some("good"),
        _ => None,
    };
    let fact = |(label, texts)| Fact { label, texts, tone: tone(label) };
    lines.into_iter().map(fact).collect()
}

pub(super) fn headline(view: &StudyView) -> Option<Headline> {
    match view.kind {
        StudyKind::Sweep => of_best(view),
        StudyKind::Ab => of_test(view),
        StudyKind::Saturation => of_search(view),
    }
}

/// The main figure of the best cell.
fn of_best(view: &StudyView) -> Option<Headline> {
    let cell = view.cells.get(view.best?)?;
    let main = view.main_of(&cell.group)?;
    let text = |value| main.figure.text(value);
    let interval = main
        .estimate
        .interval
        .map(|found| format!("95% interval {} to {}", text(found.low), text(found.high)));
    let against = main.against_baseline.as_ref();
    let scaling = against.and_then(|against| match against.outcome? {
        Outcome::Faster | Outcome::Slower => {
            Some(format!("{}x the baseline", factor(against.ratio)))
        }
        Outcome::Equivalent => Some("equivalent to the baseline".to_owned()),
        Outcome::Inconclusive => Some("no significant difference from the baseline".to_owned()),
    });
    let detail: Vec<String> = interval.into_iter().chain(scaling).collect();
    Some(Headline {
        label: format!("Best: {}", cell.name),
        value: text(main.estimate.value),
        unit: main.figure.heading().to_owned(),
        detail: detail.join(" · "),
    })
}

/// The second variant relative to the first.
fn of_test(view: &StudyView) -> Option<Headline> {
    let [one, other] = view.cells.as_slice() else {
        return None;
    };
    let main = view.main_of(&other.group)?;
    let against = main.against_baseline.as_ref()?;
    Some(Headline {
        label: format!("{} relative to {}", other.name, one.name),
        value: match against.outcome? {
            // The estimate would look like an effect.
            Outcome::Inconclusive => outcome_text(Outcome::Inconclusive).to_owned(),
            _ => change_text(against.ratio),
        },
        unit: main.figure.heading().to_owned(),
        detail: against.interval.map(change_interval).unwrap_or_default(),
    })
}

/// What the search of a single cell found.
fn of_search(view: &StudyView) -> Option<Headline> {
    let [cell] = view.cells.as_slice() else {
        return None;
    };
    let found = cell.saturation.as_ref()?;
    if let Some(per_s) = found.rate.as_ref().and_then(|rate| rate.rate_per_s) {
        return Some(Headline {
            label: "Highest sustained rate".to_owned(),
            value: rate(per_s),
            unit: "transactions/s".to_owned(),
            detail: found.thresholds.join(" and "),
        });
    }
    let sessions = found.sessions.as_ref()?.saturation;
    let level = cell.levels.iter().find(|level| level.level == Level::Sessions(sessions))?;
    let main = view.main_of(&level.group)?;
    Some(Headline {
        label: "Saturation".to_owned(),
        value: sessions.to_string(),
        unit: "sessions".to_owned(),
        detail: format!("{} TPS", with_interval(main)),
    })
}
