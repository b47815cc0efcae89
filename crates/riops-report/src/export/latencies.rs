//! A row per bucket of the latency histograms of each stage.

use super::table::{ExportError, csv_columns, csv_table, stages};
use riops_model::record::Record;
use riops_model::summary::StageRow;

/// A bucket of a histogram.
struct Bucket<'a> {
    row: StageRow<'a>,
    kind: &'static str,
    from_us: f64,
    to_us: f64,
    count: u64,
    cumulative_share: f64,
}

pub(super) fn table<'a>(records: &'a [Record]) -> Result<String, ExportError> {
    let mut buckets = Vec::new();
    for row in stages(records) {
        let session_loop = &row.stage.session_loop;
        let histograms =
            [("service", &session_loop.histogram), ("response", &session_loop.response_histogram)];
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
    let columns = csv_columns! { bucket: Bucket<'a> => {
        run_id: bucket.row.record.id.to_string(),
        workload: &bucket.row.record.workload,
        label: &bucket.row.record.label,
        stage: bucket.row.ordinal,
        stage_name: &bucket.row.stage.name,
        kind: bucket.kind,
        from_us: bucket.from_us,
        to_us: bucket.to_us,
        count: bucket.count,
        cumulative_share: bucket.cumulative_share,
    }};
    csv_table(&columns, buckets)
}
