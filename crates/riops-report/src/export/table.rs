//! Tables as CSV, their rows, and why an export failed.

use std::borrow::Cow;

use csv::{QuoteStyle, Terminator, WriterBuilder};
use jiff::{SignedDuration, Timestamp};

use riops_model::figure::Value;
use riops_model::record::{HistogramError, Record};
use riops_model::summary::StageRow;
use riops_model::units::text::lines;

/// Records that cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A value cannot be encoded as JSON.
    #[error("cannot write run {id} as JSON: {source}")]
    Json {
        /// Id of the run.
        id: String,
        /// Reason.
        source: serde_json::Error,
    },
    /// A row cannot be encoded as CSV.
    #[error("cannot write CSV: {0}")]
    Csv(String),
    /// A histogram cannot be decoded.
    #[error("cannot export the latencies of run {id}, stage \"{stage}\": {source}")]
    Histogram {
        /// Id of the run.
        id: String,
        /// Name of the stage.
        stage: String,
        /// Reason.
        source: HistogramError,
    },
}

/// Returns the stages of all runs.
pub(super) fn stages(records: &[Record]) -> impl Iterator<Item = StageRow<'_>> {
    records.iter().flat_map(StageRow::of_record)
}

/// Returns the time this number of seconds after the start of a stage.
pub(super) fn after(start: Timestamp, seconds: f64) -> Option<Timestamp> {
    start.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// First characters with which spreadsheets start a formula. Source: OWASP, "CSV Injection".
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the text with a leading quote, if a spreadsheet would execute it as a formula.
fn without_formula(text: String) -> String {
    if text.starts_with(FORMULA_STARTS) { format!("'{text}") } else { text }
}

/// Returns the text of a cell. An absent value is empty, and a number stays a number.
pub(crate) fn cell(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => without_formula(lines(&text).into_owned()),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => value.to_string(),
        Value::Boolean(value) => value.to_string(),
    }
}

/// A column: its name, and its value in a row.
pub(crate) type Column<R> = (Cow<'static, str>, Box<dyn Fn(&R) -> Value>);

/// Returns a column with this name.
pub(super) fn column<R, V: Into<Value>>(
    name: impl Into<Cow<'static, str>>,
    value: impl Fn(&R) -> V + 'static,
) -> Column<R> {
    (name.into(), Box::new(move |row| value(row).into()))
}

/// Declares columns: their names, and their values in a row.
macro_rules! csv_columns {
    ($row:ident: $type:ty => { $($name:ident: $value:expr),+ $(,)? }) => {
        vec![$((
            std::borrow::Cow::Borrowed(stringify!($name)),
            Box::new(|$row: &$type| riops_model::figure::Value::from($value))
                as Box<dyn Fn(&$type) -> riops_model::figure::Value>,
        )),+]
    };
}
pub(crate) use csv_columns;

/// Returns a CSV text with these columns.
pub(crate) fn csv_table<R>(
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> Result<String, ExportError> {
    let cells = |row: R| columns.iter().map(|(_, value)| cell(value(&row))).collect();
    csv_text(columns.iter().map(|(name, _)| name.as_ref()), rows.into_iter().map(cells))
}

/// Returns a CSV text: RFC 4180, with a header, UTF-8, and lines that end with CRLF.
pub(crate) fn csv_text<'a>(
    names: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<String, ExportError> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .quote_style(QuoteStyle::Necessary)
        .from_writer(Vec::new());
    let failed = |error: csv::Error| ExportError::Csv(error.to_string());
    writer.write_record(names).map_err(failed)?;
    for row in rows {
        writer.write_record(row).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| ExportError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| ExportError::Csv(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(rows: &[(String, f64)]) -> String {
        let columns = csv_columns! { row: (String, f64) => { text: &row.0, number: row.1 } };
        csv_table(&columns, rows.to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn every_text_reads_back_and_none_starts_a_formula(text in any::<String>(), value in any::<f64>()) {
            let written = table(&[(text.clone(), value)]);
            let mut reader = csv::Reader::from_reader(written.as_bytes());
            let row = reader.records().next().unwrap().unwrap();
            let cell = &row[0];
            prop_assert!(!cell.starts_with(FORMULA_STARTS), "{cell}");
            let shown = lines(&text);
            prop_assert_eq!(cell.strip_prefix('\'').filter(|_| !text.starts_with('\'')).unwrap_or(cell), &shown);
            if value.is_finite() {
                prop_assert_eq!(row[1].parse::<f64>().unwrap(), value);
            } else {
                prop_assert_eq!(&row[1], "");
            }
        }
    }

    #[test]
    fn texts_that_start_a_formula_get_a_quote_and_numbers_do_not() {
        let written = table(&[("=1+1".to_owned(), -2.5), ("a,\"b\"".to_owned(), 0.0)]);
        assert_eq!(written, "text,number\r\n'=1+1,-2.5\r\n\"a,\"\"b\"\"\",0\r\n");
    }
}
