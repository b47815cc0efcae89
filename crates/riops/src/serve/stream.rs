//! Server-sent events of a run in progress.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{Stream, unfold};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::app::{App, Shared, json_failed};
use super::failure::Failure;
use super::feed::Runs;
use super::server::stopped;
use crate::record::LiveRun;

/// A comment keeps the connection open if nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

/// The last event of a stream.
#[derive(Serialize)]
struct Ended {
    /// Whether the run is in the store.
    stored: bool,
}

/// Streams the state of a run: `state` whenever it changes, with the points that were not sent yet, and `end` when
/// the run has ended.
pub(super) async fn events(
    State(app): Shared,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Ok(permit) = Arc::clone(&app.streams).try_acquire_owned() else {
        return json_failed(&Failure::Busy);
    };
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
    Sse::new(stream(watcher)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

fn stream(watcher: Watcher) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok(event), watcher))
    })
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
        let found = self.app.stored.with(move |store| Ok(store.id(&id)?)).await;
        let ended = Ended { stored: matches!(found, Ok(Some(_))) };
        Event::default().event("end").data(serde_json::to_string(&ended).unwrap_or_default())
    }
}
