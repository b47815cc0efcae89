//! A proxy between a client and a server, both on Unix sockets. It cuts connections at a given byte, forwards
//! bytes one at a time, and records what each client sent.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::listener::{Connection, Listener, socket_file};

/// The fault injected into one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The connection is cut after this many bytes to the server.
    CutToServer(u64),
    /// The connection is cut after this many bytes to the client.
    CutToClient(u64),
    /// Bytes to the client are forwarded one at a time.
    Drip,
    /// Some bytes to the client are changed, chosen by this seed: about one of 512.
    Mutate(u64),
}

/// A listening proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    listener: Listener,
    forwarded: Arc<Forwarded>,
    sent: Sent,
}

/// The bytes that each client sent, by connection number.
type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

/// Number of bytes forwarded on the first connection.
#[derive(Debug, Default)]
struct Forwarded {
    to_server: AtomicU64,
    to_client: AtomicU64,
}

impl Proxy {
    /// Starts a proxy for the server whose socket is in the folder `server`. `fault` gets the connection
    /// number, from 0.
    ///
    /// # Errors
    /// If the folder or the socket of the proxy cannot be created.
    pub fn start(server: &Path, fault: impl Fn(u64) -> Fault + Send + 'static) -> io::Result<Self> {
        Self::start_for(&socket_file(server), fault)
    }

    /// Starts a proxy for the server on this socket.
    ///
    /// # Errors
    /// If the folder or the socket of the proxy cannot be created.
    pub fn start_for(
        socket: &Path,
        fault: impl Fn(u64) -> Fault + Send + 'static,
    ) -> io::Result<Self> {
        let target = socket.to_owned();
        let (forwarded, sent) = (Arc::<Forwarded>::default(), Sent::default());
        let (counters, recorded) = (Arc::clone(&forwarded), Arc::clone(&sent));
        let listener = Listener::start("proxy", move |position, client| {
            let server = UnixStream::connect(&target)?;
            let index = {
                let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                recorded.push(Vec::new());
                recorded.len() - 1
            };
            let counters = (position == 0).then(|| Arc::clone(&counters));
            let record = Recording { sent: Arc::clone(&recorded), index };
            Ok(forward(client, server, fault(position), counters, record))
        })?;
        Ok(Self { listener, forwarded, sent })
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.listener.folder()
    }

    /// Number of bytes forwarded on the first connection: to the server, and to the client.
    pub fn forwarded(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.forwarded.to_server), count(&self.forwarded.to_client))
    }

    /// The bytes that each client has sent so far, by connection number.
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The recorded bytes of a connection.
struct Recording {
    sent: Sent,
    /// Number of the connection.
    index: usize,
}

/// One direction of a connection.
struct Direction {
    from: Arc<UnixStream>,
    to: Arc<UnixStream>,
    /// Number of bytes after which the connection is cut.
    limit: u64,
    /// Largest number of bytes written at a time.
    chunk: usize,
    /// The seed of the changes, if bytes are changed.
    mutation: Option<u64>,
    /// Whether the bytes go to the server, and the counters to add them to.
    counters: Option<(Arc<Forwarded>, bool)>,
    /// The recording to append to.
    record: Option<Recording>,
}

fn forward(
    client: UnixStream,
    server: UnixStream,
    fault: Fault,
    counters: Option<Arc<Forwarded>>,
    record: Recording,
) -> Connection {
    let (client, server) = (Arc::new(client), Arc::new(server));
    let (to_server, to_client) = match fault {
        Fault::CutToServer(bytes) => (bytes, u64::MAX),
        Fault::CutToClient(bytes) => (u64::MAX, bytes),
        Fault::None | Fault::Drip | Fault::Mutate(_) => (u64::MAX, u64::MAX),
    };
    let directions = [
        Direction {
            from: Arc::clone(&client),
            to: Arc::clone(&server),
            limit: to_server,
            chunk: usize::MAX,
            mutation: None,
            counters: counters.clone().map(|counters| (counters, true)),
            record: Some(record),
        },
        Direction {
            from: Arc::clone(&server),
            to: Arc::clone(&client),
            limit: to_client,
            chunk: if fault == Fault::Drip { 1 } else { usize::MAX },
            mutation: if let Fault::Mutate(seed) = fault { Some(seed) } else { None },
            counters: counters.map(|counters| (counters, false)),
            record: None,
        },
    ];
    let threads = directions.map(|direction| {
        std::thread::spawn(move || {
            let _ = direction.run();
            let _ = direction.from.shutdown(Shutdown::Both);
            let _ = direction.to.shutdown(Shutdown::Both);
        })
    });
    Connection { sockets: vec![client, server], threads: threads.into() }
}

/// Returns the change of the next byte: nearly always 0. The generator is `SplitMix64`.
fn change(state: &mut u64) -> u8 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let [first, second, change, ..] = mixed.to_le_bytes();
    if first == 0 && second < 128 { change | 1 } else { 0 }
}

impl Direction {
    fn run(&self) -> io::Result<()> {
        let mut remaining = self.limit;
        let mut random = self.mutation;
        let mut buffer = [0; 4096];
        while remaining > 0 {
            let count = match self.from.as_ref().read(&mut buffer)? {
                0 => return Ok(()),
                count => count.min(usize::try_from(remaining).unwrap_or(usize::MAX)),
            };
            remaining -= count as u64;
            let bytes = buffer.get_mut(..count).unwrap_or_default();
            if let Some(random) = &mut random {
                for byte in bytes.iter_mut() {
                    *byte ^= change(random);
                }
            }
            let bytes = &*bytes;
            if let Some((counters, is_to_server)) = &self.counters {
                let counter = if *is_to_server { &counters.to_server } else { &counters.to_client };
                counter.fetch_add(count as u64, Ordering::Relaxed);
            }
            if let Some(Recording { sent, index }) = &self.record {
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(recording) = sent.get_mut(*index) {
                    recording.extend_from_slice(bytes);
                }
            }
            for chunk in bytes.chunks(self.chunk) {
                self.to.as_ref().write_all(chunk)?;
            }
        }
        Ok(())
    }
}
