//! Stored runs in formats for other programs. Pure: records in, text out.
//!
//! JSON is complete: `import` reads it back. CSV has a row per stage, per interval or per bucket of a
//! histogram. OpenMetrics has the series with their times, for backfilling Prometheus.

mod backfill;
mod latencies;
mod series;
mod stages;
mod table;

pub use table::ExportError;
pub(super) use table::{cell, csv_columns, csv_table, csv_text};

use riops_model::record::Record;
use riops_model::units::text::{json as json_escaped, json_text};

/// The contents of a CSV export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvRows {
    /// A row per stage.
    Stages,
    /// A row per interval of a stage.
    Series,
    /// A row per bucket of the histograms of a stage.
    Latencies,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Complete records: one as an object, several as JSON Lines.
    Json,
    /// CSV as in RFC 4180, with a header.
    Csv(CsvRows),
    /// OpenMetrics with a sample per point of the series.
    OpenMetrics,
}

/// Returns the records in this format.
///
/// # Errors
/// [`ExportError`] if a record cannot be encoded.
pub fn export(records: &[Record], format: ExportFormat) -> Result<String, ExportError> {
    match format {
        ExportFormat::Json => json(records),
        ExportFormat::Csv(CsvRows::Stages) => stages::table(records),
        ExportFormat::Csv(CsvRows::Series) => series::table(records),
        ExportFormat::Csv(CsvRows::Latencies) => latencies::table(records),
        ExportFormat::OpenMetrics => Ok(backfill::text(records)),
    }
}

/// One record for people and programs, several as one line each.
fn json(records: &[Record]) -> Result<String, ExportError> {
    let failed = |record: &Record, source| ExportError::Json { id: record.id.to_string(), source };
    if let [record] = records {
        return json_text(record).map_err(|source| failed(record, source));
    }
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(record).map_err(|source| failed(record, source))?;
        text.push_str(&json_escaped(&line));
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
