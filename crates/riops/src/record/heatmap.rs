//! Latency over time, as counts.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::metrics;

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

from_measured!(HeatmapSlot from metrics::HeatmapSlot { first_class, counts });

impl From<metrics::Heatmap> for HeatmapRecord {
    fn from(measured: metrics::Heatmap) -> Self {
        Self {
            slot_s: measured.slot_s,
            classes_per_decade: metrics::CLASSES_PER_DECADE,
            slots: measured.slots.into_iter().map(Into::into).collect(),
        }
    }
}
