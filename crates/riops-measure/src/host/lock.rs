//! Waiting for the lock of a file.

use std::fs::TryLockError;
use std::io::Result;
use std::time::Duration;

use super::interrupt::Interrupt;

/// How often a lock is tried.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for a lock: a blocking wait would not end on a signal. Calls `on_wait` before the first wait. Returns false if an
/// interruption was requested first.
///
/// # Errors
/// The error of `try_lock`: a file system without lock support is an error.
pub fn await_lock(
    interrupt: &Interrupt,
    try_lock: impl Fn() -> std::result::Result<(), TryLockError>,
    on_wait: &dyn Fn(),
) -> Result<bool> {
    let mut is_waiting = false;
    while let Err(error) = try_lock() {
        if let TryLockError::Error(source) = error {
            return Err(source);
        }
        if !std::mem::replace(&mut is_waiting, true) {
            on_wait();
        }
        if !interrupt.pause(POLL_INTERVAL) {
            return Ok(false);
        }
    }
    Ok(true)
}
