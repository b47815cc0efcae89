//! A run of several stages: one line each, with a bar.

use super::super::block::Block;
use super::super::format::{duration_us, percent, rate};
use super::super::model::{Limit, Summary};
use crate::record::{LatencySummary, StageRecord};

/// Characters of the longest bar.
const BAR_WIDTH: usize = 16;
/// Eighths of a character.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

pub(in crate::report) fn study(block: &mut Block, summaries: &[Summary<'_>], headline: &str) {
    let rows_per_s = |stage: &StageRecord| stage.throughput.rows_per_s;
    let most = summaries.iter().map(|summary| rows_per_s(summary.stage)).fold(0.0, f64::max);
    let methods = summaries.iter().any(|summary| summary.stage.session_loop.method.is_some());
    let sides = summaries.iter().any(|summary| summary.stage.kind != "loop");
    let (first, width) = if methods { ("method", 11) } else { ("batch", 7) };
    let second = match (methods, sides) {
        (true, _) => " seconds  in db  ",
        (false, true) => "loop    ",
        (false, false) => "",
    };
    block.line(
        "",
        &format!(
            "{first:>width$}  {second}{:>10}  {:<BAR_WIDTH$}  {:>7}  {:>7}  limit",
            "rows/s", "", "p50", "p99"
        ),
    );
    for (position, summary) in summaries.iter().enumerate() {
        let stage = summary.stage;
        let second = match (sides, stage.kind.as_str()) {
            _ if methods => format!("{:>8.3}  {:>5}  ", stage.seconds, in_database(stage)),
            (false, _) => String::new(),
            (true, "server_loop") => "server  ".to_owned(),
            (true, _) => "client  ".to_owned(),
        };
        let latency = |pick: fn(&LatencySummary) -> f64| {
            stage
                .session_loop
                .service_us
                .as_ref()
                .map_or_else(String::new, |latency| duration_us(pick(latency)))
        };
        let name = stage
            .session_loop
            .method
            .clone()
            .or_else(|| stage.session_loop.batch.map(super::super::count));
        block.line(
            if position == 0 { headline } else { "" },
            &format!(
                "{:>width$}  {second}{:>10}  {:<BAR_WIDTH$}  {:>7}  {:>7}  {}",
                name.unwrap_or_default(),
                rate(rows_per_s(stage)),
                bar(rows_per_s(stage) / most.max(f64::MIN_POSITIVE)),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                limit_word(summary.limit()),
            ),
        );
    }
    if let Some(bytes) = summaries.iter().find_map(|summary| summary.stage.session_loop.row_bytes) {
        block.line("", &format!("a row has {} bytes", super::super::count(bytes)));
    }
}

/// The time of all sessions in the database, as a share of the wallclock time.
fn in_database(stage: &StageRecord) -> String {
    stage.database_s.map_or_else(String::new, |database_s| {
        percent(database_s / stage.seconds.max(f64::MIN_POSITIVE))
    })
}

fn limit_word(limit: Limit) -> &'static str {
    match limit {
        Limit::Client => "client",
        Limit::Locks => "locks",
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
