//! Values of parameters and columns, each with its length.

/// Failure to encode a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The protocol terminates strings with a zero byte, so a string cannot contain one.
    #[error("cannot send a string with a zero byte: {0:?}")]
    ZeroByte(String),
    /// A list or a message exceeds the range of the protocol's counts.
    #[error("cannot send {what} with {count} elements: exceeds the protocol's limit")]
    TooLong {
        /// Kind of object that is too long.
        what: &'static str,
        /// Number of elements or bytes.
        count: usize,
    },
}

/// Appends a value with its length; `None` is NULL.
///
/// # Errors
/// Returns [`EncodeError::TooLong`] above 2 GiB.
pub fn value(out: &mut Vec<u8>, value: Option<&[u8]>) -> Result<(), EncodeError> {
    let Some(value) = value else {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    };
    let length = i32::try_from(value.len())
        .map_err(|_| EncodeError::TooLong { what: "a value", count: value.len() })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}

/// Writes a length over the four bytes at this position.
#[inline]
pub(crate) fn set_length(out: &mut [u8], at: usize, length: i32) {
    if let Some(field) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = length.to_be_bytes();
    }
}

/// Appends a value as text with its length; `text` appends its bytes, or returns false for NULL.
///
/// # Errors
/// Returns [`EncodeError::TooLong`] above 2 GiB.
#[inline]
pub fn text_value(
    out: &mut Vec<u8>,
    text: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let length = if text(out) {
        let count = out.len() - start - 4;
        i32::try_from(count).map_err(|_| EncodeError::TooLong { what: "a value", count })?
    } else {
        -1
    };
    set_length(out, start, length);
    Ok(())
}

/// Appends a one-dimensional array in binary format, with its length. `elements` appends `count`
/// elements of the type `element_type`, each with its length.
///
/// # Errors
/// Returns the errors of `elements`; [`EncodeError::TooLong`] above 2 GiB.
pub fn array(
    out: &mut Vec<u8>,
    element_type: u32,
    count: usize,
    elements: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let too_long = |count| EncodeError::TooLong { what: "an array", count };
    let length = i32::try_from(count).map_err(|_| too_long(count))?;
    let start = out.len();
    // The length of a value does not include itself.
    out.extend_from_slice(&[0; 4]);
    for field in [1, 0, element_type.cast_signed(), length, 1] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    elements(out)?;
    let bytes = out.len() - start - 4;
    let bytes = i32::try_from(bytes).map_err(|_| too_long(bytes))?;
    set_length(out, start, bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_values_and_may_be_null() {
        let (mut expected, mut actual) = (Vec::new(), Vec::new());
        value(&mut expected, Some(b"abc")).unwrap();
        value(&mut expected, None).unwrap();
        let abc = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"abc");
            true
        };
        text_value(&mut actual, abc).unwrap();
        text_value(&mut actual, |_| false).unwrap();
        assert_eq!(actual, expected);
    }
}
