//! The driver of the workers: whether `io_uring` can be used.

use std::sync::OnceLock;

use super::error::EngineError;
use crate::plan::Driver;

/// The driver of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenDriver {
    /// `epoll` or `io_uring`.
    pub driver: Driver,
    /// Why `io_uring` cannot be used, if it would have been.
    pub refused: Option<&'static str>,
}

/// Chooses the driver. Whether `io_uring` works is tried once.
///
/// # Errors
/// Returns [`EngineError::NoRing`] if `io_uring` was requested and cannot be used.
pub fn choose_driver(wanted: Driver) -> Result<ChosenDriver, EngineError> {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    if wanted == Driver::Epoll {
        return Ok(ChosenDriver { driver: wanted, refused: None });
    }
    let refused = REFUSED.get_or_init(|| riops_ring::probe().err().map(|error| error.to_string()));
    match (refused.as_deref(), wanted) {
        (None, _) => Ok(ChosenDriver { driver: Driver::IoUring, refused: None }),
        (Some(reason), Driver::IoUring) => Err(EngineError::NoRing(reason)),
        (refused, _) => Ok(ChosenDriver { driver: Driver::Epoll, refused }),
    }
}
