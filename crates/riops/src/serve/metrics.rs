//! The metrics of one run, each from a separate thread, which ends with the run: over HTTP, for `riops run
//! --metrics-listen`, and to a receiver of Prometheus's remote write, for `--metrics-push`. A slow receiver delays nothing, and
//! loses intervals instead.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use reqwest::StatusCode;
use tokio::sync::watch;

use super::access::Access;
use super::connections::Limits;
use super::error::ServeError;
use super::listen::ListenAddress;
use super::server;
use super::token::Token;
use crate::host::http::Http;
use crate::record::{LiveRun, RunEvent};
use crate::report::{accepted_format, metrics_text, remote_write};
use crate::units::conninfo::address_of;

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
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Applies an event of the run, whose first one starts to serve it.
    pub fn event(&self, event: &RunEvent) {
        if let Ok(mut current) = self.current.lock() {
            LiveRun::follow(&mut current, event);
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

/// Intervals that wait for the receiver.
const WAITING_MAX: usize = 60;
/// A request that takes longer has failed, and how often and after which time one is repeated.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);
/// At the end of a run, how long the last intervals may take.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends the metrics of one run.
#[derive(Debug)]
pub struct MetricsPush {
    run: Mutex<Option<LiveRun>>,
    waiting: Option<SyncSender<(LiveRun, Timestamp)>>,
    finished: Mutex<Receiver<()>>,
}

/// Where requests are sent.
#[derive(Debug)]
struct Target {
    url: String,
    /// Host and port.
    address: String,
    token: Option<Token>,
    http: Http,
}

impl MetricsPush {
    /// Starts the thread. `on_error` is called once, with the first error.
    ///
    /// # Errors
    /// [`ServeError::PushAddress`] if the address is no URL of HTTP or HTTPS, and [`ServeError::Start`] if the thread
    /// cannot be started.
    pub fn start(
        url: &str,
        token: Option<Token>,
        on_error: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, ServeError> {
        let address = address_of(url).ok_or_else(|| ServeError::PushAddress(url.to_owned()))?;
        let target =
            Target { url: url.to_owned(), address, token, http: Http::new(REQUEST_TIMEOUT) };
        let (waiting, received) = sync_channel(WAITING_MAX);
        let (done, finished) = sync_channel(1);
        let failed = |source| ServeError::Start { address: url.to_owned(), source };
        std::thread::Builder::new()
            .name("riops-push".to_owned())
            .spawn(move || {
                send_all(&target, &received, &on_error);
                let _ = done.send(());
            })
            .map_err(failed)?;
        let (run, finished) = (Mutex::new(None), Mutex::new(finished));
        Ok(Self { run, waiting: Some(waiting), finished })
    }

    /// Applies an event, and sends the metrics after an interval and at the end. Never blocks.
    pub fn event(&self, event: &RunEvent) {
        let is_sent = matches!(
            event,
            RunEvent::Point(_) | RunEvent::Completed { .. } | RunEvent::Failed { .. }
        );
        if let Ok(mut current) = self.run.lock() {
            LiveRun::follow(&mut current, event);
            if let (Some(run), Some(waiting)) =
                (current.as_ref(), self.waiting.as_ref().filter(|_| is_sent))
            {
                // Only the last points are in the metrics.
                let _ = waiting.try_send((run.clone(), Timestamp::now()));
            }
        }
    }
}

impl Drop for MetricsPush {
    fn drop(&mut self) {
        self.waiting = None;
        let finished = self.finished.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = finished.recv_timeout(END_TIMEOUT);
    }
}

fn send_all(target: &Target, received: &Receiver<(LiveRun, Timestamp)>, on_error: &dyn Fn(&str)) {
    let mut is_told = false;
    while let Ok((run, at)) = received.recv() {
        let sent = remote_write(&run, at).map_err(|error| error.to_string());
        let sent = sent.and_then(|body| send(target, &body));
        if let (Err(error), false) = (sent, is_told) {
            is_told = true;
            on_error(&error);
        }
    }
}

/// Sends a request; again if the receiver is not available for the moment.
fn send(target: &Target, body: &[u8]) -> Result<(), String> {
    let mut pause = PAUSE;
    let mut attempt = 1;
    loop {
        let answer = request(target, body);
        let is_temporary = match &answer {
            Ok(status) if status.is_success() => return Ok(()),
            Ok(status) => status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS,
            Err(_) => true,
        };
        if attempt == ATTEMPTS || !is_temporary {
            return Err(match answer {
                Ok(status) => format!("{} answered {status}", target.address),
                Err(error) => format!("{}: {error}", target.address),
            });
        }
        attempt += 1;
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn request(target: &Target, body: &[u8]) -> Result<StatusCode, String> {
    let token = target.token.as_ref().map(|token| format!("Bearer {}", token.text()));
    let authorization = token.as_deref().map(|token| ("Authorization", token));
    let headers = [
        ("Content-Encoding", "snappy"),
        ("Content-Type", "application/x-protobuf"),
        ("X-Prometheus-Remote-Write-Version", "0.1.0"),
    ];
    let headers: Vec<_> = headers.into_iter().chain(authorization).collect();
    target.http.post(&target.url, &headers, body.to_vec())
}
