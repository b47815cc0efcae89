//! A Unix socket in a temporary folder, and the threads that serve its connections.
//!
//! Dropping the listener closes every connection and joins every thread, so that a test that starts thousands
//! of servers one after another holds the sockets of one.

use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The port in the name of the socket file.
pub const PORT: u16 = 5432;

static NEXT_FOLDER: AtomicU64 = AtomicU64::new(0);

/// One accepted connection: its sockets and the threads that use them.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) sockets: Vec<Arc<UnixStream>>,
    pub(crate) threads: Vec<JoinHandle<()>>,
}

impl Connection {
    fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    fn close(self) {
        for socket in &self.sockets {
            // A socket that the peer has closed already cannot be shut down.
            let _ = socket.shutdown(Shutdown::Both);
        }
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// A listening socket whose connections are served by a closure.
pub(crate) struct Listener {
    folder: PathBuf,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens in a new temporary folder whose name contains `name`. `serve` gets the number of the
    /// connection, from 0, and its socket.
    ///
    /// # Errors
    /// If the folder or the socket cannot be created.
    pub(crate) fn start(
        name: &str,
        mut serve: impl FnMut(u64, UnixStream) -> io::Result<Connection> + Send + 'static,
    ) -> io::Result<Self> {
        let id = NEXT_FOLDER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("riops-{name}-{}-{id}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let listener = UnixListener::bind(socket_file(&folder))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            let mut open: Vec<Connection> = Vec::new();
            for (position, stream) in (0..).zip(listener.incoming()) {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                open.retain(|connection| !connection.is_finished());
                let Ok(connection) = stream.and_then(|stream| serve(position, stream)) else {
                    break;
                };
                open.push(connection);
            }
            open.into_iter().for_each(Connection::close);
        });
        Ok(Self { folder, stopped, thread: Some(thread) })
    }

    /// The folder of the socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Listener").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the accepting thread; fails if that thread has ended.
        let _ = UnixStream::connect(socket_file(&self.folder));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The socket file that libpq expects in this folder.
pub(crate) fn socket_file(folder: &Path) -> PathBuf {
    folder.join(format!(".s.PGSQL.{PORT}"))
}
