//! What the charts of single latencies share.

use super::chart::Mark;
use crate::record::{Record, StageRecord};

/// The name of the latency that users wait for.
pub(super) fn kind(stage: &StageRecord) -> &'static str {
    if stage.session_loop.response_us.is_some() { "response time" } else { "latency" }
}

/// The starts of the stages, if there are several.
pub(super) fn marks(record: &Record, starts: &[(usize, f64)]) -> Vec<Mark> {
    if starts.len() < 2 {
        return Vec::new();
    }
    let mark = |&(position, t_s): &(usize, f64)| {
        Some(Mark { x: t_s, label: record.stages.get(position)?.name.clone() })
    };
    starts.iter().filter_map(mark).collect()
}
