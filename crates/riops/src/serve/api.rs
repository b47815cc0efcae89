//! The data of the pages as JSON, and the events of a run in progress.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::app::{App, Shared, in_json};
use super::failure::{Answer, Failure};
use super::metrics::metrics_response;
use super::query::{Filters, Query};
use super::server::stopped;
use super::stored::Runs;
use crate::experiment::stored_study;
use crate::record::LiveRun;
use crate::report::experiment::view;

/// A comment keeps the connection open if nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns the stored runs, as `riops runs list --output json` prints them. The query is the same as for the list of runs.
pub(super) async fn runs(State(app): Shared, RawQuery(query): RawQuery) -> Answer {
    let filter = Filters::parse(&Query::parse(&query.unwrap_or_default()))?.filter;
    let runs = app.stored.any(move |store| Ok(store.list(&filter)?)).await?;
    in_json(&Filters::of_page(runs).0)
}

/// The record of a stored run.
pub(super) async fn run(State(app): Shared, Path(id): Path<String>) -> Answer {
    app.stored.with(move |store| in_json(&store.find(&id)?)).await
}

/// The stored experiments, as `riops experiments list --output json` prints them.
pub(super) async fn experiments(State(app): Shared) -> Answer {
    in_json(&app.stored.any(|store| Ok(store.experiments()?)).await?)
}

/// The result of an experiment, as `riops experiments show --output json` prints it.
pub(super) async fn experiment(State(app): Shared, Path(id): Path<String>) -> Answer {
    app.stored.with(move |store| in_json(&view(&stored_study(store, &id)?))).await
}

/// The runs in progress, without their points.
pub(super) async fn live(State(app): Shared) -> Answer {
    let mut runs = app.feed.current().await.as_ref().clone();
    for run in &mut runs {
        run.points.clear();
    }
    in_json(&runs)
}

/// The metrics of the runs in progress.
pub(super) async fn metrics(State(app): Shared, headers: HeaderMap) -> Response {
    metrics_response(&app.feed.current().await, &headers)
}

/// The state of one stream.
struct Watcher {
    app: Arc<App>,
    id: String,
    runs: watch::Receiver<Runs>,
    /// Number of the last point that was sent.
    sent: u64,
    /// The last state that was sent.
    shown: String,
    step: Step,
    _permit: OwnedSemaphorePermit,
}

/// What a stream does next.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    First,
    Next,
    End,
}

/// Streams the state of a run: `state` whenever it changes, with the points that were not sent yet, and `end` when
/// the run has ended.
pub(super) async fn events(
    State(app): Shared,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let permit = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| Failure::Busy)?;
    // A browser that lost the connection has the points up to this one.
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()?.parse().ok());
    let runs = app.feed.watch();
    let watcher = Watcher {
        app,
        id,
        runs,
        sent: last.unwrap_or(0),
        shown: String::new(),
        step: Step::First,
        _permit: permit,
    };
    let events = unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

impl Watcher {
    /// Returns the next event; `None` after the last one.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let runs = match self.step {
                Step::End => return None,
                Step::First => self.app.feed.current().await,
                Step::Next => tokio::select! {
                    changed = self.runs.changed() => {
                        changed.ok()?;
                        self.runs.borrow_and_update().clone()
                    }
                    () = stopped(self.app.stop.clone()) => return None,
                },
            };
            self.step = Step::Next;
            let Some(run) = runs.iter().find(|run| run.id.to_string() == self.id) else {
                return Some(self.end().await);
            };
            if let Some(event) = self.state(run) {
                return Some(event);
            }
        }
    }

    /// Returns the state with the points that were not sent yet; `None` if nothing has changed.
    fn state(&mut self, run: &LiveRun) -> Option<Event> {
        let mut run = run.clone();
        // A number that the run has not reached belongs to another run.
        if self.sent > run.points_seen {
            self.sent = 0;
        }
        run.points.retain(|point| point.number > self.sent);
        let has_points = !run.points.is_empty();
        self.sent = run.points_seen;
        let data = serde_json::to_string(&run).unwrap_or_default();
        run.points.clear();
        let shown = serde_json::to_string(&run).unwrap_or_default();
        let is_new = std::mem::replace(&mut self.shown, shown) != self.shown;
        let event = Event::default().event("state").id(run.points_seen.to_string()).data(data);
        (has_points || is_new).then_some(event)
    }

    async fn end(&mut self) -> Event {
        self.step = Step::End;
        let id = self.id.clone();
        let stored = self.app.stored.with(move |store| Ok(store.id(&id)?)).await;
        let is_stored = serde_json::json!({ "stored": stored.is_ok() });
        Event::default().event("end").data(is_stored.to_string())
    }
}
