//! The stored experiments, and the page of each one, also while it is in progress.

use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse};
use serde::Serialize;

use super::super::app::{Place, Shared, layout};
use super::super::failure::Answer;
use crate::experiment::{Study, tag};
use crate::record::LiveRun;
use crate::report::experiment::{experiment, view};
use crate::report::{Link, Table, experiments_table, findings_html};

/// The values of `experiments.html`.
#[derive(Serialize)]
struct List {
    table: Option<Table>,
}

/// Whether a run in progress belongs to the experiment with this id.
fn is_of(run: &LiveRun, id: &str) -> bool {
    run.tags.get(tag::EXPERIMENT).is_some_and(|of| of == id)
}

/// The list of experiments.
pub(in crate::serve) async fn list(State(app): Shared) -> Answer {
    let found = app.stored.any(|store| Ok(store.experiments()?)).await?;
    let live = app.feed.current().await;
    let is_measured = |id: &str| live.iter().any(|run| is_of(run, id));
    let table = (!found.is_empty()).then(|| experiments_table(&found, is_measured));
    app.page("experiments.html", layout("riops: experiments", Place::Experiments), List { table })
}

/// The page of an experiment: that of `riops sweep --html`, as far as its runs ended.
pub(in crate::serve) async fn page(State(app): Shared, Path(id): Path<String>) -> Answer {
    let study = app.stored.with(move |store| Ok(Study::stored(store, &id)?)).await?;
    let id = &study.experiment.id;
    let mut layout = layout(format!("riops: {}", study.experiment.name), Place::Other);
    let mut link = |text: &str, href: String| {
        layout.nav.push(Link { text: text.to_owned(), href, current: false });
    };
    let live = app.feed.current().await;
    if let Some(run) = live.iter().find(|run| is_of(run, id)) {
        link("Run in progress", format!("/live/{}", run.id));
    }
    link("Its runs", format!("/?tag={}%3D{id}", tag::EXPERIMENT));
    if app.form_secret.is_some() {
        link("Edit", format!("/experiments/{id}/edit"));
    }
    Ok(Html(findings_html(&experiment(&view(&study)), &layout)?).into_response())
}
