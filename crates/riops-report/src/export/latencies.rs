//! A row per bucket of the latency histograms of each stage.

use super::table::{ExportError, Row, csv_columns, csv_table};
use riops_model::record::Record;

/// A bucket of a histogram.
struct Bucket<'a> {
    row: Row<'a>,
    kind: &'static str,
    from_us: f64,
    to_us: f64,
    count: u64,
    cumulative_share: f64,
}

pub(super) fn table<'a>(records: &'a [Record]) -> Result<String, ExportError> {
    let mut buckets = Vec::new();
    for row in Row::all(records) {
        let each = &row.stage.session_loop;
        let histograms = [("service", &each.histogram), ("response", &each.response_histogram)];
        for (kind, stored) in histograms {
            let Some(stored) = stored else { continue };
            let histogram = stored.decode().map_err(|source| ExportError::Histogram {
                id: row.record.id.to_string(),
                stage: row.stage.name.clone(),
                source,
            })?;
            let mut until = 0;
            for (from, to, count) in histogram.buckets() {
                until += count;
                let (from_us, to_us) = (from.as_micros(), to.as_micros());
                let cumulative_share = until as f64 / histogram.count() as f64;
                buckets.push(Bucket { row, kind, from_us, to_us, count, cumulative_share });
            }
        }
    }
    let columns = csv_columns! { each: Bucket<'a> => {
        run_id: each.row.record.id.to_string(),
        workload: &each.row.record.workload,
        label: &each.row.record.label,
        stage: each.row.number,
        stage_name: &each.row.stage.name,
        kind: each.kind,
        from_us: each.from_us,
        to_us: each.to_us,
        count: each.count,
        cumulative_share: each.cumulative_share,
    }};
    csv_table(&columns, buckets)
}
