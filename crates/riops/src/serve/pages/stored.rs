//! The pages of stored runs and experiments: the pages of `riops report` and `riops sweep -o html`, with links to further
//! actions.

use axum::extract::{Path, RawQuery, State};
use axum::http::header;
use axum::response::{Html, IntoResponse};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::super::app::{Shared, layout, see_other};
use super::super::failure::{Answer, Failure};
use super::super::query::Query;
use crate::experiment::stored_study;
use crate::record::{LivePhase, LiveRun, Record};
use crate::report::experiment::{experiment as findings, view};
use crate::report::{
    Layout, Link, Table, comparison_of, experiments_table, findings_html, html_in, title,
};
use crate::study::{Study, next, tag};

/// Seconds after which the page of an experiment in progress is read again.
const REFRESH_S: &str = "10";

/// A run that started longer ago is not followed by another one.
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Runs of a comparison: a page with more of them is too long to read.
const RUNS_MAX: usize = 20;

/// The page of a stored run. A run in progress has its own page.
pub(in crate::serve) async fn run(State(app): Shared, Path(id): Path<String>) -> Answer {
    let can_edit = app.form_secret.is_some();
    let wanted = id.clone();
    let page = app.stored.with(move |store| {
        let records = [store.find(&wanted)?];
        Ok(Html(html_in(&frame(&records, can_edit), &records, None)?).into_response())
    });
    match page.await {
        Err(failure)
            if failure.is_absence()
                && app.feed.current().await.iter().any(|run| run.id.to_string() == id) =>
        {
            Ok(see_other(format!("/live/{id}")))
        }
        page => page,
    }
}

fn link(text: &str, href: String) -> Link {
    Link { text: text.to_owned(), href, current: false }
}

fn frame(records: &[Record; 1], can_edit: bool) -> Layout {
    let [record] = records;
    let mut layout = layout(title(records), "");
    let mut link = |text: &str, href| layout.nav.push(link(text, href));
    if let Some(label) = &record.label {
        link("History of this label", Query::default().with("label", label).after("/history"));
    }
    if let Some(id) = record.tags.get(tag::EXPERIMENT) {
        link("Experiment", format!("/experiments/{id}"));
    }
    link("Record as JSON", format!("/api/runs/{}", record.id));
    if can_edit {
        link("Edit", format!("/runs/{}/edit", record.id));
    }
    layout
}

/// The comparison of the runs in the query: `?run=…&run=…`.
pub(in crate::serve) async fn compare(State(app): Shared, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(&query.unwrap_or_default());
    let ids: Vec<String> = query.all("run").map(str::to_owned).collect();
    if !(2..=RUNS_MAX).contains(&ids.len()) {
        let text = format!("tick 2 to {RUNS_MAX} runs in the list, then select Compare");
        return Err(Failure::Request(text));
    }
    let page = app.stored.with(move |store| {
        let mut records: Vec<Record> =
            ids.iter().map(|id| store.find(id)).collect::<Result<_, _>>()?;
        // The older run is A.
        records.sort_by_key(|record| record.started_at);
        let layout = layout(title(&records), "");
        let sides = records.iter().map(|record| (record.id.to_string(), vec![record.clone()]));
        let comparison = comparison_of(&sides.collect::<Vec<_>>());
        Ok(Html(html_in(&layout, &records, comparison.as_ref())?).into_response())
    });
    page.await
}

/// The values of `experiments.html`.
#[derive(Serialize)]
struct List {
    table: Option<Table>,
}

/// Whether a run in progress belongs to the experiment with this id.
pub(super) fn is_of(run: &LiveRun, id: &str) -> bool {
    run.tags.get(tag::EXPERIMENT).is_some_and(|experiment| experiment == id)
}

/// The list of experiments.
pub(in crate::serve) async fn experiments(State(app): Shared) -> Answer {
    let evaluated = app.verdicts.clone();
    let (experiments, verdicts) = app
        .stored
        .any(move |store| {
            let experiments = store.experiments()?;
            let verdicts = evaluated.read(store, &experiments)?;
            Ok((experiments, verdicts))
        })
        .await?;
    let live = app.feed.current().await;
    let is_measured = |id: &str| live.iter().any(|run| is_of(run, id));
    let verdict = |id: &str| verdicts.get(id).cloned().unwrap_or_default();
    let table =
        (!experiments.is_empty()).then(|| experiments_table(&experiments, is_measured, verdict));
    app.page("experiments.html", layout("riops: experiments", "/experiments"), List { table })
}

/// Returns the page of an experiment: the page of `riops sweep -o html`, with the runs that have ended.
pub(in crate::serve) async fn experiment(State(app): Shared, Path(id): Path<String>) -> Answer {
    let study = app.stored.with(move |store| Ok(stored_study(store, &id)?)).await?;
    let id = &study.experiment.id;
    let mut layout = layout(format!("riops: {}", study.experiment.name), "");
    let mut link = |text: &str, href| layout.nav.push(link(text, href));
    let live = app.feed.current().await;
    let is_over = |run: &LiveRun| matches!(run.phase, LivePhase::Completed | LivePhase::Failed);
    let in_progress = live.iter().find(|run| is_of(run, id) && !is_over(run));
    if let Some(run) = in_progress {
        link("Run in progress", format!("/live/{}", run.id));
    }
    link("Its runs", format!("/?tag={}%3D{id}", tag::EXPERIMENT));
    if app.form_secret.is_some() {
        link("Edit", format!("/experiments/{id}/edit"));
    }
    let page = Html(findings_html(&findings(&view(&study)), &layout)?);
    // The page shows each run that ends.
    if in_progress.is_some() || continues(&study) {
        return Ok(([(header::REFRESH, REFRESH_S)], page).into_response());
    }
    Ok(page.into_response())
}

/// Whether an experiment without a run in progress may be between two runs.
fn continues(study: &Study) -> bool {
    let records = study.finished.iter().filter_map(|run| run.result.as_ref().ok());
    let newest = records.map(|record| record.started_at).max();
    next(study).is_some()
        && newest.is_some_and(|started| started.duration_until(Timestamp::now()) < PAUSE_MAX)
}
