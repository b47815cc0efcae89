//! The driver of the workers: whether `io_uring` can be used.

use std::sync::OnceLock;

use super::error::EngineError;
use riops_model::plan::Driver;

/// The driver of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenDriver {
    /// `epoll` or `io_uring`.
    pub driver: Driver,
    /// Why `io_uring` cannot be used, if it would have been.
    pub refused: Option<&'static str>,
}

/// From this number of sessions per worker on, `io_uring` needs less CPU than epoll (docs/performance.md, measured with
/// `bench/bench.py drivers`).
const RING_SESSIONS_MIN: usize = 4;

/// Chooses the driver for this many sessions and workers. Whether `io_uring` works is tried once.
///
/// # Errors
/// Returns [`EngineError::NoRing`] if `io_uring` was requested and cannot be used.
pub fn choose_driver(
    wanted: Driver,
    sessions: usize,
    workers: usize,
) -> Result<ChosenDriver, EngineError> {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let are_few = sessions < workers.saturating_mul(RING_SESSIONS_MIN);
    if wanted == Driver::Epoll || wanted == Driver::Auto && are_few {
        return Ok(ChosenDriver { driver: Driver::Epoll, refused: None });
    }
    let refused = REFUSED.get_or_init(|| riops_ring::probe().err().map(|error| error.to_string()));
    match (refused.as_deref(), wanted) {
        (None, _) => Ok(ChosenDriver { driver: Driver::IoUring, refused: None }),
        (Some(reason), Driver::IoUring) => Err(EngineError::NoRing(reason)),
        (refused, _) => Ok(ChosenDriver { driver: Driver::Epoll, refused }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sessions_per_worker_use_epoll_unless_the_ring_is_asked_for() {
        let chosen = |wanted, sessions, workers| {
            choose_driver(wanted, sessions, workers).ok().map(|chosen| chosen.driver)
        };
        for (sessions, workers) in [(1, 1), (3, 1), (7, 2)] {
            assert_eq!(chosen(Driver::Auto, sessions, workers), Some(Driver::Epoll));
        }
        // Whether the ring works depends on the machine.
        let ring = chosen(Driver::IoUring, 1, 1);
        assert_eq!(chosen(Driver::Auto, 8, 2), ring.or(Some(Driver::Epoll)));
        assert_eq!(chosen(Driver::Epoll, 1000, 1), Some(Driver::Epoll));
    }
}
