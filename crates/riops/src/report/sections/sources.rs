//! Where the rows came from: shared buffers, page cache or device.

use std::fmt::Write as _;

use super::super::block::Block;
use super::super::format::{percent, rate};
use crate::record::{IoRecord, StageRecord};

/// Dead row versions are reported from this share of the updates on.
const DEAD_SHARE: f64 = 0.1;

pub(in crate::report) fn sources(block: &mut Block, stage: &StageRecord) {
    if let Some(caches) = &stage.caches {
        let reached = if caches.reached { "" } else { " as far as permitted" };
        block.line(
            "caches",
            &format!(
                "{}{reached}: shared buffers: {}; page cache: {}",
                caches.wanted, caches.shared_buffers, caches.page_cache
            ),
        );
    }
    if let Some(io) = &stage.io {
        // The rows of a load come from the client.
        if let Some(text) = shares(io).filter(|_| stage.session_loop.method.is_none()) {
            block.line("rows from", &text);
        }
        if let Some(text) = blocks(io) {
            block.line("blocks", &text);
        }
        if let Some(requests) = io.storage_requests_per_row {
            block.line("storage", &format!("{requests:.3} read requests per row"));
        }
    }
    dead_rows(block, stage);
}

fn shares(io: &IoRecord) -> Option<String> {
    let sources = io.sources?;
    let buffers = percent(sources.buffers_share);
    Some(match (sources.page_cache_share, sources.device_share) {
        (Some(page_cache), Some(device)) => format!(
            "shared buffers {buffers} · page cache {} · device {}",
            percent(page_cache),
            percent(device)
        ),
        _ => format!(
            "shared buffers {buffers} · page cache or device {}",
            percent(1.0 - sources.buffers_share)
        ),
    })
}

fn blocks(io: &IoRecord) -> Option<String> {
    let mut text = format!(
        "LIOPS {}/s ({:.2} blocks per row, {} hits)",
        rate(io.liops?),
        io.blocks_per_row?,
        percent(io.hit_ratio?)
    );
    if let Some(piops) = io.piops {
        let _ = write!(text, ", PIOPS {}/s", rate(piops));
    }
    if let Some(wal) = io.wal_mb_s.filter(|&wal| wal >= 0.05) {
        let _ = write!(text, ", WAL {wal:.1} MB/s");
    }
    Some(text)
}

fn dead_rows(block: &mut Block, stage: &StageRecord) {
    let Some(versions) = stage.database.as_ref().and_then(|database| database.row_versions) else {
        return;
    };
    if versions.updated > 0 && versions.dead as f64 >= DEAD_SHARE * versions.updated as f64 {
        let text = format!(
            "{} in the tables at the end; {} updates including warm-up and drain, {} of them HOT; {}",
            super::super::count(versions.dead),
            super::super::count(versions.updated),
            percent(versions.hot_updated as f64 / versions.updated as f64),
            super::super::format::number_of(versions.vacuums, "vacuum")
        );
        block.line("dead rows", &text);
    }
}
