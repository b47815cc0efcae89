//! The dashboard: its settings, its routes and its life.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{map_response, map_response_with_state};
use axum::routing::{get, post};
use tokio::sync::{Semaphore, watch};

use super::access::Access;
use super::app::{App, STREAMS_MAX, asset, templates, with_json, with_page};
use super::connections::Limits;
use super::error::ServeError;
use super::failure::Failure;
use super::listen::ListenAddress;
use super::metrics::require_token;
use super::pages::{edit, history, list, live, stored};
use super::stored::{Feed, OpenStore, Stored};
use super::token::{Token, derived, random_text};
use super::verdicts::Verdicts;
use super::{api, server};
use crate::host::Interrupt;
use crate::store::live::LiveSource;

/// How often the server looks for Ctrl-C.
const INTERRUPT_EVERY: Duration = Duration::from_millis(100);

/// What a dashboard shows, and to whom.
pub struct Settings {
    /// Address to listen on.
    pub listen: ListenAddress,
    /// Token that clients must present; required for changes, and if other machines can connect.
    pub token: Option<Token>,
    /// Whether labels and tags can be changed, and runs removed.
    pub allow_edit: bool,
    /// Opens the store.
    pub open: OpenStore,
    /// The runs in progress.
    pub live: Box<dyn LiveSource>,
    /// Path or URL of the store, without a password.
    pub location: String,
}

/// A dashboard whose port is open.
pub struct Dashboard {
    listener: TcpListener,
    address: SocketAddr,
    settings: Settings,
}

impl Dashboard {
    /// Opens the port. Requests wait until [`Self::run`].
    ///
    /// # Errors
    /// [`ServeError`] if the port cannot be opened, or if a token is missing.
    pub fn open(settings: Settings) -> Result<Self, ServeError> {
        let (listener, address) = settings.listen.bind()?;
        require_token(&settings.listen, address, settings.token.as_ref(), "--token-file")?;
        if settings.allow_edit && settings.token.is_none() {
            return Err(ServeError::EditRequiresToken);
        }
        Ok(Self { listener, address, settings })
    }

    /// Returns the URL of the first page, without the token.
    pub fn url(&self) -> String {
        self.settings.listen.url(self.address)
    }

    /// Answers requests until the user interrupts it.
    ///
    /// # Errors
    /// [`ServeError::Start`] if the server cannot be started.
    pub fn run(self, interrupt: &Interrupt) -> Result<(), ServeError> {
        let Settings { listen, token, allow_edit, open, live, location } = self.settings;
        let failed = |source| ServeError::Start { address: listen.to_string(), source };
        let secret = random_text().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let app = Arc::new(App {
            stored: Stored::new(open),
            verdicts: Verdicts::default(),
            feed: Feed::new(live),
            location,
            form_secret: allow_edit.then(|| derived(&secret, "form")),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            stop: stopped.clone(),
            templates: templates()?,
        });
        let access = Access { hosts: listen.hosts(), token };
        let background = background(Arc::clone(&app), interrupt.clone(), stop);
        server::run(self.listener, router(app), access, Limits::DEFAULT, &stopped, background)
            .map_err(failed)
    }
}

/// Reads the runs in progress, and stops the server when the user interrupts it.
async fn background(app: Arc<App>, interrupt: Interrupt, stop: watch::Sender<bool>) -> Infallible {
    let interrupted = async {
        while !interrupt.is_requested() {
            tokio::time::sleep(INTERRUPT_EVERY).await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = app.feed.keep_reading() => {}
    }
    let _ = stop.send(true);
    // Without its sender, the channel would look stopped to new streams as well, which is what they need.
    std::future::pending().await
}

fn router(app: Arc<App>) -> Router {
    let pages = Router::new()
        .route("/", get(list::list))
        .route("/runs/{id}", get(stored::run))
        .route("/runs/{id}/edit", get(edit::run))
        .route("/runs/{id}/label", post(edit::label))
        .route("/runs/{id}/tags", post(edit::tags))
        .route("/runs/{id}/remove", post(edit::remove))
        .route("/runs/{id}/notes", post(edit::notes))
        .route("/experiments", get(stored::experiments))
        .route("/experiments/{id}", get(stored::experiment))
        .route("/experiments/{id}/edit", get(edit::experiment))
        .route("/experiments/{id}/notes", post(edit::experiment_notes))
        .route("/compare", get(stored::compare))
        .route("/history", get(history::history))
        .route("/live/{id}", get(live::live))
        .route("/metrics", get(api::metrics))
        .route("/assets/{name}", get(asset))
        .fallback(async || Failure::NoPage)
        .layer(map_response_with_state(Arc::clone(&app), with_page));
    let data = Router::new()
        .route("/api/runs", get(api::runs))
        .route("/api/runs/{id}", get(api::run))
        .route("/api/experiments", get(api::experiments))
        .route("/api/experiments/{id}", get(api::experiment))
        .route("/api/live", get(api::live))
        .route("/api/live/{id}/events", get(api::events))
        .layer(map_response(with_json));
    pages.merge(data).with_state(app)
}
