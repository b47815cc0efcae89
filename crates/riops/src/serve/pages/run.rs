//! The page of one run: that of `riops report`, with links to what else can be done with the run.

use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Response};

use super::super::app::{Place, Shared, layout, see_other};
use super::super::failure::Failure;
use super::super::query::Query;
use crate::experiment::tag;
use crate::record::Record;
use crate::report::{Layout, Link, html_in, title};

/// The page of a stored run. A run in progress has its own page.
pub(in crate::serve) async fn run(State(app): Shared, Path(id): Path<String>) -> Response {
    let can_edit = app.form_secret.is_some();
    let wanted = id.clone();
    let page = app.stored.with(move |store| {
        let record = store.find(&wanted)?;
        let records = [record];
        Ok(Html(html_in(&frame(&records, can_edit), &records, None)?).into_response())
    });
    let page = page.await.and_then(|page| page.ok_or(Failure::NoRuns));
    match page {
        Err(failure)
            if failure.is_absence()
                && app.feed.current().await.iter().any(|run| run.id.to_string() == id) =>
        {
            see_other(&format!("/live/{id}"))
        }
        page => app.answer(page),
    }
}

fn frame(records: &[Record; 1], can_edit: bool) -> Layout {
    let [record] = records;
    let mut layout = layout(title(records), Place::Other);
    let mut link = |text: &str, href: String| {
        layout.nav.push(Link { text: text.to_owned(), href, current: false });
    };
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
