//! The metrics of one run over HTTP, for `riops run --metrics-listen`: a separate thread, which ends with the run.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::watch;

use super::access::Access;
use super::connections::Limits;
use super::error::ServeError;
use super::listen::ListenAddress;
use super::server;
use super::token::Token;
use crate::record::{LiveEvent, LiveRun};
use crate::report::{accepted_format, metrics_text};

/// The run in progress, if it has started.
type Current = Arc<Mutex<Option<LiveRun>>>;

/// Serves the metrics of the run in progress.
#[derive(Debug)]
pub struct MetricsServer {
    url: String,
    current: Current,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Opens the port and answers requests from now on. Without a token, only this machine may connect.
    ///
    /// # Errors
    /// [`ServeError`] if the port cannot be opened, or if a token is missing.
    pub fn start(listen: &ListenAddress, token: Option<Token>) -> Result<Self, ServeError> {
        let (listener, address) = listen.bind()?;
        require_token(listen, address, token.as_ref(), "--metrics-token-file")?;
        let url = format!("{}metrics", listen.url(address));
        let access = Access { hosts: listen.hosts(), token };
        let current = Current::default();
        let router = Router::new().route("/metrics", get(answer)).with_state(Arc::clone(&current));
        let (stop, stopped) = watch::channel(false);
        let failed = |source| ServeError::Start { address: listen.to_string(), source };
        let thread = std::thread::Builder::new()
            .name("riops-metrics".to_owned())
            .spawn(move || {
                // The port is open, so that only a missing runtime remains. The run continues without metrics.
                let _ = server::run(listener, router, access, Limits::DEFAULT, &stopped, pending());
            })
            .map_err(failed)?;
        Ok(Self { url, current, stop, thread: Some(thread) })
    }

    /// Returns the URL of the metrics.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts to serve this run.
    pub fn started(&self, run: LiveRun) {
        if let Ok(mut current) = self.current.lock() {
            *current = Some(run);
        }
    }

    /// Applies an event of the run.
    pub fn event(&self, event: &LiveEvent) {
        if let Ok(mut current) = self.current.lock()
            && let Some(run) = current.as_mut()
        {
            run.apply(event);
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Fails if other machines can connect and need no token.
pub(super) fn require_token(
    listen: &ListenAddress,
    address: SocketAddr,
    token: Option<&Token>,
    option: &'static str,
) -> Result<(), ServeError> {
    if address.ip().is_loopback() || token.is_some() {
        return Ok(());
    }
    Err(ServeError::TokenRequired { address: listen.to_string(), option })
}

async fn answer(State(current): State<Current>, headers: HeaderMap) -> Response {
    let runs: Vec<LiveRun> = current.lock().ok().and_then(|run| run.clone()).into_iter().collect();
    metrics_response(&runs, &headers)
}

/// Returns the metrics in the format that the client prefers.
pub(super) fn metrics_response(runs: &[LiveRun], headers: &HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = accepted_format(accept.unwrap_or_default());
    ([(header::CONTENT_TYPE, format.content_type())], metrics_text(runs, format)).into_response()
}
