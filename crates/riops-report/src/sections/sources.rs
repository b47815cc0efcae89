//! Where the rows came from: shared buffers, page cache or device.

use crate::document::Document;
use riops_model::record::{DatabaseCounters, IoRecord, StageRecord};
use riops_model::units::BLOCK_BYTES;
use riops_model::units::format::{bytes_text, count, number_of, percent, rate};

/// Dead row versions are reported from this share of the updates on.
const DEAD_SHARE: f64 = 0.1;

/// The shares of the sources are shown if their sum differs from 100 by at most this many percentage points.
/// Records of earlier releases have shares that were counted independently, one after the other.
const SUM_TOLERANCE_PERCENT: f64 = 3.0;

pub(crate) fn sources(document: &mut Document, stage: &StageRecord) {
    if let Some(caches) = &stage.caches {
        let reached = if caches.reached { "" } else { " as far as permitted" };
        document.line("caches", format!("{}{reached}: {}", caches.wanted, caches.text()));
    }
    if let Some(io) = &stage.io {
        // The rows of a load come from the client.
        document.lines("rows from", shares(io).filter(|_| stage.session_loop.method.is_none()));
        document.lines("blocks", blocks(io));
        let workers = io.async_read_share.filter(|&share| share > 0.0).map(percent);
        let workers = workers
            .map(|share| format!("I/O workers read {share} of the bytes (asynchronous I/O)"));
        document.lines("reads", workers);
        let storage = io.storage_requests_per_row;
        document.lines(
            "storage",
            storage.map(|requests| format!("{requests:.3} read requests per row")),
        );
    }
    document.lines("database", database(stage));
    checkpoints(document, stage);
    dead_rows(document, stage);
}

fn shares(io: &IoRecord) -> Option<String> {
    let sources = io.sources?;
    if let Some(sum) = sources.sum().filter(|sum| !adds_up(*sum)) {
        return Some(format!(
            "I/O source unknown: the counters of buffers, page cache and device do not add up (sum {})",
            percent(sum)
        ));
    }
    let others = match (sources.page_cache_share, sources.device_share) {
        (Some(page_cache), Some(device)) => {
            format!("page cache {} · device {}", percent(page_cache), percent(device))
        }
        _ => format!("page cache or device {}", percent(1.0 - sources.buffers_share)),
    };
    Some(format!("shared buffers {} · {others}", percent(sources.buffers_share)))
}

/// Returns whether the sum, rounded as in the text, is close enough to 100%: a shown sum of 103% is never reported as
/// wrong.
fn adds_up(sum: f64) -> bool {
    ((sum * 100.0).round() - 100.0).abs() <= SUM_TOLERANCE_PERCENT
}

fn blocks(io: &IoRecord) -> Option<String> {
    let (about, includes) = match io.blocks_include.as_slice() {
        [] => ("", String::new()),
        others => ("about ", format!(", including blocks accessed by {}", others.join(", "))),
    };
    let (liops, per_row, hits) = (rate(io.liops?), io.blocks_per_row?, percent(io.hit_ratio?));
    let piops = io.piops.map(rate);
    let piops =
        piops.map_or_else(String::new, |piops| format!(", PIOPS {piops}/s (of all processes)"));
    let (per_row, wal) = (format!("{per_row:.2} blocks per row"), wal_text(io.wal_mb_s));
    Some(format!("LIOPS {about}{liops}/s ({per_row}{includes}, {hits} hits){piops}{wal}"))
}

/// Returns the text of the WAL rate; empty if the rate rounds to 0.
fn wal_text(mb_s: Option<f64>) -> String {
    let mb_s = mb_s.filter(|&mb_s| mb_s >= 0.05);
    mb_s.map_or_else(String::new, |mb_s| format!(", WAL {mb_s:.1} MB/s"))
}

/// Returns the counters of the whole database for a stage whose tables are not known, such as a stage of a script.
fn database(stage: &StageRecord) -> Option<String> {
    let counted = stage.database.as_ref().filter(|counted| counted.blocks.is_none())?;
    let (before, after) = (counted.before?, counted.after?);
    let since = |pick: fn(&DatabaseCounters) -> u64| pick(&after).saturating_sub(pick(&before));
    let (hits, reads) = (since(|counters| counters.blks_hit), since(|counters| counters.blks_read));
    let all = hits + reads;
    let blocks = match all {
        0 => "no block accesses".to_owned(),
        _ => format!("{} block accesses ({} hits)", count(all), percent(hits as f64 / all as f64)),
    };
    let wal = wal_text(counted.wal_bytes_per_s.map(|bytes| bytes / 1e6));
    let files = match since(|counters| counters.temp_files) {
        0 => String::new(),
        files => {
            let bytes = bytes_text(since(|counters| counters.temp_bytes));
            format!(", {} ({bytes})", number_of(files, "temporary file"))
        }
    };
    Some(format!("{blocks}{wal}{files}; of all sessions, including warm-up and drain"))
}

