//! Interruption by the user: Ctrl-C or SIGTERM, as a flag that all long operations check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interrupt flag, shared by the signal handler and all long operations.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the interruption of all operations.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether an interruption was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
