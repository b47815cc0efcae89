//! What the sessions waited for.

use super::super::block::Block;
use super::super::format::{number_of, percent};
use super::super::model::Summary;

/// Wait events that are named.
const NAMED_MAX: usize = 6;
/// Wait events with a smaller share are not named.
const SHARE_MIN: f64 = 0.005;
/// With fewer samples of all sessions together, a share in percent means nothing.
const SAMPLES_MIN: f64 = 20.0;

/// The wait events of the sessions, and what it cost to sample them.
pub(in crate::report) fn waits(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let Some(probes) = stage.probes.as_ref().filter(|probes| !probes.waits.is_empty()) else {
        return;
    };
    if (probes.looks as f64) * f64::from(stage.sessions) < SAMPLES_MIN {
        return;
    }
    let named: Vec<_> = probes
        .waits
        .iter()
        .filter(|wait| wait.share >= SHARE_MIN)
        .take(NAMED_MAX)
        .map(|wait| format!("{} {}", wait.event, percent(wait.share)))
        .collect();
    let cost = percent(probes.cpu_s / stage.seconds.max(f64::MIN_POSITIVE));
    let samples = number_of(probes.looks, "sample");
    block.line("wait events", &format!("{} ({samples}, {cost} of one CPU)", named.join(" · ")));
}
