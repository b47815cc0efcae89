//! Values that are written to and read from a table, without regard to the backend.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::error::StoreError;
use crate::figure::Value;
use crate::record::{ExperimentId, Note};

/// The values of one row, with the names of their columns.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// Makes a row from names and values, and from the fields of values: their names are those of columns.
macro_rules! fields {
    ($($name:ident: $value:expr),+ $(,)? $(; $($of:expr => { $($field:ident),+ $(,)? }),+)?) => {{
        let row: $crate::store::value::Fields = vec![
            $((stringify!($name), $crate::figure::Value::from($value)),)+
            $($($((stringify!($field), $crate::figure::Value::from(&$of.$field)),)+)+)?
        ];
        row
    }};
}
pub(super) use fields;

/// Returns the columns of fields of a value that may be absent.
macro_rules! optional_fields {
    ($of:expr => { $($field:ident),+ $(,)? }) => {{
        let of = $of;
        [$((stringify!($field), $crate::figure::Value::from(of.map(|each| $crate::figure::Value::from(&each.$field))))),+]
    }};
}
pub(super) use optional_fields;

/// Returns a number as both backends store it.
pub(super) fn stored_integer(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the text of the value; `None` for NULL. PostgreSQL accepts it for every type.
pub(super) fn stored_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        // PostgreSQL cannot store this character.
        Value::Text(text) if text.contains('\0') => Some(text.replace('\0', "\u{fffd}")),
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(stored_integer(*number).to_string()),
        Value::Real(number) => Some(format!("{number:?}")),
        Value::Boolean(value) => Some(value.to_string()),
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

    /// Returns the next column.
    pub(super) fn read<T: Column>(&mut self) -> Result<T, StoreError> {
        let text = self.next();
        self.parsed(text)
    }

    /// Returns the next column as a time in RFC 3339. Each backend has its own text format.
    pub(super) fn time<T: Column>(&mut self) -> Result<T, StoreError> {
        let text = self.next();
        self.parsed(text.map(|text| text.parse::<Timestamp>().map_or(text, time_text)))
    }

    fn next(&mut self) -> Option<String> {
        self.column += 1;
        self.row.next().flatten()
    }

    fn parsed<T: Column>(&self, text: Option<String>) -> Result<T, StoreError> {
        T::parse(text.clone()).ok_or_else(|| StoreError::Value {
            location: self.location.to_owned(),
            column: self.column,
            value: text,
        })
    }
}

/// A value that is read from a column.
pub(super) trait Column: Sized {
    /// Returns the value of a text, or of NULL; `None` if it is none of this type.
    fn parse(text: Option<String>) -> Option<Self>;

    /// Returns the value as a number, if it is one.
    fn number(&self) -> Option<f64> {
        None
    }
}

impl<T: Column> Column for Option<T> {
    fn parse(text: Option<String>) -> Option<Self> {
        if text.is_none() { Some(None) } else { T::parse(text).map(Some) }
    }

    fn number(&self) -> Option<f64> {
        self.as_ref()?.number()
    }
}

impl Column for String {
    fn parse(text: Option<String>) -> Option<Self> {
        text
    }
}

impl Column for ExperimentId {
    fn parse(text: Option<String>) -> Option<Self> {
        text?.parse().ok()
    }
}

impl Column for Timestamp {
    fn parse(text: Option<String>) -> Option<Self> {
        text?.parse().ok()
    }
}

impl Column for bool {
    fn parse(text: Option<String>) -> Option<Self> {
        // SQLite stores it as a number.
        match text?.as_str() {
            "t" | "true" | "1" => Some(true),
            "f" | "false" | "0" => Some(false),
            _ => None,
        }
    }
}

/// The tags of a run as a JSON object; NULL without any.
impl Column for BTreeMap<String, String> {
    fn parse(text: Option<String>) -> Option<Self> {
        text.map_or_else(|| Some(Self::new()), |text| serde_json::from_str(&text).ok())
    }
}

/// The notes of an experiment as JSON.
impl Column for Vec<Note> {
    fn parse(text: Option<String>) -> Option<Self> {
        serde_json::from_str(&text?).ok()
    }
}

/// Columns with numbers.
macro_rules! numbers {
    ($($number:ty: $as_f64:path),+) => {
        $(impl Column for $number {
            fn parse(text: Option<String>) -> Option<Self> {
                text?.parse().ok()
            }

            fn number(&self) -> Option<f64> {
                Some($as_f64(*self))
            }
        })+
    };
}
numbers!(u32: f64::from, u64: nearest, f64: std::convert::identity);

fn nearest(number: u64) -> f64 {
    number as f64
}

/// Declares a line of a list. Its fields are the columns that are read, in this order.
macro_rules! columns {
    (@read $row:ident) => { $row.read()? };
    (@read $row:ident $read:ident) => { $row.$read()? };
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[$of_field:meta])* pub $field:ident: $type:ty $(as $read:ident)?,)+
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)+
        }

        impl $name {
            /// The names of the columns, separated by commas.
            pub(super) fn columns() -> String {
                [$(stringify!($field)),+].join(", ")
            }

            /// Reads the columns.
            pub(super) fn read(row: &mut $crate::store::value::Reader<'_>) -> Result<Self, $crate::store::StoreError> {
                // Rust evaluates the fields in this order.
                Ok(Self { $($field: columns!(@read row $($read)?),)+ })
            }

            /// Returns the value of a column, if it is a number.
            pub fn number(&self, column: &str) -> Option<f64> {
                match column {
                    $(stringify!($field) => $crate::store::value::Column::number(&self.$field),)+
                    _ => None,
                }
            }
        }
    };
}
pub(super) use columns;

/// Returns a time with a fixed number of digits, so that texts sort by time.
pub(super) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
