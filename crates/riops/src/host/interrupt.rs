//! The wish of the user to end early: Ctrl-C or SIGTERM, as a value that everything long can ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all who may set it and all who have to obey it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody has asked.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
