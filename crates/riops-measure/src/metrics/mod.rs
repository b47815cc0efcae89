//! Counters and latencies: each worker records its own, and they are merged at the end of an interval
//! or a stage. Pure: no I/O, no clock.

mod commands;
mod counters;
mod errors;
mod events;
mod heatmap;
mod interval;
mod outage;
mod recorder;
mod samples;
mod slots;
mod steadiness;
mod steps;
mod timeline;

pub use commands::{CommandTotals, Commands};
pub use counters::{Counter, Counters, counts_of};
pub use errors::ErrorCounts;
pub use events::{
    EventSource, Failure, Measured, NodeTotals, OperationTotals, Unsuccessful, imbalance,
};
pub use interval::IntervalPart;
pub use outage::{ErrorTimes, Gaps, Outage, Rate, outage, rates};
pub use recorder::Recorder;
pub use samples::Samples;
pub use slots::{Slot, Slots};
pub use steadiness::steadiness;
pub use steps::{Fate, StepTotals, Steps};
pub use timeline::{TimeSeries, Timeline};
