//! The list of stored runs, with filters, and the runs in progress.

use axum::extract::{RawQuery, State};
use serde::Serialize;

use super::super::app::{Shared, layout};
use super::super::failure::Answer;
use super::super::query::{Filters, Query};
use crate::plan::WorkPlan;
use crate::record::LiveRun;
use crate::report::{Badge, RunColumn, badge, run_columns};
use crate::summary::RunSummary;
use crate::units::format::{count, short_id, to_the_minute};

/// The values of `list.html`.
#[derive(Serialize)]
struct List<'a> {
    location: &'a str,
    /// The runs in progress with their phases.
    live: Vec<(&'a LiveRun, &'static str)>,
    filters: &'a Filters,
    is_filtered: bool,
    workloads: Vec<String>,
    columns: Vec<Column>,
    runs: Vec<Row>,
    /// Position of the first and the last run of the page.
    first: usize,
    last: usize,
    /// Number of all runs that match.
    total: String,
    previous: Option<String>,
    next: Option<String>,
    can_edit: bool,
}

/// A column with the address of the list that it sorts.
#[derive(Serialize)]
struct Column {
    title: &'static str,
    /// `None` if it sorts nothing.
    href: Option<String>,
    /// Value of `aria-sort`.
    sorted: &'static str,
    number: bool,
}

/// A stored run.
#[derive(Serialize)]
struct Row {
    id: String,
    short: String,
    started: String,
    title: String,
    badge: Badge,
    label: Option<Linked>,
    tags: Vec<Linked>,
    /// Texts, and whether they are numbers.
    cells: Vec<(String, bool)>,
}

/// A text with an address.
#[derive(Serialize)]
struct Linked {
    text: String,
    href: String,
}

/// The list of runs.
pub(in crate::serve) async fn list(State(app): Shared, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(&query.unwrap_or_default());
    let filters = Filters::parse(&query)?;
    let filter = filters.filter.clone();
    let (runs, total) =
        app.stored.any(move |store| Ok((store.list(&filter)?, store.count(&filter)?))).await?;
    let (runs, has_next) = Filters::of_page(runs);
    let live = app.feed.current().await;
    let shown = run_columns(&runs);
    let columns = [
        ("started (UTC)", "started_at", false),
        ("workload", "title", false),
        ("valid", "valid", false),
        ("label", "label", false),
    ];
    let columns = columns
        .into_iter()
        .chain(shown.iter().map(|(title, column)| (*title, column.sorted_by, column.is_number)));
    let page = |page: u32| query.with("page", &page.to_string()).after("/");
    let list = List {
        location: &app.location,
        live: live.iter().map(|run| (run, run.phase.text())).collect(),
        is_filtered: filters.is_filtered(),
        workloads: WorkPlan::names(),
        columns: columns
            .map(|(title, by, is_number)| column(title, &query, &filters, by, is_number))
            .collect(),
        first: filters.first(),
        last: filters.first() + runs.len().saturating_sub(1),
        total: count(total),
        previous: (filters.page > 1).then(|| page(filters.page - 1)),
        next: has_next.then(|| page(filters.page + 1)),
        runs: runs.iter().map(|run| row(run, &shown)).collect(),
        filters: &filters,
        can_edit: app.form_secret.is_some(),
    };
    app.page("list.html", layout("riops: runs", "/"), list)
}

/// Returns the head of a column: a second click reverses the order.
fn column(
    title: &'static str,
    query: &Query,
    filters: &Filters,
    sorted_by: &str,
    is_number: bool,
) -> Column {
    let order = filters.filter.sort;
    let is_sorted = order.column() == sorted_by;
    // Texts start with the first letter, numbers and times with the largest one.
    let descends =
        if is_sorted { !order.is_descending() } else { is_number || sorted_by == "started_at" };
    let direction = if descends { "desc" } else { "asc" };
    Column {
        title,
        href: (!sorted_by.is_empty()).then(|| {
            query.without("page").with("sort", &format!("{sorted_by}:{direction}")).after("/")
        }),
        sorted: match (is_sorted, order.is_descending()) {
            (false, _) => "none",
            (true, true) => "descending",
            (true, false) => "ascending",
        },
        number: is_number,
    }
}

fn row(run: &RunSummary, columns: &[(&str, &RunColumn)]) -> Row {
    let linked = |name: &str, value: &str| Linked {
        text: value.to_owned(),
        href: Query::default().with(name, value).after("/"),
    };
    let tag = |(key, value): (&String, &String)| linked("tag", &format!("{key}={value}"));
    Row {
        id: run.id.clone(),
        short: short_id(&run.id).to_owned(),
        started: to_the_minute(&run.started_at),
        title: run.title.clone(),
        badge: badge(run.validity(), &run.status, run.marks.as_deref().unwrap_or_default()),
        label: run.label.as_deref().map(|label| linked("label", label)),
        tags: run.tags.iter().map(tag).collect(),
        cells: columns.iter().map(|(_, column)| (column.text(run), column.is_number)).collect(),
    }
}
