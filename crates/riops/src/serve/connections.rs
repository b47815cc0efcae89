//! Limits the number of connections of a server.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections of all clients: far below the limit on open files. Further clients wait.
const CONNECTIONS_MAX: usize = 128;

/// A listener that accepts a bounded number of connections.
#[derive(Debug)]
pub(super) struct Connections {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

/// A connection. Its place is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    stream: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Listener for Connections {
    type Io = Place;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Place, SocketAddr) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Place { stream, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Place {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Place {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
