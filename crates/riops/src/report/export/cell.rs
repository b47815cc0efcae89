//! The cells of a CSV export, and the table that they form.

use csv::{QuoteStyle, Terminator, WriterBuilder};

use super::error::ExportError;
use crate::units::text::lines;

/// First characters with which spreadsheets start a formula. Source: OWASP, "CSV Injection".
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the text with a leading quote, if a spreadsheet would execute it as a formula.
pub(in crate::report) fn without_formula(text: String) -> String {
    if text.starts_with(FORMULA_STARTS) { format!("'{text}") } else { text }
}

/// The value of a column in a row. An absent value is an empty cell.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) enum Cell {
    Absent,
    Text(String),
    /// The number as text.
    Number(String),
}

impl Cell {
    /// The cell as it is written. Numbers stay numbers.
    fn written(self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Number(number) => number,
            Self::Text(text) => without_formula(lines(&text).into_owned()),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        if text.is_empty() { Self::Absent } else { Self::Text(text.to_owned()) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::Absent } else { Self::Text(text) }
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Number(value.to_string()) } else { Self::Absent }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value.to_string())
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Number(value.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// A column: its name, and its cell in a row.
pub(in crate::report) type Column<R> = (&'static str, fn(&R) -> Cell);

/// Returns a CSV text with these columns: RFC 4180, with a header, UTF-8, and lines that end with CRLF.
pub(in crate::report) fn table<R>(
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> Result<String, ExportError> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .quote_style(QuoteStyle::Necessary)
        .from_writer(Vec::new());
    let failed = |error: csv::Error| ExportError::Csv(error.to_string());
    writer.write_record(columns.iter().map(|(name, _)| name)).map_err(failed)?;
    for row in rows {
        writer
            .write_record(columns.iter().map(|(_, cell)| cell(&row).written()))
            .map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| ExportError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| ExportError::Csv(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [Column<(String, f64)>; 2] =
        [("text", |row| row.0.as_str().into()), ("number", |row| row.1.into())];

    proptest! {
        #[test]
        fn every_text_reads_back_and_none_starts_a_formula(text in any::<String>(), number in any::<f64>()) {
            let written = table(&COLUMNS, [(text.clone(), number)]).unwrap();
            let mut reader = csv::Reader::from_reader(written.as_bytes());
            let row = reader.records().next().unwrap().unwrap();
            let cell = &row[0];
            prop_assert!(!cell.starts_with(FORMULA_STARTS), "{cell}");
            let shown = lines(&text);
            prop_assert_eq!(cell.strip_prefix('\'').filter(|_| !text.starts_with('\'')).unwrap_or(cell), &shown);
            if number.is_finite() {
                prop_assert_eq!(row[1].parse::<f64>().unwrap(), number);
            } else {
                prop_assert_eq!(&row[1], "");
            }
        }
    }

    #[test]
    fn texts_that_start_a_formula_get_a_quote_and_numbers_do_not() {
        let written = table(&COLUMNS, [("=1+1".to_owned(), -2.5), ("a,\"b\"".to_owned(), 0.0)]);
        assert_eq!(written.unwrap(), "text,number\r\n'=1+1,-2.5\r\n\"a,\"\"b\"\"\",0\r\n");
    }
}
