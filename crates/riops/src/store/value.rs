//! Values that are written to a table, without regard to the backend.

use crate::figure::Value;

/// The values of one row, with the names of their columns.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// Makes a row from names and values, and from the fields of values, whose names are the names of columns.
macro_rules! fields {
    ($($name:ident: $value:expr),+ $(,)? $(; $($source:expr => { $($field:ident),+ $(,)? }),+)?) => {{
        let row: $crate::store::value::Fields = vec![
            $((stringify!($name), $crate::figure::Value::from($value)),)+
            $($($((stringify!($field), $crate::figure::Value::from(&$source.$field)),)+)+)?
        ];
        row
    }};
}
pub(super) use fields;

/// Returns the columns of fields of a value that may be absent.
macro_rules! optional_fields {
    ($source:expr => { $($field:ident),+ $(,)? }) => {{
        let source = $source;
        [$((stringify!($field), $crate::figure::Value::from(source.map(|value| $crate::figure::Value::from(&value.$field))))),+]
    }};
}
pub(super) use optional_fields;

/// Returns a number as both backends store it.
pub(super) fn stored_integer(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns the text of the value; `None` for NULL. PostgreSQL accepts it for every type.
pub(super) fn stored_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        // PostgreSQL cannot store this character.
        Value::Text(text) if text.contains('\0') => Some(text.replace('\0', "\u{fffd}")),
        Value::Text(text) => Some(text.clone()),
        Value::Integer(value) => Some(stored_integer(*value).to_string()),
        Value::Real(value) => Some(format!("{value:?}")),
        Value::Boolean(value) => Some(value.to_string()),
    }
}
