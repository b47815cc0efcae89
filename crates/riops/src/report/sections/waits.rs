//! What the sessions waited for.

use crate::figure::Summary;
use crate::record::WaitShare;
use crate::report::document::Document;
use crate::units::format::{number_of, percent};

/// Wait events that are named.
const NAMED_MAX: usize = 6;
/// Wait events with a smaller share are not named.
const SHARE_MIN: f64 = 0.005;

/// The wait events of the sessions, and what it cost to sample them.
pub(in crate::report) fn waits(document: &mut Document, summary: &Summary<'_>) {
    let stage = summary.stage;
    let (Some(probes), Some(waits)) = (&stage.probes, summary.waits()) else {
        return;
    };
    let named = named(waits.iter(), NAMED_MAX);
    let cost = percent(probes.cpu_s / stage.seconds.max(f64::MIN_POSITIVE));
    let samples = number_of(probes.looks, "sample");
    document.line("wait events", format!("{named} ({samples}, {cost} of one CPU)"));
}

/// The most frequent events with their shares.
pub(in crate::report) fn named<'a>(
    waits: impl IntoIterator<Item = &'a WaitShare>,
    most: usize,
) -> String {
    let named = waits.into_iter().filter(|wait| wait.share >= SHARE_MIN).take(most);
    let texts: Vec<_> =
        named.map(|wait| format!("{} {}", wait.event, percent(wait.share))).collect();
    texts.join(" · ")
}
