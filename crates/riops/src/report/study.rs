//! A run of several stages: one line each, with a bar.

use super::format::{duration_us, rate};
use super::model::{Limit, Summary};
use super::terminal::{Block, headline};
use crate::store::StageRecord;

/// Characters of the longest bar.
const BAR_WIDTH: usize = 16;
/// Eighths of a character.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

pub(super) fn study(block: &mut Block, summaries: &[Summary<'_>]) {
    let rows_per_s = |stage: &StageRecord| stage.throughput.rows_per_s;
    let most = summaries.iter().map(|summary| rows_per_s(summary.stage)).fold(0.0, f64::max);
    let sides = summaries.iter().any(|summary| summary.stage.kind != "loop");
    let methods = summaries.iter().any(|summary| summary.stage.method.is_some());
    let width = if methods { 11 } else { 7 };
    block.line(
        "",
        &format!(
            "{:>width$}  {}{:>10}  {:<BAR_WIDTH$}  {:>7}  {:>7}  limit",
            if methods { "method" } else { "batch" },
            if sides { "loop    " } else { "" },
            "rows/s",
            "",
            "p50",
            "p99"
        ),
    );
    for (position, summary) in summaries.iter().enumerate() {
        let stage = summary.stage;
        let side = match (sides, stage.kind.as_str()) {
            (false, _) => "",
            (true, "server_loop") => "server  ",
            (true, _) => "client  ",
        };
        let latency = |pick: fn(&crate::metrics::LatencySummary) -> f64| {
            stage.service_us.as_ref().map_or_else(String::new, |latency| duration_us(pick(latency)))
        };
        block.line(
            if position == 0 { headline(&summary.record.plan.work) } else { "" },
            &format!(
                "{:>width$}  {side}{:>10}  {:<BAR_WIDTH$}  {:>7}  {:>7}  {}",
                stage.method.clone().or_else(|| stage.batch.map(super::count)).unwrap_or_default(),
                rate(rows_per_s(stage)),
                bar(rows_per_s(stage) / most.max(f64::MIN_POSITIVE)),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                limit_word(summary.limit()),
            ),
        );
    }
}

fn limit_word(limit: Limit) -> &'static str {
    match limit {
        Limit::Client => "client",
        Limit::SharedCpu => "CPU",
        Limit::Device => "device",
        Limit::Rate => "the rate",
        Limit::Waiting => "waiting",
        Limit::ServerOrNetwork => "not the client",
    }
}

/// A bar of this share of the longest.
fn bar(share: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "eighths of a few characters"
    )]
    let eighths = (share.clamp(0.0, 1.0) * BAR_WIDTH as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    match EIGHTHS.get(eighths % 8) {
        Some(' ') if bar.is_empty() => bar.push('▏'),
        Some(' ') | None => {}
        Some(&part) => bar.push(part),
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share_and_never_nothing() {
        assert_eq!(bar(1.0).chars().count(), BAR_WIDTH);
        assert_eq!(bar(0.5), "█".repeat(BAR_WIDTH / 2));
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.07), "█▏");
    }
}
