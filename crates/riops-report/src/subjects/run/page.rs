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
use super::{access_paths, dots, heatmap, hero, percentiles, series};
use crate::chart::Chart;
use crate::document::{Document, Findings};
use crate::flame;
use crate::form::Image;
use crate::render::html::{Delivery, Layout, environment};
use crate::render::markdown::{add_findings, escaped, row, table};
use crate::render::png::{DrawingError, chart_png};
use crate::sections::{
    agents, bottleneck, cost, database, failures, nodes, operations, proof, queries, sessions,
    sources, statements, tables, time, waits, window,
};
use crate::table::{Table, text_column};
use crate::words;
use riops_model::figure::Summary;
use riops_model::record::Record;
use riops_model::units::format::{joined, short_id};

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
    let (comparison, detailed) = parts(records, comparison);
    let runs = detailed.iter().enumerate();
    let runs = runs.map(|(position, record)| view(record, position, records.len())).collect();
    let page = Page { layout, comparison, runs };
    environment()?.get_template("report.html")?.render(Value::from(Serde(page)))
}

/// Returns the summary of one or more records. Several records are compared by `comparison`; without it, their
/// figures are shown side by side.
pub fn markdown(records: &[Record], comparison: Option<&Findings>) -> String {
    let mut text = format!("## {}\n", escaped(&title(records)));
    let (comparison, detailed) = parts(records, comparison);
    if let Some(comparison) = &comparison {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n### {}", escaped(&comparison.title));
        add_findings(&mut text, comparison);
    }
    for (position, record) in detailed.iter().enumerate() {
        let view = view(record, position, records.len());
        summary(&mut text, &view, records.len() > 1);
        let counted = [failures::steps_table(record), failures::errors_table(record)];
        let tables = access_paths::paths(record).into_iter().chain(result_tables(record));
        for filled in tables.chain(counted).filter_map(Table::filled) {
            table(&mut text, &filled);
        }
    }
    text
}

fn summary(text: &mut String, view: &RunView, has_title: bool) {
    if has_title {
        let _ = writeln!(text, "\n### {}", escaped(&view.title));
    }
    let figure = &view.figure;
    let [label, value, unit, detail] =
        [&figure.label, &figure.value, &figure.unit, &figure.detail].map(|part| escaped(part));
    let _ = writeln!(text, "\n**{label}: {value} {unit}** · {detail}\n");
    let _ = writeln!(text, "| | |\n| --- | --- |");
    if !view.tiles.is_empty() {
        let tiles = view.tiles.iter().map(|tile| format!("{} {}", tile.label, tile.value));
        let _ = writeln!(text, "| latency | {} |", escaped(&joined(tiles, " · ")));
    }
    view.verdict.iter().for_each(|fact| row(text, fact));
    let environment = view.sections.iter().flat_map(|section| &section.groups);
    environment.flat_map(|group| &group.facts).for_each(|fact| row(text, fact));
    let _ = writeln!(text, "| run | {} |", escaped(&view.identity));
}

/// Returns the charts of a record, in the order of its page.
pub fn charts(record: &Record) -> Vec<Chart> {
    let id = "run-1";
    let charts =
        [series::of_loops(record, id), distribution(record, id), series::of_agents(record, id)];
    charts.into_iter().flatten().chain(series::of_probes(record, id)).collect()
}

/// Returns the charts of a record as PNG files.
///
/// # Errors
/// Returns [`DrawingError::Failed`] if the drawing library fails.
pub fn images(record: &Record) -> Result<Vec<Image>, DrawingError> {
    let run = short_id(&record.id.to_string()).to_owned();
    let subtitle = format!("{run} · {}", record.label.as_deref().unwrap_or(&record.workload));
    let image = |chart: Chart| {
        let name = format!("riops-{run}-{}", chart.id.trim_start_matches("run-1-"));
        Ok(Image { name, bytes: chart_png(&chart, &subtitle)? })
    };
    charts(record).into_iter().map(image).collect()
}

/// Returns the title of the report of these records.
pub fn title(records: &[Record]) -> String {
    match records {
        [record] => format!("riops: {}", hero::title(record, None)),
        _ => format!("riops: {} runs", records.len()),
    }
}

