//! What requests read, on blocking threads: the store, opened when it is first needed, and the runs in progress, read on
//! demand, and repeatedly while a live view is open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::failure::Failure;
use crate::record::LiveRun;
use crate::store::live::LiveSource;
use crate::store::{Store, StoreError};

/// Opens the store; `None` if there is none yet.
pub type OpenStore = Arc<dyn Fn() -> Result<Option<Store>, StoreError> + Send + Sync>;

/// The store of a dashboard.
#[derive(Clone)]
pub(super) struct Stored {
    open: OpenStore,
    /// `None` before the first request, and after an error.
    held: Arc<Mutex<Option<Store>>>,
}

impl Stored {
    pub(super) fn new(open: OpenStore) -> Self {
        Self { open, held: Arc::default() }
    }

    /// Does work with the store. Fails if there is no store yet. Requests wait for each other, without a thread.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let open = Arc::clone(&self.open);
        let mut held = Arc::clone(&self.held).lock_owned().await;
        let blocking = move || {
            let store = match held.take() {
                Some(store) => store,
                None => open()?.ok_or(Failure::NoRuns)?,
            };
            let result = work(&store);
            // After any other error of the store, the next request opens it again.
            let is_usable = match &result {
                Err(failure @ Failure::Store(_)) => failure.is_absence(),
                _ => true,
            };
            *held = Some(store).filter(|_| is_usable);
            result
        };
        tokio::task::spawn_blocking(blocking).await.map_err(|_| Failure::Aborted)?
    }

    /// The same, with an empty result if there is no store yet.
    pub(super) async fn any<T: Default + Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match self.with(work).await {
            Err(Failure::NoRuns) => Ok(T::default()),
            result => result,
        }
    }
}

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
