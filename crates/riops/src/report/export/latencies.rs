//! A row per bucket of the latency histograms of each stage.

use super::cell::{Column, table as csv_table};
use super::error::ExportError;
use super::stages::Row;
use crate::metrics::Histogram;
use crate::record::Record;

/// A bucket of a histogram.
struct Bucket<'a> {
    row: Row<'a>,
    kind: &'static str,
    from_us: f64,
    to_us: f64,
    count: u64,
    cumulative_share: f64,
}

pub(super) fn table(records: &[Record]) -> Result<String, ExportError> {
    let mut buckets = Vec::new();
    for row in Row::all(records) {
        let each = &row.stage.session_loop;
        let histograms = [("service", &each.histogram), ("response", &each.response_histogram)];
        for (kind, encoded) in histograms {
            if let Some(encoded) = encoded {
                add(&mut buckets, &row, kind, encoded)?;
            }
        }
    }
    csv_table(&columns(), buckets)
}

fn add<'a>(
    buckets: &mut Vec<Bucket<'a>>,
    row: &Row<'a>,
    kind: &'static str,
    encoded: &str,
) -> Result<(), ExportError> {
    let histogram = Histogram::from_base64(encoded).map_err(|source| ExportError::Histogram {
        id: row.record.id.to_string(),
        stage: row.stage.name.clone(),
        source,
    })?;
    let mut until = 0;
    for (from, to, count) in histogram.buckets() {
        until += count;
        buckets.push(Bucket {
            row: Row { record: row.record, number: row.number, stage: row.stage },
            kind,
            from_us: from.as_micros(),
            to_us: to.as_micros(),
            count,
            cumulative_share: until as f64 / histogram.count() as f64,
        });
    }
    Ok(())
}

fn columns<'a>() -> [Column<Bucket<'a>>; 10] {
    [
        ("run_id", |each| each.row.record.id.to_string().into()),
        ("workload", |each| each.row.record.workload.as_str().into()),
        ("label", |each| each.row.record.label.as_deref().into()),
        ("stage", |each| each.row.number.into()),
        ("stage_name", |each| each.row.stage.name.as_str().into()),
        ("kind", |each| each.kind.into()),
        ("from_us", |each| each.from_us.into()),
        ("to_us", |each| each.to_us.into()),
        ("count", |each| each.count.into()),
        ("cumulative_share", |each| each.cumulative_share.into()),
    ]
}
