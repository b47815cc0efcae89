//! Values of expressions, and their text.

use std::fmt::{self, Write as _};

/// Digits of a double in a statement.
const DIGITS: i32 = 15;

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A floating-point number.
    Double(f64),
}

/// A type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// NULL.
    Null,
    /// A boolean.
    Boolean,
    /// An integer of 64 bits.
    Int,
    /// A floating-point number.
    Double,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Double => "double",
        })
    }
}

/// Why a text is not a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextError {
    /// It has no value's form.
    Malformed,
    /// It is an integer of more than 64 bits.
    OutOfRange,
}

impl Value {
    /// Returns the type.
    pub fn kind(self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Boolean(_) => Type::Boolean,
            Self::Int(_) => Type::Int,
            Self::Double(_) => Type::Double,
        }
    }

    /// Returns whether it is true as a condition: TRUE, or a number other than 0.
    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Int(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// Reads the text of a variable.
    ///
    /// # Errors
    /// [`TextError`] if it is not a value.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        // At least `letters` of the beginning of a word, in any case.
        let begins = |word: &str, letters: usize| {
            text.len() >= letters
                && word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
        };
        if text.eq_ignore_ascii_case("null") {
            return Ok(Self::Null);
        }
        if begins("true", 1) || begins("yes", 1) || begins("on", 2) {
            return Ok(Self::Boolean(true));
        }
        if begins("false", 1) || begins("no", 1) || begins("off", 2) {
            return Ok(Self::Boolean(false));
        }
        let trimmed = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return trimmed.parse().map(Self::Int).map_err(|_| TextError::OutOfRange);
        }
        double_of(trimmed).map(Self::Double).ok_or(TextError::Malformed)
    }

    /// Appends the text that stands for it in a statement.
    pub fn append_to(self, out: &mut Vec<u8>) {
        if let Self::Int(value) = self {
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            return;
        }
        // Writing to a Vec cannot fail.
        let _ = std::io::Write::write_fmt(out, format_args!("{self}"));
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Double(value) => write_double(f, *value),
        }
    }
}

/// Reads a number as `strtod` does, but as a whole.
fn double_of(text: &str) -> Option<f64> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => hexadecimal(digits.get(2..)?)?,
        // Rust accepts a second sign here.
        [b'-' | b'+', ..] => return None,
        [b'0'..=b'9' | b'.', ..] => decimal(digits)?,
        _ => digits.parse().ok()?,
    };
    Some(if is_negative { -value } else { value })
}

/// Reads a decimal number without a sign; `None` if it is too large for a double, or so small that digits are lost.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.contains(|digit| matches!(digit, '1'..='9'));
    (value.is_normal() || is_zero).then_some(value)
}

/// Reads hexadecimal digits with an optional point and an optional binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0f64;
    for digit in integer.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let point = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2.0f64.powi(exponent.checked_sub(point)?))
}

/// Writes a double as `printf("%.15g")` does, with the names that PostgreSQL gives to special values.
fn write_double(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() {
        return f.write_str("NaN");
    }
    if value.is_infinite() {
        return f.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    // Digit, point and 14 digits: the exponent after rounding decides about the form.
    let mut scientific = Digits::default();
    write!(scientific, "{value:.14e}")?;
    let Some((mantissa, exponent)) = scientific.text().split_once('e') else {
        return f.write_str(scientific.text());
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        let mut plain = Digits::default();
        write!(plain, "{value:.decimals$}")?;
        return f.write_str(without_zeros(plain.text()));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(f, "{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

/// Returns a number without the zeros at the end of its decimals.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The text of a double, of at most sign, point, exponent and some twenty digits. A statement is encoded without allocation.
#[derive(Default)]
struct Digits {
    bytes: [u8; 32],
    length: usize,
}

impl Digits {
    fn text(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let free = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        free.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_doubles_with_15_digits() {
        for (value, text) in [
            (0.1 + 0.2, "0.3"),
            (1.0, "1"),
            (-0.0, "-0"),
            (1e15, "1e+15"),
            (123_456_789_012_345.6, "123456789012346"),
            (999_999_999_999_999.9, "1e+15"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (1e300, "1e+300"),
            (1.0 / 3.0, "0.333333333333333"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-f64::NAN, "NaN"),
        ] {
            assert_eq!(Value::Double(value).to_string(), text);
        }
        assert_eq!(Value::Null.to_string(), "NULL");
        assert_eq!(Value::Boolean(true).to_string(), "true");
        assert_eq!(Value::Int(i64::MIN).to_string(), "-9223372036854775808");
    }

    #[test]
    fn reads_texts() {
        for (text, value) in [
            ("null", Value::Null),
            ("T", Value::Boolean(true)),
            ("ye", Value::Boolean(true)),
            ("on", Value::Boolean(true)),
            ("n", Value::Boolean(false)),
            ("of", Value::Boolean(false)),
            ("FALSE", Value::Boolean(false)),
            (" -12", Value::Int(-12)),
            ("+7", Value::Int(7)),
            ("1.5", Value::Double(1.5)),
            (".5", Value::Double(0.5)),
            ("1e2", Value::Double(100.0)),
            ("0x10", Value::Double(16.0)),
            ("-0x1.8p1", Value::Double(-3.0)),
            ("inf", Value::Double(f64::INFINITY)),
        ] {
            assert_eq!(Value::from_text(text), Ok(value), "{text}");
        }
        assert!(matches!(Value::from_text("nan"), Ok(Value::Double(value)) if value.is_nan()));
        for text in
            ["1e400", "1e-400", "", "o", "tru e", "1 2", "--1", "+-1", "0x", "x", "1.5x", "trueish"]
        {
            assert_eq!(Value::from_text(text), Err(TextError::Malformed), "{text}");
        }
        assert_eq!(Value::from_text("9223372036854775808"), Err(TextError::OutOfRange));
    }
}
