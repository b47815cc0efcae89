//! Executions of a prepared statement: Bind and Execute, encoded in advance except for the values.

use crate::frontend::{Format, bind};
use crate::value::{EncodeError, set_length};

/// The bytes after the parameter values of an execution: binary results, then Execute without a row limit.
const AFTER_VALUES: [u8; 14] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// The same with results as text.
const AFTER_TEXTS: [u8; 14] = [0, 1, 0, 0, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// The same with a Describe, whose reply has the names of the columns.
const AFTER_DESCRIBED_TEXTS: [u8; 21] =
    [0, 1, 0, 0, b'D', 0, 0, 0, 6, b'P', 0, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// Length of the part of it that belongs to Bind.
const RESULT_FORMATS_BYTES: usize = 4;

/// Bind and Execute of a statement, encoded once except for the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Number of parameters.
    pub parameters: usize,
    /// Bind up to the first value. Its length is set for each execution.
    before_values: Vec<u8>,
    after_values: &'static [u8],
}

impl Execution {
    /// Encodes the executions of a prepared statement with binary parameters and results.
    ///
    /// # Errors
    /// Returns [`EncodeError`] for a zero byte in the name or more than 65535 parameters.
    pub fn new(statement: &str, parameters: usize) -> Result<Self, EncodeError> {
        Self::with_format(statement, parameters, Format::Binary, &AFTER_VALUES)
    }

    /// Encodes the executions of a prepared statement with parameters and results as text. With `described`, the names
    /// of the columns precede the rows.
    ///
    /// # Errors
    /// Returns [`EncodeError`] for a zero byte in the name or more than 65535 parameters.
    pub fn with_texts(
        statement: &str,
        parameters: usize,
        described: bool,
    ) -> Result<Self, EncodeError> {
        let after: &[u8] = if described { &AFTER_DESCRIBED_TEXTS } else { &AFTER_TEXTS };
        Self::with_format(statement, parameters, Format::Text, after)
    }

    fn with_format(
        statement: &str,
        parameters: usize,
        format: Format,
        after_values: &'static [u8],
    ) -> Result<Self, EncodeError> {
        let mut before_values = Vec::new();
        bind(&mut before_values, statement, parameters, format, |_| Ok(()))?;
        before_values.truncate(before_values.len() - RESULT_FORMATS_BYTES);
        Ok(Self { parameters, before_values, after_values })
    }

    /// Appends one execution. `values` appends each parameter with its length, as
    /// [`value()`](crate::frontend::value()) and [`array()`](crate::frontend::array()) do.
    ///
    /// # Errors
    /// Returns the errors of `values`; [`EncodeError::TooLong`] above 2 GiB. Nothing is appended then.
    #[inline]
    pub fn encode(
        &self,
        out: &mut Vec<u8>,
        values: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        out.extend_from_slice(&self.before_values);
        if let Err(error) = values(out) {
            out.truncate(start);
            return Err(error);
        }
        // Without the tag.
        let length = out.len() - start - 1 + RESULT_FORMATS_BYTES;
        let Ok(bytes) = i32::try_from(length) else {
            out.truncate(start);
            return Err(EncodeError::TooLong { what: "a message", count: length });
        };
        set_length(out, start + 1, bytes);
        out.extend_from_slice(self.after_values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::{Message, Object, value};

    #[test]
    fn encodes_the_same_bytes_as_the_messages() {
        for name in ["", "read"] {
            let mut expected = vec![7];
            let write = |out: &mut Vec<u8>| {
                value(out, Some(b"abc"))?;
                value(out, None)
            };
            bind(&mut expected, name, 2, Format::Binary, write).unwrap();
            Message::Execute.encode(&mut expected).unwrap();
            let mut encoded = vec![7];
            let execution = Execution::new(name, 2).unwrap();
            execution.encode(&mut encoded, write).unwrap();
            assert_eq!((encoded, execution.parameters), (expected, 2));
        }
    }

    #[test]
    fn texts_have_their_format_and_are_described_on_request() {
        for described in [false, true] {
            let mut expected = Vec::new();
            let (parameters, format) = (vec![Some(b"7".as_slice())], Format::Text);
            let bind = Message::Bind { statement: "a", format, parameters };
            bind.encode(&mut expected).unwrap();
            if described {
                Message::Describe(Object::Portal, "").encode(&mut expected).unwrap();
            }
            Message::Execute.encode(&mut expected).unwrap();
            let mut encoded = Vec::new();
            let execution = Execution::with_texts("a", 1, described).unwrap();
            execution.encode(&mut encoded, |out| value(out, Some(b"7"))).unwrap();
            assert_eq!(encoded, expected);
        }
    }

    #[test]
    fn appends_nothing_after_an_error() {
        assert!(Execution::new("bad\0name", 0).is_err());
        let error = || EncodeError::TooLong { what: "a value", count: 1 };
        let mut out = vec![7];
        let encoded = Execution::new("a", 1).unwrap().encode(&mut out, |out| {
            out.push(1);
            Err(error())
        });
        assert_eq!((encoded, out), (Err(error()), vec![7]));
    }
}
