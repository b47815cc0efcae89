//! A proxy between a client and a server, both on sockets in folders, that breaks connections at a
//! byte, passes bytes on one by one, and records what each client has sent.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::PORT;

/// What happens to one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It breaks after this many bytes to the server.
    CutToServer(u64),
    /// It breaks after this many bytes to the client.
    CutToClient(u64),
    /// Every byte to the client comes alone.
    Drip,
}

/// A listening proxy; it stops listening when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    folder: PathBuf,
    passed: Arc<Passed>,
    sent: Sent,
}

/// What each client has sent, by the number of its connection.
type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

/// Bytes of the first connection.
#[derive(Debug, Default)]
struct Passed {
    to_server: AtomicU64,
    to_client: AtomicU64,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Proxy {
    /// Starts a proxy to the server in `server`; `fault` is told the number of the connection,
    /// from 0.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn start(server: &Path, fault: impl Fn(u64) -> Fault + Send + 'static) -> io::Result<Self> {
        Self::to(&server.join(format!(".s.PGSQL.{PORT}")), fault)
    }

    /// The same, to the server on this socket.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn to(socket: &Path, fault: impl Fn(u64) -> Fault + Send + 'static) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("riops-proxy-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let name = format!(".s.PGSQL.{PORT}");
        let listener = UnixListener::bind(folder.join(&name))?;
        let target = socket.to_owned();
        let passed = Arc::new(Passed::default());
        let counted = Arc::clone(&passed);
        let sent = Sent::default();
        let recorded = Arc::clone(&sent);
        std::thread::spawn(move || {
            for (session, client) in (0u32..).zip(listener.incoming()) {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&target)) else {
                    return;
                };
                let fault = fault(session.into());
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push(Vec::new());
                let record = (Arc::clone(&recorded), session as usize);
                let counted = (session == 0).then(|| Arc::clone(&counted));
                // A connection that cannot be passed on ends, as one that was cut.
                let _ = pass(&client, &server, fault, (counted.as_ref(), record));
            }
        });
        Ok(Self { folder, passed, sent })
    }

    /// The folder of its socket.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that the first connection has passed: to the server, and to the client.
    #[must_use]
    pub fn passed(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.passed.to_server), count(&self.passed.to_client))
    }
}

impl Proxy {
    /// What each client has sent so far, by the number of its connection.
    #[must_use]
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// One direction of a connection.
struct Direction {
    from: UnixStream,
    to: UnixStream,
    /// Bytes after which it breaks.
    limit: u64,
    /// Bytes that are passed on at once.
    step: usize,
    passed: Option<(Arc<Passed>, bool)>,
    /// Where its bytes are recorded.
    record: Option<(Sent, usize)>,
}

fn pass(
    client: &UnixStream,
    server: &UnixStream,
    fault: Fault,
    (passed, record): (Option<&Arc<Passed>>, (Sent, usize)),
) -> io::Result<()> {
    let (to_server, to_client) = match fault {
        Fault::CutToServer(bytes) => (bytes, u64::MAX),
        Fault::CutToClient(bytes) => (u64::MAX, bytes),
        Fault::None | Fault::Drip => (u64::MAX, u64::MAX),
    };
    let counter = |to_server: bool| passed.map(|passed| (Arc::clone(passed), to_server));
    let directions = [
        Direction {
            from: client.try_clone()?,
            to: server.try_clone()?,
            limit: to_server,
            step: usize::MAX,
            passed: counter(true),
            record: Some(record),
        },
        Direction {
            from: server.try_clone()?,
            to: client.try_clone()?,
            limit: to_client,
            step: if fault == Fault::Drip { 1 } else { usize::MAX },
            passed: counter(false),
            record: None,
        },
    ];
    for direction in directions {
        std::thread::spawn(move || {
            let _ = direction.run();
            let _ = direction.from.shutdown(Shutdown::Both);
            let _ = direction.to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

impl Direction {
    fn run(&self) -> io::Result<()> {
        let mut left = self.limit;
        let mut buffer = [0; 4096];
        while left > 0 {
            let count = match (&self.from).read(&mut buffer)? {
                0 => return Ok(()),
                count => count.min(usize::try_from(left).unwrap_or(usize::MAX)),
            };
            left -= count as u64;
            if let Some((passed, to_server)) = &self.passed {
                let counter = if *to_server { &passed.to_server } else { &passed.to_client };
                counter.fetch_add(count as u64, Ordering::Relaxed);
            }
            if let Some((sent, number)) = &self.record {
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = buffer.get(..count).unwrap_or_default();
                if let Some(own) = sent.get_mut(*number) {
                    own.extend_from_slice(bytes);
                }
            }
            for piece in buffer.get(..count).unwrap_or_default().chunks(self.step) {
                (&self.to).write_all(piece)?;
            }
        }
        Ok(())
    }
}
