//! Latency over time, as counts.

use serde::{Deserialize, Serialize};

/// Counts of latencies by time slot and latency class: of the response times with a rate, otherwise of the service
/// times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatmapRecord {
    /// Length of a time slot, in seconds.
    pub slot_s: f64,
    /// Classes per decade c: class k starts at 10^(k/c) microseconds.
    pub classes_per_decade: u32,
    /// The slots, from the start of the measurement on.
    pub slots: Vec<HeatmapSlot>,
}

/// Counts of one time slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapSlot {
    /// Number of the first class that is not empty.
    pub first_class: i32,
    /// Number of latencies in this class and the following ones.
    pub counts: Vec<u64>,
}
