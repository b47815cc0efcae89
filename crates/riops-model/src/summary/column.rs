//! The columns of a row of a table, read from texts without regard to the database.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::figure::time_text;
use crate::record::{ExperimentId, Note};

/// A column has another value than its type allows.
#[derive(Debug, thiserror::Error)]
#[error("the store {location} has an unexpected value in column {column}: {value:?}")]
pub struct ColumnError {
    /// Path of the file, or URL of the database.
    pub location: String,
    /// Position of the column in the query, from 1.
    pub column: usize,
    /// The value.
    pub value: Option<String>,
}

/// A row of a result, in text format.
pub type Row = Vec<Option<String>>;

/// Reads the columns of a row from left to right.
#[derive(Debug)]
pub struct Reader<'a> {
    location: &'a str,
    row: std::vec::IntoIter<Option<String>>,
    column: usize,
}

impl<'a> Reader<'a> {
    /// Reads a row of this store.
    pub fn new(location: &'a str, row: Row) -> Self {
        Self { location, row: row.into_iter(), column: 0 }
    }

    /// Returns the next column.
    ///
    /// # Errors
    /// [`ColumnError`] if the column has another value than its type allows.
    pub fn read<T: Column>(&mut self) -> Result<T, ColumnError> {
        let text = self.next();
        self.parsed(text)
    }

    /// Returns the next column as a time in RFC 3339. Each backend has its own text format.
    ///
    /// # Errors
    /// [`ColumnError`] if the column has another value than its type allows.
    pub fn time<T: Column>(&mut self) -> Result<T, ColumnError> {
        let text = self.next();
        self.parsed(text.map(|text| text.parse::<Timestamp>().map_or(text, time_text)))
    }

    fn next(&mut self) -> Option<String> {
        self.column += 1;
        self.row.next().flatten()
    }

    fn parsed<T: Column>(&self, text: Option<String>) -> Result<T, ColumnError> {
        T::parse(text.clone()).ok_or_else(|| ColumnError {
            location: self.location.to_owned(),
            column: self.column,
            value: text,
        })
    }
}

/// A value that is read from a column.
pub trait Column: Sized {
    /// Returns the value of a text, or of NULL; `None` if it is none of this type.
    fn parse(text: Option<String>) -> Option<Self>;

    /// Returns the value as a number, if it is one.
    fn as_number(&self) -> Option<f64> {
        None
    }
}

impl<T: Column> Column for Option<T> {
    fn parse(text: Option<String>) -> Option<Self> {
        if text.is_none() { Some(None) } else { T::parse(text).map(Some) }
    }

    fn as_number(&self) -> Option<f64> {
        self.as_ref()?.as_number()
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
    ($($column:ty: $as_f64:path),+) => {
        $(impl Column for $column {
            fn parse(text: Option<String>) -> Option<Self> {
                text?.parse().ok()
            }

            fn as_number(&self) -> Option<f64> {
                Some($as_f64(*self))
            }
        })+
    };
}
numbers!(u32: f64::from, u64: nearest, f64: std::convert::identity);

fn nearest(count: u64) -> f64 {
    count as f64
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
            pub fn columns() -> String {
                [$(stringify!($field)),+].join(", ")
            }

            /// Reads the columns.
            ///
            /// # Errors
            /// [`ColumnError`]($crate::summary::ColumnError) if a column has another value than its type allows.
            pub fn read(row: &mut $crate::summary::column::Reader<'_>) -> Result<Self, $crate::summary::column::ColumnError> {
                // Rust evaluates the fields in this order.
                Ok(Self { $($field: columns!(@read row $($read)?),)+ })
            }

            /// Returns the value of a column, if it is a number.
            pub fn numeric_value(&self, column: &str) -> Option<f64> {
                match column {
                    $(stringify!($field) => $crate::summary::column::Column::as_number(&self.$field),)+
                    _ => None,
                }
            }
        }
    };
}
pub(super) use columns;
