//! A run of several stages: one row each, with a bar.

use super::super::block::Block;
use super::super::columns::{Align, Columns};
use super::super::format::{count, duration_us, percent, rate};
use super::super::model::{Bottleneck, Summary};
use crate::record::{LatencySummary, StageRecord};

/// Characters of the longest bar.
const BAR_WIDTH: usize = 16;
/// Eighths of a character.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

pub(in crate::report) fn study(block: &mut Block, summaries: &[Summary<'_>], headline: &str) {
    let rows_per_s = |stage: &StageRecord| stage.throughput.rows_per_s;
    let most = summaries.iter().map(|summary| rows_per_s(summary.stage)).fold(0.0, f64::max);
    let has_methods = summaries.iter().any(|summary| summary.stage.session_loop.method.is_some());
    let has_sides = !has_methods && summaries.iter().any(|summary| summary.stage.kind != "loop");
    let mut titles = vec![(if has_methods { "method" } else { "batch" }, Align::Right)];
    if has_methods {
        titles.extend([
            ("commits", Align::OptionalRight),
            ("rows/commit", Align::OptionalRight),
            ("seconds", Align::Right),
            ("in db", Align::Right),
        ]);
    }
    if has_sides {
        titles.push(("loop", Align::Left));
    }
    titles.extend([("rows/s", Align::Right), ("", Align::Optional)]);
    let has_response =
        summaries.iter().any(|summary| summary.stage.session_loop.response_us.is_some());
    if has_response {
        titles.extend([
            ("response p50", Align::Right),
            ("response p99", Align::Right),
            ("service p99", Align::Right),
        ]);
    } else {
        titles.extend([("p50", Align::Right), ("p99", Align::Right)]);
    }
    titles.push(("bottleneck", Align::Left));
    let mut table = Columns::new(titles);
    for summary in summaries {
        let stage = summary.stage;
        let mut cells = vec![name(stage)];
        if has_methods {
            let rows_per_commit = stage.rows.checked_div(stage.transactions);
            cells.extend([
                count(stage.transactions),
                rows_per_commit.map(count).unwrap_or_default(),
                format!("{:.3}", stage.seconds),
                in_database(stage),
            ]);
        }
        if has_sides {
            let is_server = stage.kind == "server_loop";
            cells.push(if is_server { "server" } else { "client" }.to_owned());
        }
        cells.extend([
            rate(rows_per_s(stage)),
            bar(rows_per_s(stage) / most.max(f64::MIN_POSITIVE)),
        ]);
        let (service, response) =
            (stage.session_loop.service_us.as_ref(), stage.session_loop.response_us.as_ref());
        if has_response {
            cells.extend([
                latency(response, |latency| latency.p50),
                latency(response, |latency| latency.p99),
            ]);
        } else {
            cells.push(latency(service, |latency| latency.p50));
        }
        cells
            .extend([latency(service, |latency| latency.p99), bottleneck_word(summary).to_owned()]);
        table.row(cells);
    }
    block.table(headline, &table);
    if let Some(bytes) = summaries.iter().find_map(|summary| summary.stage.session_loop.row_bytes) {
        block.line("", &format!("row size {} bytes", count(bytes)));
    }
}

/// What the stage varies: its method or the size of its batch.
fn name(stage: &StageRecord) -> String {
    let batch = || stage.session_loop.batch.map(count);
    stage.session_loop.method.clone().or_else(batch).unwrap_or_default()
}

fn latency(found: Option<&LatencySummary>, pick: fn(&LatencySummary) -> f64) -> String {
    found.map_or_else(String::new, |latency| duration_us(pick(latency)))
}

/// Database time of all sessions, as a share of the wallclock time.
fn in_database(stage: &StageRecord) -> String {
    stage.database_s.map_or_else(String::new, |database_s| {
        percent(database_s / stage.seconds.max(f64::MIN_POSITIVE))
    })
}

/// The bottleneck of a stage in a word or two; empty if it has none.
pub(in crate::report) fn bottleneck_word(summary: &Summary<'_>) -> &'static str {
    if !summary.has_bottleneck() {
        return "";
    }
    match summary.bottleneck() {
        Bottleneck::Client => "client",
        Bottleneck::Locks => "locks",
        Bottleneck::SharedCpu => "CPU",
        Bottleneck::ForeignCpu => "CPU, used by others",
        Bottleneck::Waits => "waits",
        Bottleneck::Device => "device",
        Bottleneck::BusyDevice => "device?",
        Bottleneck::Rate => "none (rate)",
        Bottleneck::Waiting => "none found",
        Bottleneck::ServerOrNetwork => "not the client",
    }
}

/// A bar of this share of the longest.
pub(in crate::report) fn bar(share: f64) -> String {
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
    use crate::report::example_record;

    #[test]
    fn with_a_rate_the_table_shows_response_times_beside_the_service_time() {
        let mut record = example_record();
        record.stages.push(record.stages[0].clone());
        let table = |record: &crate::record::Record| {
            let mut block = Block::new(usize::MAX);
            study(&mut block, &Summary::of_each(record), "RIOPS");
            block.finish()
        };
        assert!(!table(&record).contains("response"), "{}", table(&record));
        for stage in &mut record.stages {
            let mut response = stage.session_loop.service_us.clone().unwrap();
            (response.p50, response.p99) = (2_850_000.0, 3_100_000.0);
            stage.session_loop.response_us = Some(response);
        }
        let text = table(&record);
        assert!(text.contains("response p50  response p99  service p99"), "{text}");
        assert!(text.contains("2.85 s") && text.contains("3.10 s"), "{text}");
    }

    #[test]
    fn bars_are_as_long_as_their_share_and_never_nothing() {
        assert_eq!(bar(1.0).chars().count(), BAR_WIDTH);
        assert_eq!(bar(0.5), "█".repeat(BAR_WIDTH / 2));
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.07), "█▏");
    }
}
