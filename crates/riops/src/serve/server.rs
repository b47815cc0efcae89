//! Runs an HTTP server on a separate runtime, until it is asked to stop.

use std::convert::Infallible;
use std::net::TcpListener;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::access::{Access, guard};
use super::connections::{Connections, Limits, Place, Writes};

/// Largest body of a request: the forms are short.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Largest header, and the part of a response that waits for the client: addresses with many filters are a few KB.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How long requests in progress may take after the server was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers requests until `stop` becomes true. `background` runs at the same time, and never ends.
pub(super) fn run(
    listener: TcpListener,
    router: Router,
    access: Access,
    limits: Limits,
    stop: &watch::Receiver<bool>,
    background: impl Future<Output = Infallible>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let router = router
        .layer(from_fn_with_state(limits.body, with_whole_body))
        // The outermost layer: it sees every request and every answer.
        .layer(from_fn_with_state(access, guard));
    let result = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let aborted = async {
            stopped(stop.clone()).await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        tokio::select! {
            () = serve(listener, router, limits, stop.clone()) => {}
            () = aborted => {}
            _ = background => {}
        }
        Ok(())
    });
    // A store that does not respond must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Waits until the server is asked to stop, or its owner is dropped.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Accepts connections until the server is asked to stop, and returns when all have ended.