/// Writes the checkpoints of the server during a stage, including warm-up and drain.
fn checkpoints(document: &mut Document, stage: &StageRecord) {
    let checkpoints = stage.database.as_ref().and_then(|database| database.checkpoints);
    let Some(checkpoints) =
        checkpoints.filter(|checkpoints| checkpoints.timed + checkpoints.requested > 0)
    else {
        return;
    };
    let requested = match checkpoints.requested {
        0 => String::new(),
        requested => format!(", {} of them requested", count(requested)),
    };
    let total = count(checkpoints.timed + checkpoints.requested);
    let written = bytes_text(checkpoints.buffers_written * BLOCK_BYTES);
    document.line("checkpoints", format!("{total}{requested}; {written} written"));
}

fn dead_rows(document: &mut Document, stage: &StageRecord) {
    let versions = stage.database.as_ref().and_then(|database| database.row_versions);
    if let Some(versions) = versions
        && versions.updated > 0
        && versions.dead as f64 >= DEAD_SHARE * versions.updated as f64
    {
        let (dead, updated) = (count(versions.dead), count(versions.updated));
        let hot = percent(versions.hot_updated as f64 / versions.updated as f64);
        let vacuums = number_of(versions.vacuums, "vacuum");
        let text = format!(
            "{dead} in the tables at the end; {updated} updates including warm-up and drain, {hot} of them HOT; {vacuums}"
        );
        document.line("dead rows", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{Checkpoints, DatabaseUse, Sources};

    fn shown(
        buffers_share: f64,
        page_cache_share: Option<f64>,
        device_share: Option<f64>,
    ) -> String {
        let mut io = example_record().stages.remove(0).io.unwrap();
        io.sources = Some(Sources { buffers_share, page_cache_share, device_share });
        shares(&io).unwrap()
    }

    #[test]
    fn shares_that_do_not_add_up_are_not_shown() {
        assert_eq!(
            shown(0.12, Some(0.88), Some(0.43)),
            "I/O source unknown: the counters of buffers, page cache and device do not add up (sum 143%)"
        );
        assert!(shown(0.12, Some(0.50), Some(0.34)).contains("(sum 96%)"));
        assert_eq!(
            shown(0.12, Some(0.59), Some(0.32)),
            "shared buffers 12% · page cache 59% · device 32%"
        );
    }

    #[test]
    fn without_known_tables_the_counters_of_the_database_are_shown() {
        let mut stage = example_record().stages.remove(0);
        let before = DatabaseCounters::default();
        let after = DatabaseCounters {
            blks_hit: 9_900,
            blks_read: 100,
            temp_files: 2,
            temp_bytes: 4_200_000,
            ..before
        };
        let counted = DatabaseUse {
            before: Some(before),
            after: Some(after),
            wal_bytes_per_s: Some(2.14e6),
            checkpoints: Some(Checkpoints { requested: 1, ..Checkpoints::default() }),
            ..DatabaseUse::default()
        };
        stage.database = Some(counted.clone());
        let expected = "10,000 block accesses (99% hits), WAL 2.1 MB/s, 2 temporary files (4.2 MB); of all sessions, including warm-up and drain";
        assert_eq!(database(&stage).as_deref(), Some(expected));
        let blocks = Some(riops_model::record::TableBlocks::default());
        stage.database = Some(DatabaseUse { blocks, ..counted });
        assert_eq!(database(&stage), None);
    }

    #[test]
    fn checkpoints_are_shown_with_the_bytes_that_they_wrote() {
        let mut stage = example_record().stages.remove(0);
        let counted = Checkpoints { timed: 1, requested: 2, buffers_written: 128_000 };
        stage.database.get_or_insert_default().checkpoints = Some(counted);
        let mut document = Document::default();
        checkpoints(&mut document, &stage);
        let text = crate::document_text(&document, 120);
        assert!(text.contains("checkpoints  3, 2 of them requested; 1.05 GB written"), "{text}");
    }

    #[test]
    fn without_a_share_of_the_page_cache_the_device_is_not_distinguished() {
        let expected = "shared buffers 12% · page cache or device 88%";
        assert_eq!(shown(0.12, None, Some(0.43)), expected);
        assert_eq!(shown(0.12, None, None), expected);
    }
}
