//! The page and the Markdown of runs: first what a reader decides by, then what it rests on.
//!
//! A page loads nothing from elsewhere. Everything that comes from a record is escaped, and data for charts is JSON
//! in an element that browsers do not run.

use std::fmt::Write as _;

use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::document::run_text;
use super::side_by_side::parts;
use super::view::{Details, RunView, Section};
use super::{access_paths, counters, dots, heatmap, hero, percentiles, series};
use crate::figure::Summary;
use crate::record::Record;
use crate::report::chart::Chart;
use crate::report::document::{Document, Findings};
use crate::report::flame;
use crate::report::glossary::glossary_text;
use crate::report::render::html::{Delivery, Layout, environment};
use crate::report::render::markdown::{add_findings, escaped, row, table};
use crate::report::sections::agents;
use crate::report::sections::bottleneck::resources;
use crate::report::sections::cost;
use crate::report::sections::failures::{drained, failures, late};
use crate::report::sections::queries::queries;
use crate::report::sections::sources::sources;
use crate::report::sections::statements;
use crate::report::sections::time;
use crate::report::sections::window::window;
use crate::report::words;

/// Columns of the text output in a page.
const TEXT_COLUMNS: usize = 100;

/// The values of the template `report.html`.
#[derive(Debug, Serialize)]
struct Page<'a> {
    layout: &'a Layout,
    comparison: Option<Findings>,
    runs: Vec<RunView>,
}

/// Returns the HTML report of one or more records: one file that needs no other. Several records are compared by
/// `comparison`; without it, their figures are shown side by side.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn html(records: &[Record], comparison: Option<&Findings>) -> Result<String, minijinja::Error> {
    html_in(&Layout::new(title(records), Delivery::Inline), records, comparison)
}

/// Returns the report within a frame that the caller chooses.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn html_in(
    layout: &Layout,
    records: &[Record],
    comparison: Option<&Findings>,
) -> Result<String, minijinja::Error> {
    let (comparison, whole) = parts(records, comparison);
    let runs = whole.iter().enumerate();
    let runs = runs.map(|(position, record)| view(record, position, records.len())).collect();
    let page = Page { layout, comparison, runs };
    environment()?.get_template("report.html")?.render(Value::from(Serde(page)))
}

/// Returns the summary of one or more records. Several records are compared by `comparison`; without it, their
/// figures are shown side by side.
#[must_use]
pub fn markdown(records: &[Record], comparison: Option<&Findings>) -> String {
    let mut text = format!("## {}\n", escaped(&title(records)));
    let (comparison, whole) = parts(records, comparison);
    if let Some(comparison) = &comparison {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n### {}", escaped(&comparison.title));
        add_findings(&mut text, comparison);
    }
    for (position, record) in whole.iter().enumerate() {
        let view = view(record, position, records.len());
        summary(&mut text, &view, records.len() > 1);
        let mut results = Document::default();
        words::of(&record.plan.work).results(&mut results, record);
        let tables = access_paths::paths(record).into_iter().chain(results.tables().cloned());
        let tables = tables.chain(counters::steps(record));
        for found in tables.chain(counters::errors(record)) {
            table(&mut text, &found);
        }
    }
    text
}

fn summary(text: &mut String, view: &RunView, has_title: bool) {
    if has_title {
        let _ = writeln!(text, "\n### {}", escaped(&view.title));
    }
    let figure = &view.figure;
    let _ = writeln!(
        text,
        "\n**{}: {} {}** · {}\n",
        escaped(&figure.label),
        escaped(&figure.value),
        escaped(&figure.unit),
        escaped(&figure.detail)
    );
    let _ = writeln!(text, "| | |\n| --- | --- |");
    if !view.tiles.is_empty() {
        let tiles: Vec<_> =
            view.tiles.iter().map(|tile| format!("{} {}", tile.label, tile.value)).collect();
        let _ = writeln!(text, "| latency | {} |", escaped(&tiles.join(" · ")));
    }
    view.verdict.iter().for_each(|fact| row(text, fact));
    let environment = view.sections.iter().flat_map(|section| &section.groups);
    for group in environment.filter(|group| !group.title.is_empty()) {
        group.facts.iter().for_each(|fact| row(text, fact));
    }
    let _ = writeln!(text, "| run | {} |", escaped(&view.identity));
}

/// Returns the charts of a record, in the order of its page.
#[must_use]
pub fn charts(record: &Record) -> Vec<Chart> {
    let id = "run-1";
    let sections = [over_time(record, id), distribution(record, id), machine(record, id)];
    sections.into_iter().flat_map(|section| section.charts).collect()
}