async fn serve(
    mut listener: tokio::net::TcpListener,
    router: Router,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let connections = Connections::new(limits);
    let mut tasks = JoinSet::new();
    let stopping = stopped(stop.clone());
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            // The method of axum waits if there are too many open files.
            (stream, address) = Listener::accept(&mut listener) => {
                if let Some(place) = connections.admit(address.ip()) {
                    tasks.spawn(connection(stream, place, router.clone(), limits, stop.clone()));
                }
            }
            Some(_) = tasks.join_next() => {}
            () = &mut stopping => break,
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Answers the requests of a connection.
async fn connection(
    stream: TcpStream,
    place: Place,
    router: Router,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let answer = |request| {
        let busy = place.busy();
        let response = router.call(request);
        async { response.await.map(|answer: Response| answer.map(|body| busy.until_end_of(body))) }
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(BUFFER_BYTES_MAX);
    let stream = TokioIo::new(Writes::new(stream, limits.write));
    let served = http.serve_connection(stream, service_fn(answer));
    tokio::pin!(served);
    tokio::select! {
        // An error concerns only this client.
        _ = &mut served => return,
        () = place.closed() => return,
        () = stopped(stop) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}

/// Reads the body of a request before its handler waits for it.
async fn with_whole_body(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match timeout(limit, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Err(_)) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "The request is too large.\n").into_response()
        }
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "The request is incomplete.\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc;
    use std::thread::JoinHandle;

    use axum::routing::get;
    use futures::stream::unfold;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;
    use crate::serve::listen::ListenAddress;

    /// Far above any delay on a loaded machine: a test that waits this long has failed.
    const TIMEOUT: Duration = Duration::from_mins(1);
    /// Long enough for most requests; others are sent again.
    const SHORT: Duration = Duration::from_millis(100);

    struct Running {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        thread: Option<JoinHandle<std::io::Result<()>>>,
    }

    impl Running {
        fn start(router: Router, limits: Limits) -> Self {
            let listen: ListenAddress = "127.0.0.1:0".parse().unwrap();
            let (listener, address) = listen.bind().unwrap();
            let access = Access { hosts: listen.hosts(), token: None };
            let (stop, stopped) = watch::channel(false);
            let thread = std::thread::spawn(move || {
                run(listener, router, access, limits, &stopped, std::future::pending())
            });
            Self { address, stop, thread: Some(thread) }
        }

        fn connect(&self) -> TcpStream {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream
        }

        fn send(&self, request: &str) -> TcpStream {
            let mut stream = self.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        }

        /// Sends a request, again if it was too slow, until the response starts.
        fn answered(&self, request: &str) -> TcpStream {
            loop {
                let stream = self.send(request);
                if matches!(stream.peek(&mut [0]), Ok(1)) {
                    return stream;
                }
            }
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.stop.send(true).unwrap();
            self.thread.take().unwrap().join().unwrap().unwrap();
        }
    }

    fn hello() -> Router {
        Router::new().route("/", get(async || "hello").post(async || "sent"))
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const LAST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    /// What the server sends until it closes the connection.
    fn rest(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            // Closed with bytes that the server has not read.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            result => drop(result.unwrap()),
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Reads up to and including a text.
    fn until(stream: &mut TcpStream, end: &str) {
        let mut text = String::new();
        while !text.ends_with(end) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            text.push(byte[0].into());
        }
    }

    /// A response that sends what the test sends.
    fn streamed() -> (UnboundedSender<&'static str>, Router) {
        let (sender, receiver) = unbounded_channel::<&'static str>();
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(Some(receiver)));
        let answer = async move || {
            let receiver = receiver.lock().unwrap().take().unwrap();
            let next = async |mut receiver: tokio::sync::mpsc::UnboundedReceiver<_>| {
                let text = receiver.recv().await?;
                Some((Ok::<_, std::convert::Infallible>(text), receiver))
            };
            Body::from_stream(unfold(receiver, next))
        };
        (sender, hello().route("/stream", get(answer)))
    }

    #[test]
    fn silent_connections_keep_no_one_out() {
        let running = Running::start(hello(), Limits::DEFAULT);
        let mut silent: Vec<TcpStream> = (0..200).map(|_| running.connect()).collect();
        assert!(rest(&mut running.send(LAST)).ends_with("hello"));
        assert_eq!(rest(&mut silent[0]), "", "the first one made room");
    }

    #[test]
    fn a_connection_without_a_request_ends_in_time() {
        let limits = Limits { header: SHORT, ..Limits::DEFAULT };
        let running = Running::start(hello(), limits);
        assert_eq!(rest(&mut running.connect()), "");
        assert_eq!(rest(&mut running.send("GET / HTTP/1.1\r\nHost: local")), "");
        assert!(rest(&mut running.answered(GET)).ends_with("hello"), "idle after a response");
    }

    #[test]
    fn a_body_that_does_not_arrive_is_refused_in_time() {
        let running = Running::start(hello(), Limits { body: SHORT, ..Limits::DEFAULT });
        let post = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx";
        let reply = rest(&mut running.send(post));
        assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
        let large =
            format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", 1 << 30);
        let reply = rest(&mut running.send(&large));
        assert!(reply.starts_with("HTTP/1.1 4"), "{reply}");
    }

    #[test]
    fn a_stream_is_neither_idle_nor_closed_for_others() {
        let (sender, router) = streamed();
        let running = Running::start(router, Limits { header: SHORT, ..Limits::DEFAULT });
        sender.send("first").unwrap();
        let mut stream = running.answered("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
        until(&mut stream, "first\r\n");
        let silent: Vec<TcpStream> = (0..200).map(|_| running.connect()).collect();
        for mut silent in silent {
            assert_eq!(rest(&mut silent), "", "its time is over");
        }
        sender.send("second").unwrap();
        until(&mut stream, "second\r\n");
        drop(sender);
        assert_eq!(rest(&mut stream), "0\r\n\r\n", "idle after the end of the stream");
    }

    #[test]
    fn a_client_that_does_not_read_holds_no_response() {
        /// Tells the test that the response no longer exists.
        struct Held(mpsc::Sender<()>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (sender, dropped) = mpsc::channel();
        let answer = async move || {
            let held = Held(sender.clone());
            let endless =
                async |held: Held| Some((Ok::<_, std::io::Error>("x".repeat(1 << 16)), held));
            Body::from_stream(unfold(held, endless))
        };
        let router = Router::new().route("/", get(answer));
        let running = Running::start(router, Limits { write: SHORT, ..Limits::DEFAULT });
        let _stream = running.send(GET);
        dropped.recv_timeout(TIMEOUT).unwrap();
    }
}
