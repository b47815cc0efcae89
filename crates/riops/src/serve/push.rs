//! Sends the metrics of a run in progress to a receiver of Prometheus's remote write, from a separate thread: a slow receiver
//! delays nothing, and loses intervals instead.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::ServeError;
use super::token::Token;
use crate::record::{LiveEvent, LiveRun};
use crate::report::remote_write;

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
#[derive(Debug, Clone)]
struct Target {
    address: String,
    path: String,
    token: Option<Token>,
}

impl MetricsPush {
    /// Starts the thread. `on_error` is called once, with the first error.
    ///
    /// # Errors
    /// [`ServeError::PushAddress`] if the address is no `http://HOST[:PORT]/PATH`, and [`ServeError::Start`] if the thread
    /// cannot be started.
    pub fn start(
        url: &str,
        token: Option<Token>,
        on_error: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, ServeError> {
        let target = Target { token, ..target_of(url)? };
        let (waiting, received) = sync_channel(WAITING_MAX);
        let (done, finished) = sync_channel(1);
        let failed = |source| ServeError::Start { address: url.to_owned(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("riops-push".to_owned())
            .spawn(move || {
                send_all(&runtime, &target, &received, &on_error);
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

/// Returns the target of a URL, without a token.
fn target_of(url: &str) -> Result<Target, ServeError> {
    let refused = || ServeError::PushAddress(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| refused())?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(refused)?;
    let port = uri.port_u16().unwrap_or(80);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Target { address: format!("{host}:{port}"), path: path.to_owned(), token: None })
}

fn send_all(
    runtime: &tokio::runtime::Runtime,
    target: &Target,
    received: &Receiver<(LiveRun, Timestamp)>,
    on_error: &dyn Fn(&str),
) {
    let mut is_told = false;
    while let Ok((run, at)) = received.recv() {
        let sent = remote_write(&run, at).map_err(|error| error.to_string());
        let sent = sent.and_then(|body| send(runtime, target, &body));
        if let (Err(error), false) = (sent, is_told) {
            is_told = true;
            on_error(&error);
        }
    }
}

/// Sends a request; again if the receiver is not available for the moment.
fn send(runtime: &tokio::runtime::Runtime, target: &Target, body: &[u8]) -> Result<(), String> {
    let mut pause = PAUSE;
    let mut attempt = 1;
    loop {
        let started = Instant::now();
        let answer = runtime.block_on(async {
            match timeout(REQUEST_TIMEOUT, request(target, body.to_vec())).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {} s", started.elapsed().as_secs())),
            }
        });
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

async fn request(target: &Target, body: Vec<u8>) -> Result<StatusCode, String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect(&target.address).await.map_err(|error| failed(&error))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;
    tokio::spawn(connection);
    let mut request = Request::post(&target.path)
        .header(HOST, &target.address)
        .header(CONTENT_ENCODING, "snappy")
        .header(CONTENT_TYPE, "application/x-protobuf")
        .header(USER_AGENT, concat!("riops/", env!("CARGO_PKG_VERSION")))
        .header("X-Prometheus-Remote-Write-Version", "0.1.0");
    if let Some(token) = &target.token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.text()));
    }
    let request = request.body(Body::from(body)).map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
    Ok(answer.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_of_http() {
        let target = target_of("http://localhost:9090/api/v1/write?x=1").unwrap();
        assert_eq!((&*target.address, &*target.path), ("localhost:9090", "/api/v1/write?x=1"));
        assert_eq!(target_of("http://prometheus").unwrap().address, "prometheus:80");
        for url in ["https://a/b", "localhost:9090", "/api", "http://", "no url"] {
            assert!(target_of(url).is_err(), "{url}");
        }
    }
}
