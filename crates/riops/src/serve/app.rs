//! What all requests share, and the forms of their answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use super::failure::{Answer, Failure};
use super::stored::{Feed, Stored};
use crate::report::{Delivery, Layout, Link, environment};

/// Live views that are open at the same time, over all clients.
pub(super) const STREAMS_MAX: usize = 32;

const TEMPLATES: [(&str, &str); 7] = [
    ("serve.html", include_str!("../../assets/serve/serve.html")),
    ("list.html", include_str!("../../assets/serve/list.html")),
    ("experiments.html", include_str!("../../assets/serve/experiments.html")),
    ("history.html", include_str!("../../assets/serve/history.html")),
    ("live.html", include_str!("../../assets/serve/live.html")),
    ("edit.html", include_str!("../../assets/serve/edit.html")),
    ("message.html", include_str!("../../assets/serve/message.html")),
];

const JSON: (HeaderName, &str) = (header::CONTENT_TYPE, "application/json");

/// The dashboard as its requests see it.
pub(super) struct App {
    pub(super) stored: Stored,
    pub(super) feed: Feed,
    /// Path or URL of the store, without a password.
    pub(super) location: String,
    /// Value that a form must contain; `None` if the dashboard is read-only.
    pub(super) form_secret: Option<String>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) templates: Environment<'static>,
}

/// The state of a handler.
pub(super) type Shared = State<Arc<App>>;

/// A page of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Runs,
    Experiments,
    History,
    Other,
}

/// A template with its values.
#[derive(Serialize)]
struct Page<T> {
    layout: Layout,
    #[serde(flatten)]
    values: T,
}

/// Returns the templates of the pages.
pub(super) fn templates() -> Result<Environment<'static>, minijinja::Error> {
    let mut templates = environment()?;
    for (name, text) in TEMPLATES {
        templates.add_template(name, text)?;
    }
    Ok(templates)
}

/// The values of `message.html`.
#[derive(Serialize)]
struct Message<'a> {
    title: &'a str,
    text: String,
}

impl App {
    /// Renders a page.
    pub(super) fn page(&self, template: &str, layout: Layout, values: impl Serialize) -> Answer {
        let page = Page { layout, values };
        let text = self.templates.get_template(template)?.render(Value::from(Serde(page)))?;
        Ok(Html(text).into_response())
    }

    /// Returns the page of a failed request.
    fn failed(&self, failure: &Failure) -> Response {
        let status = failure.status();
        let title = status.canonical_reason().unwrap_or("Error");
        let message = Message { title, text: failure.to_string() };
        let layout = layout(format!("riops: {title}"), Place::Other);
        let page = self.page("message.html", layout, message);
        (status, page.unwrap_or_else(|error| error.to_string().into_response())).into_response()
    }
}

/// Gives failures the form of a page.
pub(super) async fn with_page(State(app): Shared, mut response: Response) -> Response {
    let failure = response.extensions_mut().remove::<Arc<Failure>>();
    failure.map_or(response, |failure| app.failed(&failure))
}

/// Gives failures the form of JSON.
pub(super) async fn with_json(mut response: Response) -> Response {
    let Some(failure) = response.extensions_mut().remove::<Arc<Failure>>() else {
        return response;
    };
    let body = serde_json::json!({ "error": { "message": failure.to_string() } });
    (failure.status(), [JSON], format!("{body}\n")).into_response()
}

/// Returns the frame of a page.
pub(super) fn layout(title: impl Into<String>, place: Place) -> Layout {
    let link = |text: &str, href: &str, its_place| Link {
        text: text.to_owned(),
        href: href.to_owned(),
        current: place == its_place,
    };
    let mut layout = Layout::new(title, Delivery::Linked);
    layout.nav = vec![
        link("Runs", "/", Place::Runs),
        link("Experiments", "/experiments", Place::Experiments),
        link("History", "/history", Place::History),
    ];
    layout
}

/// Returns a value as JSON.
pub(super) fn json(value: &impl Serialize) -> Answer {
    Ok(([JSON], serde_json::to_string(value)? + "\n").into_response())
}

/// Continues with another page after a form.
pub(super) fn see_other(path: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}
