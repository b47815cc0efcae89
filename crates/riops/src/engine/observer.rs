//! The interface through which a running stage reports its progress.

use crate::record::Point;

/// Receives the progress of a running stage.
pub trait Observer {
    /// Called when all sessions are connected.
    fn connected(&mut self, sessions: usize);
    /// Called when the measurement starts.
    fn measuring(&mut self);
    /// Called for each completed interval.
    fn point(&mut self, point: &Point);
    /// Called when the measurement has ended and transactions are still in flight.
    fn draining(&mut self) {}
}