/// Returns the title of the report of these records.
#[must_use]
pub fn title(records: &[Record]) -> String {
    match records {
        [record] => format!("riops: {}", hero::title(record, None)),
        _ => format!("riops: {} runs", records.len()),
    }
}

/// Returns the page of the run at `position` of `runs` runs.
fn view(record: &Record, position: usize, runs: usize) -> RunView {
    let id = format!("run-{}", position + 1);
    let mut view = hero::view(record, &id, (runs > 1).then_some(position + 1));
    view.sections = [
        Section::new(&id, "Time and cost")
            .with_tables(time::table(record))
            .with_tables(cost::table(record)),
        environment_of(record, &id),
        access_paths::section(record, &id),
        results(record, &id),
        over_time(record, &id),
        distribution(record, &id),
        errors(record, &id),
        Section::new(&id, "Agents").with_tables(agents::table(record)),
        Section::new(&id, "Nodes").with_tables(counters::nodes(record)),
        machine(record, &id),
        Section::new(&id, "Database").with_tables(counters::database(record)),
        Section::new(&id, "Statements").with_tables(statements::table(record)),
        Section::new(&id, "Wait events")
            .with_tables(counters::waits(record))
            .with_tables(counters::activity(record)),
        profile(record, &id),
        sessions(record, &id),
        text(record, &id),
    ]
    .into_iter()
    .filter_map(Section::filled)
    .collect();
    view
}

fn environment_of(record: &Record, id: &str) -> Section {
    Section {
        groups: hero::environment(record),
        folded: hero::settings(record).into_iter().collect(),
        ..Section::new(id, "Run and environment")
    }
}

fn results(record: &Record, id: &str) -> Section {
    let words = words::of(&record.plan.work);
    let section = Section::of(id, "Results", |document| {
        // The first screen has the lines of a single stage.
        let mut results = Document::default();
        words.results(&mut results, record);
        results.tables().for_each(|table| document.table(table.clone()));
        words.details(document, record);
    });
    section
        .with_tables(counters::steps(record))
        .with_tables(counters::operations(record))
        .with_tables(counters::checks(record))
}

fn over_time(record: &Record, id: &str) -> Section {
    Section { charts: series::of_loops(record, id), ..Section::new(id, "Over time") }
}

fn distribution(record: &Record, id: &str) -> Section {
    let charts =
        [heatmap::chart(record, id), percentiles::chart(record, id), dots::chart(record, id)];
    Section { charts: charts.into_iter().flatten().collect(), ..Section::new(id, "Latency") }
}

/// The only stage of a run.
fn single(record: &Record) -> Option<Summary<'_>> {
    Summary::of(record).filter(|_| record.stages.len() == 1)
}

fn errors(record: &Record, id: &str) -> Section {
    let section = Section::of(id, "Errors", |document| {
        if let Some(summary) = single(record) {
            // The table has the errors themselves.
            if summary.stage.session_loop.errors.is_empty() {
                failures(document, &summary);
            }
            words::of(&record.plan.work).contention(document, &summary);
            late(document, summary.stage);
            drained(document, summary.stage);
        }
    });
    section.with_tables(counters::errors(record))
}

fn machine(record: &Record, id: &str) -> Section {
    let section = Section::of(id, "Machine and devices", |document| {
        if let Some(summary) = single(record) {
            window(document, &summary);
            queries(document, summary.stage);
            sources(document, summary.stage);
            resources(document, &summary);
        }
    });
    let section =
        section.with_tables(counters::resources(record)).with_tables(counters::devices(record));
    Section { charts: series::of_probes(record, id), ..section }
}

fn profile(record: &Record, id: &str) -> Section {
    let profiles = || record.stages.iter().filter_map(|stage| stage.profile.as_ref());
    let section = Section::new(id, "CPU profile").with_tables(profiles().filter_map(flame::table));
    Section { flames: profiles().filter_map(flame::flame).collect(), ..section }
}

fn sessions(record: &Record, id: &str) -> Section {
    let section = Section::of(id, "Totals and sessions", |document| {
        if let Some(summary) = single(record) {
            words::of(&record.plan.work).totals(document, &summary);
        }
    });
    Section { folded: counters::sessions(record).into_iter().collect(), ..section }
}

fn text(record: &Record, id: &str) -> Section {
    let text = run_text(record, &record.id.to_string(), TEXT_COLUMNS);
    let title = "Output of the run in the terminal".to_owned();
    let terms =
        Details { title: "Terms".to_owned(), text: glossary_text(TEXT_COLUMNS), open: false };
    Section { texts: vec![Details { title, text, open: false }, terms], ..Section::new(id, "Text") }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
