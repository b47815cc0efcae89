//! The pages of stored runs: those of `riops report`, with links to what else can be done with a run.

use axum::extract::{Path, RawQuery, State};
use axum::response::{Html, IntoResponse};

use super::super::app::{Place, Shared, layout, see_other};
use super::super::failure::{Answer, Failure};
use super::super::query::Query;
use crate::experiment::tag;
use crate::record::Record;
use crate::report::{Layout, Link, comparison_of, html_in, title};

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
        let layout = layout(title(&records), Place::Other);
        let each = records.iter().map(|record| (record.id.to_string(), vec![record.clone()]));
        let comparison = comparison_of(&each.collect::<Vec<_>>());
        Ok(Html(html_in(&layout, &records, comparison.as_ref())?).into_response())
    });
    page.await
}
