//! The open connections of a server: who must make room if there are too many, and which end because the client does not
//! read.
//!
//! A connection is idle until the header of a request has arrived, and again after the response. Idle ones are closed
//! to admit others, so that silent clients keep no one out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

/// Bits of an IPv6 address that belong to the network: a client has the others for itself.
const NETWORK_BITS: u32 = 64;

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Time for the header of a request, and between two requests of a connection.
    pub(super) header: Duration,
    /// Time for the body of a request.
    pub(super) body: Duration,
    /// Time in which a client must read some of its response.
    pub(super) write: Duration,
    /// Connections of all clients.
    pub(super) connections: usize,
    /// Connections of one address.
    pub(super) per_address: usize,
}

impl Limits {
    /// The timeouts come from nginx, rounded down. The number of connections is far below the limit on open files; half of
    /// it suffices for a proxy, whose clients all have its address.
    pub(super) const DEFAULT: Self = Self {
        header: Duration::from_secs(30),
        body: Duration::from_secs(30),
        write: Duration::from_secs(30),
        connections: 128,
        per_address: 64,
    };
}

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of the last connection or response.
    last: u64,
    open: BTreeMap<u64, Client>,
}

#[derive(Debug)]
struct Client {
    address: IpAddr,
    /// The number at which it became idle; `None` while a request is answered.
    idle_since: Option<u64>,
    close: Arc<Notify>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// Admits a connection. With too many connections, closes the longest idle one, and returns `None` if none is idle.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Place> {
        let address = client(address);
        let mut table = lock(&self.table);
        let of_address = table.open.values().filter(|client| client.address == address).count();
        let is_admitted = (of_address < self.limits.per_address
            || table.close_idle(|client| client.address == address))
            && (table.open.len() < self.limits.connections || table.close_idle(|_| true));
        is_admitted.then(|| {
            let (id, close) = (table.next(), Arc::<Notify>::default());
            let client = Client { address, idle_since: Some(id), close: Arc::clone(&close) };
            table.open.insert(id, client);
            Place { table: Arc::clone(&self.table), id, close }
        })
    }
}

impl Table {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Closes the connection that has been idle for longest. Returns false if none is idle.
    fn close_idle(&mut self, is_candidate: impl Fn(&Client) -> bool) -> bool {
        let candidates = self.open.iter().filter(|(_, client)| is_candidate(client));
        let idle = candidates.filter_map(|(id, client)| Some((client.idle_since?, *id)));
        let Some(closed) = idle.min().and_then(|(_, id)| self.open.remove(&id)) else {
            return false;
        };
        closed.close.notify_one();
        true
    }
}

fn lock(table: &Mutex<Table>) -> std::sync::MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what the connections of a client have in common.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

/// The place of a connection, which is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    table: Arc<Mutex<Table>>,
    id: u64,
    close: Arc<Notify>,
}

impl Place {
    /// Waits until this connection must make room for another one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    /// A request has arrived: the connection is not idle until this is dropped.
    pub(super) fn busy(&self) -> Busy {
        if let Some(client) = lock(&self.table).open.get_mut(&self.id) {
            client.idle_since = None;
        }
        Busy { table: Arc::clone(&self.table), id: self.id }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.table).open.remove(&self.id);
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(super) struct Busy {
    table: Arc<Mutex<Table>>,
    id: u64,
}

impl Busy {
    /// Keeps the connection busy until the end of this body.
    pub(super) fn until_end_of(self, body: Body) -> Body {
        Body::new(Answer { body, _busy: self })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        let now = table.next();
        if let Some(client) = table.open.get_mut(&self.id) {
            client.idle_since = Some(now);
        }
    }
}

/// The body of a response.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose writes fail if none of their bytes is accepted in time: otherwise, a client that stops to read would
/// hold its response in memory.
#[derive(Debug)]
pub(super) struct Writes {
    stream: TcpStream,
    limit: Duration,
    /// Ends when the client must have read something; `None` if no write is waiting.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Writes {
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, stalled: None }
    }
}

impl AsyncRead for Writes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Writes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, bytes) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn connections() -> Connections {
        Connections::new(Limits { connections: 3, per_address: 2, ..Limits::DEFAULT })
    }

    fn must_close(place: &Place) -> bool {
        place.closed().now_or_never().is_some()
    }

    #[test]
    fn the_longest_idle_connection_of_an_address_makes_room() {
        let connections = connections();
        let other = connections.admit(OTHER).unwrap();
        let places = [(); 2].map(|()| connections.admit(ONE).unwrap());
        drop(places[0].busy());
        let third = connections.admit(ONE).unwrap();
        assert_eq!(
            [&other, &places[0], &places[1], &third].map(must_close),
            [false, false, true, false]
        );
    }

    #[test]
    fn a_request_in_progress_is_not_closed() {
        let connections = connections();
        let places = [(); 2].map(|()| connections.admit(ONE).unwrap());
        let busy = places.each_ref().map(Place::busy);
        assert!(connections.admit(ONE).is_none(), "nothing is idle");
        let other = connections.admit(OTHER).unwrap();
        let next = connections.admit(OTHER).unwrap();
        assert!(must_close(&other) && !must_close(&next));
        drop(busy);
        assert!(connections.admit(ONE).is_some());
        assert!(must_close(&places[0]));
    }

    #[test]
    fn an_ended_connection_leaves_its_place() {
        let connections = connections();
        let places = [(); 2].map(|()| connections.admit(ONE).unwrap());
        let busy = places.each_ref().map(Place::busy);
        drop(places);
        drop(busy);
        assert!(lock(&connections.table).open.is_empty());
    }

    #[test]
    fn a_client_is_an_address_or_an_ipv6_network() {
        let client_of = |text: &str| client(text.parse().unwrap());
        assert_eq!(client_of("::ffff:192.0.2.1"), ONE);
        assert_eq!(client_of("2001:db8::1"), client_of("2001:db8::ffff:2"));
        assert_ne!(client_of("2001:db8::1"), client_of("2001:db8:0:1::1"));
        assert_ne!(client_of("127.0.0.1"), client_of("127.0.0.2"));
    }
}
