//! The store for requests: opened when it is first needed, and used on blocking threads.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::failure::Failure;
use crate::store::{Store, StoreError};

/// Opens the store; `None` if there is none yet.
pub type OpenStore = Arc<dyn Fn() -> Result<Option<Box<dyn Store>>, StoreError> + Send + Sync>;

/// The store of a dashboard.
#[derive(Clone)]
pub(super) struct Stored {
    open: OpenStore,
    /// `None` before the first request, and after an error.
    held: Arc<Mutex<Option<Box<dyn Store>>>>,
}

impl Stored {
    pub(super) fn new(open: OpenStore) -> Self {
        Self { open, held: Arc::default() }
    }

    /// Does work with the store. Fails if there is no store yet. Requests wait for each other, without a thread.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let open = Arc::clone(&self.open);
        let mut held = Arc::clone(&self.held).lock_owned().await;
        let blocking = move || {
            let store = match held.take() {
                Some(store) => store,
                None => open()?.ok_or(Failure::NoRuns)?,
            };
            let result = work(store.as_ref());
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
        work: impl FnOnce(&dyn Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match self.with(work).await {
            Err(Failure::NoRuns) => Ok(T::default()),
            result => result,
        }
    }
}
