//! Sends the metrics of a run in progress to a receiver of Prometheus's remote write, from a separate thread: a slow receiver
//! delays nothing, and loses intervals instead.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;

use super::error::ServeError;
use super::token::Token;
use crate::host::http::Http;
use crate::record::{LiveEvent, LiveRun};
use crate::report::remote_write;
use crate::units::conninfo::address_of;

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
    thread: Option<JoinHandle<()>>,
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
        let thread = std::thread::Builder::new()
            .name("riops-push".to_owned())
            .spawn(move || {
                send_all(&target, &received, &on_error);
                let _ = done.send(());
            })
            .map_err(failed)?;
        let (run, finished) = (Mutex::new(None), Mutex::new(finished));
        Ok(Self { run, waiting: Some(waiting), finished, thread: Some(thread) })
    }

    /// A run starts.
    pub fn started(&self, run: &LiveRun) {
        if let Ok(mut current) = self.run.lock() {
            *current = Some(run.clone());
        }
    }

    /// Applies an event, and sends the metrics after an interval and at the end. Never blocks.
    pub fn event(&self, event: &LiveEvent) {
        let Ok(mut current) = self.run.lock() else {
            return;
        };
        let Some(run) = current.as_mut() else {
            return;
        };
        run.apply(event);
        let is_sent = matches!(
            event,
            LiveEvent::Point(_) | LiveEvent::Completed { .. } | LiveEvent::Failed { .. }
        );
        if let Some(waiting) = self.waiting.as_ref().filter(|_| is_sent) {
            // Only the last points are in the metrics.
            let _ = waiting.try_send((run.clone(), Timestamp::now()));
        }
    }
}

impl Drop for MetricsPush {
    fn drop(&mut self) {
        self.waiting = None;
        let finished = self.finished.get_mut().unwrap_or_else(PoisonError::into_inner);
        if finished.recv_timeout(END_TIMEOUT) != Err(RecvTimeoutError::Timeout)
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
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
