//! The data of the pages as JSON.

use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::app::{Shared, json, json_failed};
use super::failure::Failure;
use super::filters::Filters;
use super::metrics::metrics_response;
use super::query::Query;
use crate::experiment::Study;
use crate::report::experiment::view;

/// The stored runs, as `riops runs list --output json` prints them. The query is that of the list of runs.
pub(super) async fn runs(State(app): Shared, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let filters = Filters::parse(&Query::parse(&query.unwrap_or_default()))?;
        let filter = filters.filter();
        let runs = app.stored.with(move |store| Ok(store.list(&filter)?)).await?;
        json(&Filters::of_page(runs.unwrap_or_default()).0)
    };
    answer.await.unwrap_or_else(|failure| json_failed(&failure))
}

/// The record of a stored run.
pub(super) async fn run(State(app): Shared, Path(id): Path<String>) -> Response {
    let record = app.stored.with(move |store| json(&store.find(&id)?)).await;
    record
        .and_then(|record| record.ok_or(Failure::NoRuns))
        .unwrap_or_else(|failure| json_failed(&failure))
}

/// The stored experiments, as `riops experiments list --output json` prints them.
pub(super) async fn experiments(State(app): Shared) -> Response {
    let answer = async {
        let found = app.stored.with(|store| Ok(store.experiments()?)).await?;
        json(&found.unwrap_or_default())
    };
    answer.await.unwrap_or_else(|failure| json_failed(&failure))
}

/// The result of an experiment, as `riops experiments show --output json` prints it.
pub(super) async fn experiment(State(app): Shared, Path(id): Path<String>) -> Response {
    let found = app.stored.with(move |store| json(&view(&Study::stored(store, &id)?))).await;
    found
        .and_then(|found| found.ok_or(Failure::NoRuns))
        .unwrap_or_else(|failure| json_failed(&failure))
}

/// The runs in progress, without their points.
pub(super) async fn live(State(app): Shared) -> Response {
    let mut runs = app.feed.current().await.as_ref().clone();
    for run in &mut runs {
        run.points.clear();
    }
    json(&runs).unwrap_or_else(|failure| json_failed(&failure))
}

/// The metrics of the runs in progress.
pub(super) async fn metrics(State(app): Shared, headers: HeaderMap) -> Response {
    metrics_response(&app.feed.current().await, &headers)
}
