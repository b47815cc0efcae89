//! Values of columns: of the tables of the store, and of CSV.

use jiff::Timestamp;

/// The value of a column in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not known, or not measured.
    Null,
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A finite number.
    Real(f64),
    /// A truth value.
    Boolean(bool),
}

/// Declares the conversions of the types of columns.
macro_rules! conversions {
    ($($type:ty: $value:ident => $converted:expr;)+) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $converted
            }
        })+
    };
}
conversions! {
    &str: text => Self::Text(text.to_owned());
    String: text => Self::Text(text);
    Timestamp: time => Self::Text(time_text(time));
    bool: value => Self::Boolean(value);
    // JSON has no other numbers either.
    f64: value => if value.is_finite() { Self::Real(value) } else { Self::Null };
    u8: value => Self::Integer(value.into());
    u32: value => Self::Integer(value.into());
    i32: value => Self::Integer(value.into());
    u64: value => Self::Integer(value.into());
    usize: value => Self::from(value as u64);
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Clone + Into<Self>> From<&T> for Value {
    fn from(value: &T) -> Self {
        value.clone().into()
    }
}

/// Returns a time with a fixed number of digits, so that texts sort by time.
pub fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
