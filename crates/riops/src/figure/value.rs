//! Values of columns: of the tables of the store, and of CSV.

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

/// Converts whole numbers.
macro_rules! from_integers {
    ($($integer:ty),+) => {
        $(impl From<$integer> for Value {
            fn from(number: $integer) -> Self {
                Self::Integer(number.into())
            }
        })+
    };
}
from_integers!(u8, u32, i32, u64);

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
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
