//! Runs an HTTP server on a separate runtime, until it is asked to stop.

use std::future::IntoFuture;
use std::net::TcpListener;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tokio::sync::watch;

use super::access::{Access, guard};
use super::connections::Connections;

/// Largest body of a request: the forms are short.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// How long requests in progress may take after the server was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers requests until `stop` becomes true. `background` runs at the same time.
pub(super) fn run(
    listener: TcpListener,
    router: Router,
    access: Access,
    stop: watch::Receiver<bool>,
    background: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let router = router
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        // The outermost layer: it sees every request and every answer.
        .layer(from_fn_with_state(access, guard));
    let result = runtime.block_on(async {
        let listener = Connections::new(tokio::net::TcpListener::from_std(listener)?);
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(stopped(stop.clone()))
            .into_future();
        let aborted = async {
            stopped(stop).await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        let idle = async {
            background.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            result = server => result,
            () = aborted => Ok(()),
            () = idle => Ok(()),
        }
    });
    // A store that does not respond must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Waits until the server is asked to stop, or its owner is dropped.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