/// Returns the page of the run at `position` of `runs` runs.
fn view(record: &Record, position: usize, runs: usize) -> RunView {
    let id = format!("run-{}", position + 1);
    let section = |title| Section::new(&id, title);
    let sections = [
        section("Time and cost").with_tables([time::table(record), cost::table(record)]),
        Section {
            groups: hero::environment(record),
            folded: settings(record).into_iter().collect(),
            ..section("Run and environment")
        },
        access_paths::section(record, &id),
        results(record, &id),
        section("Over time").with_charts(series::of_loops(record, &id)),
        section("Latency").with_charts(distribution(record, &id)),
        errors(record, &id),
        section("Agents")
            .with_charts(series::of_agents(record, &id))
            .with_tables(agents::table(record)),
        section("Nodes").with_tables([nodes::table(record)]),
        machine(record, &id),
        section("Database").with_tables([database::table(record)]),
        section("Statements").with_tables([statements::table(record)]),
        section("Tables").with_tables([tables::table(record), tables::indexes(record)]),
        section("Wait events").with_tables([waits::table(record), nodes::activity_table(record)]),
        profile(record, &id),
        sessions(record, &id),
        text(record, &id),
    ];
    let sections = sections.into_iter().filter_map(Section::filled).collect();
    hero::view(record, id, (runs > 1).then_some(position + 1), sections)
}

/// All recorded settings of the server.
fn settings(record: &Record) -> Option<Table> {
    let row = |(name, value): (&String, &String)| {
        [
            (text_column("setting"), name.as_str().into()),
            (text_column("value"), value.as_str().into()),
        ]
    };
    Table::from_items("server settings", &record.target.settings, row).filled()
}

/// The tables of the main result. The first screen has the lines of a single stage.
fn result_tables(record: &Record) -> Vec<Table> {
    let mut results = Document::default();
    words::for_work(&record.plan.work).results(&mut results, record);
    results.tables().cloned().collect()
}

fn results(record: &Record, id: &str) -> Section {
    let section = Section::with_document(id, "Results", |document| {
        for table in result_tables(record) {
            document.table(table);
        }
        words::for_work(&record.plan.work).details(document, record);
    });
    let counted =
        [failures::steps_table(record), operations::table(record), proof::checks_table(record)];
    section.with_tables(counted)
}

fn distribution(record: &Record, id: &str) -> Vec<Chart> {
    let charts =
        [heatmap::chart(record, id), percentiles::chart(record, id), dots::chart(record, id)];
    charts.into_iter().flatten().collect()
}

/// A section about the only stage of a run; without contents if there are several.
fn of_single(
    record: &Record,
    id: &str,
    title: &'static str,
    write: impl FnOnce(&mut Document, &Summary<'_>),
) -> Section {
    Section::with_document(id, title, |document| {
        if let [stage] = record.stages.as_slice() {
            write(document, &Summary { record, stage });
        }
    })
}

fn errors(record: &Record, id: &str) -> Section {
    let section = of_single(record, id, "Errors", |document, summary| {
        // The table has the errors themselves.
        if summary.stage.session_loop.errors.is_empty() {
            failures::failures(document, summary);
        }
        words::for_work(&record.plan.work).contention(document, summary);
        failures::late(document, summary.stage);
        failures::drained(document, summary.stage);
    });
    section.with_tables([failures::errors_table(record)])
}

fn machine(record: &Record, id: &str) -> Section {
    let section = of_single(record, id, "Machine and devices", |document, summary| {
        window::window(document, summary);
        queries::queries(document, summary.stage);
        sources::sources(document, summary.stage);
        bottleneck::resources(document, summary);
    });
    let section =
        section.with_tables([bottleneck::table(record), bottleneck::devices_table(record)]);
    section.with_charts(series::of_probes(record, id))
}

fn profile(record: &Record, id: &str) -> Section {
    let profiles = || record.stages.iter().filter_map(|stage| stage.profile.as_ref());
    Section::with_document(id, "CPU profile", |document| {
        profiles().filter_map(flame::table).for_each(|table| document.table(table));
        profiles().filter_map(flame::flame).for_each(|flame| document.flame(flame));
    })
}

fn sessions(record: &Record, id: &str) -> Section {
    let section = of_single(record, id, "Totals and sessions", |document, summary| {
        words::for_work(&record.plan.work).totals(document, summary);
    });
    Section { folded: sessions::table(record).filled().into_iter().collect(), ..section }
}

fn text(record: &Record, id: &str) -> Section {
    let details = |title: &str, text| Details { title: title.to_owned(), text, open: false };
    let text = run_text(record, &record.id.to_string(), TEXT_COLUMNS);
    let texts = vec![details("Output of the run in the terminal", text)];
    Section { texts, ..Section::new(id, "Text") }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
