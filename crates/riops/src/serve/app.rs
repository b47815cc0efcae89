//! What all requests share, the forms of their answers, and the style and the scripts of the pages: a fixed list that is part
//! of the binary.

use std::sync::{Arc, OnceLock};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

use super::failure::{Answer, Failure};
use super::stored::{Feed, Stored};
use super::token::derived;
use super::verdicts::Verdicts;
use crate::report::{ASSETS, Asset, Delivery, Layout, Link, environment};

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
    pub(super) verdicts: Verdicts,
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
        let message = json!({ "title": title, "text": failure.to_string() });
        let page = self.page("message.html", layout(format!("riops: {title}"), ""), message);
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
    let body = json!({ "error": { "message": failure.to_string() } });
    (failure.status(), [JSON], format!("{body}\n")).into_response()
}

/// Returns the frame of a page with this address; the address matters only for pages that all others link to.
pub(super) fn layout(title: impl Into<String>, address: &str) -> Layout {
    let links = [("Runs", "/"), ("Experiments", "/experiments"), ("History", "/history")];
    let link = |(text, href): (&str, &str)| Link {
        text: text.to_owned(),
        href: href.to_owned(),
        current: address == href,
    };
    let mut layout = Layout::new(title, Delivery::Linked);
    layout.nav = links.map(link).into();
    layout
}

/// Returns a value as JSON.
pub(super) fn in_json(value: &impl Serialize) -> Answer {
    Ok(([JSON], serde_json::to_string(value)? + "\n").into_response())
}

/// Continues with another page after a form.
pub(super) fn see_other(path: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}

/// The files that only the dashboard needs.
const OWN: [Asset; 2] = [
    Asset {
        name: "serve.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../../assets/serve/serve.css"),
    },
    Asset {
        name: "serve.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("../../assets/serve/serve.js"),
    },
];

/// All files with their tags.
fn assets() -> &'static [(Asset, String)] {
    static TAGGED: OnceLock<Vec<(Asset, String)>> = OnceLock::new();
    let tagged = |asset: Asset| (asset, format!("\"{}\"", derived(asset.text, "asset")));
    TAGGED.get_or_init(|| ASSETS.into_iter().chain(OWN).map(tagged).collect())
}

/// Returns a file. A browser asks each time whether it has changed, as it does with another version of riops.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((asset, tag)) = assets().iter().find(|(asset, _)| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "no such file\n").into_response();
    };
    let own = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|etag| etag == tag.as_str());
    if is_known {
        return (StatusCode::NOT_MODIFIED, own).into_response();
    }
    (own, asset.text).into_response()
}
