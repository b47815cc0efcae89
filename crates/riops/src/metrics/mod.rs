//! What is counted and timed: recorded by each worker alone, merged when an interval or a stage
//! ends. Pure: values in, values out.

mod figures;
mod histogram;
mod outage;
mod recorder;
mod timeline;

pub use figures::Figures;
pub use histogram::{Histogram, HistogramError, LatencySummary};
pub use outage::{ErrorTimes, Gaps, Outage, outage};
pub use recorder::{ErrorCounts, ErrorEntry, IntervalPart, Measured, OperationTotals, Recorder};
pub use timeline::{Point, Timeline};
