//! The list of stored runs, with filters, and the runs in progress.

use axum::extract::{RawQuery, State};
use serde::Serialize;

use super::super::app::{Shared, layout};
use super::super::failure::Answer;
use super::super::query::{Filters, Query};
use super::stored::is_of;
use crate::plan::WorkPlan;
use crate::record::LiveRun;
use crate::report::{Badge, TitledColumn, badge, experiment_state, run_columns};
use crate::study::tag;
use crate::summary::{ExperimentSummary, RunSummary};
use crate::units::format::{count, joined, number_of, short_id, to_the_minute};

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
    groups: Vec<Group<'a>>,
    /// Position of the first and the last run of the page.
    first: usize,
    last: usize,
    /// Number of all runs that match.
    total: String,
    /// The settings that all runs of the page have in common.
    common: String,
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

/// Runs that follow each other in the list and belong to the same experiment, or one other run.
#[derive(Serialize)]
struct Group<'a> {
    experiment: Option<&'a ExperimentRow>,
    runs: Vec<Row>,
}

/// An experiment, whose runs fold out.
#[derive(Serialize)]
struct ExperimentRow {
    id: String,
    created: String,
    title: String,
    state: &'static str,
    verdict: String,
    runs: String,
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
    // In another order, the runs of an experiment do not follow each other.
    let folds = !filters.is_filtered() && filter.sort.column() == "started_at";
    let evaluated = app.verdicts.clone();
    let (runs, total, experiments, verdicts) = app
        .stored
        .any(move |store| {
            let runs = store.list(&filter)?;
            let is_shown = |experiment: &ExperimentSummary| {
                runs.iter().any(|run| experiment_of(run) == Some(&*experiment.id))
            };
            let mut experiments = if folds { store.experiments()? } else { Vec::new() };
            experiments.retain(is_shown);
            let verdicts = evaluated.read(store, &experiments)?;
            Ok((runs, store.count(&filter)?, experiments, verdicts))
        })
        .await?;
    let (runs, has_next) = Filters::of_page(runs);
    let live = app.feed.current().await;
    let experiments = experiments.iter().map(|experiment| {
        let id = experiment.id.to_string();
        let is_measured = live.iter().any(|run| is_of(run, &id));
        ExperimentRow {
            created: to_the_minute(&experiment.created_at.to_string()),
            title: format!("{} · {}", experiment.kind, experiment.name),
            state: experiment_state(experiment, is_measured),
            verdict: verdicts.get(&id).cloned().unwrap_or_default(),
            runs: number_of(experiment.runs, "run"),
            id,
        }
    });
    let experiments: Vec<ExperimentRow> = experiments.collect();
    let (shown, common) = run_columns(&runs);
    let common = runs.first().map(|run| {
        joined(common.iter().map(|(title, column)| format!("{title} {}", column.text(run))), " · ")
    });
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
        common: common.unwrap_or_default(),
        previous: (filters.page > 1).then(|| page(filters.page - 1)),
        next: has_next.then(|| page(filters.page + 1)),
        groups: groups(&runs, &experiments, &shown),
        filters: &filters,
        can_edit: app.form_secret.is_some(),
    };
    app.page("list.html", layout("riops: runs", "/"), list)
}

/// Returns the runs below their experiments, in the order of the list.
fn groups<'a>(
    runs: &[RunSummary],
    experiments: &'a [ExperimentRow],
    columns: &[TitledColumn],
) -> Vec<Group<'a>> {
    let of_run = |run: &RunSummary| {
        let id = experiment_of(run)?;
        experiments.iter().find(|experiment| experiment.id == id)
    };
    let is_same = |run: &RunSummary, next: &RunSummary| {
        of_run(run).is_some() && experiment_of(run) == experiment_of(next)
    };
    let group = |runs: &[RunSummary]| {
        let experiment = runs.first().and_then(of_run);
        let row = |run| row(run, columns, experiment.is_some());
        Group { experiment, runs: runs.iter().map(row).collect() }
    };
    runs.chunk_by(is_same).map(group).collect()
}

/// Returns the id of the experiment of a run.
fn experiment_of(run: &RunSummary) -> Option<&str> {
    run.tags.get(tag::EXPERIMENT).map(String::as_str)
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

fn row(run: &RunSummary, columns: &[TitledColumn], is_folded: bool) -> Row {
    let linked = |name: &str, value: &str| Linked {
        text: value.to_owned(),
        href: Query::default().with(name, value).after("/"),
    };
    let tag = |(key, value): (&String, &String)| linked("tag", &format!("{key}={value}"));
    // The row of its experiment has the name and the id.
    let own_label = run.label.as_deref().filter(|_| !is_folded);
    let own_tags = run.tags.iter().filter(|(key, _)| !is_folded || *key != tag::EXPERIMENT);
    Row {
        id: run.id.clone(),
        short: short_id(&run.id).to_owned(),
        started: to_the_minute(&run.started_at),
        title: run.title.clone(),
        badge: badge(run.validity(), &run.status, run.marks.as_deref().unwrap_or_default()),
        label: own_label.map(|label| linked("label", label)),
        tags: own_tags.map(tag).collect(),
        cells: columns.iter().map(|(_, column)| (column.text(run), column.is_number)).collect(),
    }
}
