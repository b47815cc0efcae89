//! Who sees a stage while it runs.

use crate::metrics::Point;

/// Sees a stage while it runs.
pub trait Observer {
    /// All sessions are connected.
    fn connected(&mut self, sessions: usize);
    /// The warm-up is over, or there was none.
    fn measuring(&mut self);
    /// An interval is over.
    fn point(&mut self, point: &Point);
    /// The measurement is over, and some transactions are still under way.
    fn draining(&mut self) {}
}
