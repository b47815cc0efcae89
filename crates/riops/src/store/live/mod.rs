//! Runs in progress: a run publishes its events beside the store, and other processes read them.
//!
//! A sink writes the events of one run, and a source reads the events of all runs. Both have one implementation for each
//! kind of store. Publishing must never delay a run or fail it: see [`Publisher`].

mod files;
mod postgresql;
mod publisher;

use std::path::{Path, PathBuf};

pub(crate) use postgresql::create_tables;
pub use publisher::{OpenSink, Publisher, sink_of, source_of};

use crate::record::{LiveRun, RunEvent};
use crate::server::ConnectionError;

/// Failure to publish or to read a run in progress.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A file of a run in progress cannot be accessed.
    #[error("cannot access the file {path} of a run in progress: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The database of the store cannot be accessed.
    #[error("cannot access the runs in progress in the database of the store: {0}")]
    Database(#[from] ConnectionError),
    /// A state or an event cannot be written as JSON.
    #[error("cannot write an event of a run in progress as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Publishes one run.
pub trait LiveSink: Send {
    /// Adds an event. `run` is the state after it.
    ///
    /// # Errors
    /// [`LiveError`] if it cannot be written.
    fn publish(&mut self, event: &RunEvent, run: &LiveRun) -> Result<(), LiveError>;

    /// Shows that the process is alive. Called every few seconds.
    ///
    /// # Errors
    /// [`LiveError`] if it cannot be written.
    fn heartbeat(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}

/// Reads the runs in progress.
pub trait LiveSource: Send {
    /// Returns the current state of all runs in progress, oldest first. Runs of dead processes are absent.
    ///
    /// # Errors
    /// [`LiveError`] if they cannot be read.
    fn runs(&mut self) -> Result<Vec<LiveRun>, LiveError>;
}

/// Returns the directory of the runs in progress of a store that is a file.
fn live_directory(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".live");
    PathBuf::from(name)
}
