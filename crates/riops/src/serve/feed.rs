//! The runs in progress for requests: read on demand, and repeatedly while a live view is open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use crate::record::LiveRun;
use crate::store::live::LiveSource;

/// Time between two reads while a live view is open.
const READ_EVERY: Duration = Duration::from_millis(500);

/// The runs in progress, oldest first.
pub(super) type Runs = Arc<Vec<LiveRun>>;

/// Reads the runs in progress.
pub(super) struct Feed {
    source: Arc<Mutex<Box<dyn LiveSource>>>,
    latest: watch::Sender<Runs>,
}

impl Feed {
    pub(super) fn new(source: Box<dyn LiveSource>) -> Self {
        Self { source: Arc::new(Mutex::new(source)), latest: watch::Sender::default() }
    }

    /// Returns the runs in progress; none if they cannot be read. The stored runs can be shown nevertheless.
    pub(super) async fn current(&self) -> Runs {
        // Requests wait for each other, without a thread.
        let mut source = Arc::clone(&self.source).lock_owned().await;
        let Ok(Ok(runs)) = tokio::task::spawn_blocking(move || source.runs()).await else {
            return Runs::default();
        };
        let runs = Arc::new(runs);
        // The last events of a run are returned only once.
        if self.latest.receiver_count() > 0 {
            self.latest.send_replace(Arc::clone(&runs));
        }
        runs
    }

    /// Returns the changes of the runs, as long as [`Self::keep_reading`] is running.
    pub(super) fn watch(&self) -> watch::Receiver<Runs> {
        let mut receiver = self.latest.subscribe();
        receiver.mark_unchanged();
        receiver
    }

    /// Reads the runs repeatedly. Never ends.
    pub(super) async fn keep_reading(&self) {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            if self.latest.receiver_count() > 0 {
                self.current().await;
            }
        }
    }
}
