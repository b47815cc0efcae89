//! Values that are written to and read from a table, without regard to the backend.

use jiff::Timestamp;

use super::error::StoreError;

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Boolean(bool),
}

/// The values of one row, with the names of their columns.
pub(super) type Fields = Vec<(&'static str, Value)>;

impl Value {
    /// Returns the text of the value; `None` for NULL. PostgreSQL accepts it for every type.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            // PostgreSQL cannot store this character.
            Self::Text(text) if text.contains('\0') => Some(text.replace('\0', "\u{fffd}")),
            Self::Text(text) => Some(text.clone()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Real(number) => Some(format!("{number:?}")),
            Self::Boolean(value) => Some(value.to_string()),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        // JSON has no other numbers either.
        if number.is_finite() { Self::Real(number) } else { Self::Null }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of a result, in text format.
pub(super) type Row = Vec<Option<String>>;

/// Reads the columns of a row from left to right.
pub(super) struct Reader<'a> {
    location: &'a str,
    row: std::vec::IntoIter<Option<String>>,
    column: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(location: &'a str, row: Row) -> Self {
        Self { location, row: row.into_iter(), column: 0 }
    }

    /// Returns the next column; `None` for NULL.
    pub(super) fn optional_text(&mut self) -> Option<String> {
        self.column += 1;
        self.row.next().flatten()
    }

    /// Returns the next column, which must not be NULL.
    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.optional_text().ok_or_else(|| self.unexpected(None))
    }

    /// Returns the next column as a number; `None` for NULL.
    pub(super) fn optional<T: std::str::FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        match self.optional_text() {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| self.unexpected(Some(text))),
        }
    }

    /// Returns the next column as a number, which must not be NULL.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Result<T, StoreError> {
        self.optional()?.ok_or_else(|| self.unexpected(None))
    }

    /// Returns the next column as a truth value; `None` for NULL. SQLite stores it as a number.
    pub(super) fn optional_boolean(&mut self) -> Result<Option<bool>, StoreError> {
        match self.optional_text().as_deref() {
            None => Ok(None),
            Some("t" | "true" | "1") => Ok(Some(true)),
            Some("f" | "false" | "0") => Ok(Some(false)),
            Some(text) => Err(self.unexpected(Some(text.to_owned()))),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<bool, StoreError> {
        self.optional_boolean()?.ok_or_else(|| self.unexpected(None))
    }

    /// Returns the next column as a time in RFC 3339. Each backend has its own text format.
    pub(super) fn optional_time(&mut self) -> Option<String> {
        self.optional_text().map(|text| text.parse::<Timestamp>().map_or(text, time_text))
    }

    /// Returns the next column as a time, which must not be NULL.
    pub(super) fn timestamp(&mut self) -> Result<Timestamp, StoreError> {
        self.optional_timestamp()?.ok_or_else(|| self.unexpected(None))
    }

    /// Returns the next column as a time; `None` for NULL.
    pub(super) fn optional_timestamp(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.optional()
    }

    fn unexpected(&self, value: Option<String>) -> StoreError {
        StoreError::Value { location: self.location.to_owned(), column: self.column, value }
    }
}

/// Returns a time with a fixed number of digits, so that texts sort by time.
pub(super) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
