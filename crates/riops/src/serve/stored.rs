//! The store for requests: opened when it is first needed, and used on blocking threads.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::failure::Failure;
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

    /// Does work with the store. Returns `None` if there is no store yet. Requests wait for each other, without a thread.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let open = Arc::clone(&self.open);
        let mut held = Arc::clone(&self.held).lock_owned().await;
        let result = tokio::task::spawn_blocking(move || now(&open, &mut held, work)).await;
        result.map_err(|_| Failure::Aborted)?
    }
}

fn now<T>(
    open: &OpenStore,
    held: &mut Option<Store>,
    work: impl FnOnce(&Store) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let store = match held.take() {
        Some(store) => store,
        None => match open()? {
            Some(store) => store,
            None => return Ok(None),
        },
    };
    let result = work(&store);
    // After any other error of the store, the next request opens it again.
    let is_usable = match &result {
        Err(failure @ Failure::Store(_)) => failure.is_absence(),
        _ => true,
    };
    *held = Some(store).filter(|_| is_usable);
    result.map(Some)
}
