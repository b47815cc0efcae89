//! Encodes rows for COPY FROM STDIN, in text and binary format.
//!
//! Appends to a buffer that the caller sends as CopyData messages of any size: message boundaries need
//! not match row boundaries.

use crate::frontend::{self, EncodeError};

/// Header of binary COPY data: signature, flags, no header extension.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Appends the header of binary COPY data.
pub fn binary_header(out: &mut Vec<u8>) {
    out.extend_from_slice(BINARY_HEADER);
}

/// Appends the trailer of binary COPY data.
pub fn binary_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i16).to_be_bytes());
}

/// Appends the start of a binary row of `columns` values.
pub fn binary_row(out: &mut Vec<u8>, columns: i16) {
    out.extend_from_slice(&columns.to_be_bytes());
}

/// Appends a `bigint` to a binary row.
pub fn binary_bigint(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&8i32.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends one row in text format: values separated by tabs, followed by a newline; `None` is NULL.
pub fn text_row<'a>(out: &mut Vec<u8>, values: impl IntoIterator<Item = Option<&'a str>>) {
    for (position, value) in values.into_iter().enumerate() {
        if position > 0 {
            out.push(b'\t');
        }
        match value {
            None => out.extend_from_slice(b"\\N"),
            Some(value) => value.bytes().for_each(|byte| escape(out, byte)),
        }
    }
    out.push(b'\n');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        other => out.push(other),
    }
}

/// Appends a complete CopyData message; `body` appends the rows.
///
/// # Errors
/// Returns the errors of `body`; [`EncodeError::TooLong`] above 2 GiB.
pub fn data(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    frontend::message(out, b'd', body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_special_characters_in_a_text_row() {
        let mut out = Vec::new();
        text_row(&mut out, [Some("a\tb\\"), None, Some("c\r\n")]);
        assert_eq!(out, b"a\\tb\\\\\t\\N\tc\\r\\n\n");
    }

    #[test]
    fn encodes_a_binary_row_as_a_count_and_values_with_lengths() {
        let mut out = Vec::new();
        binary_row(&mut out, 3);
        binary_bigint(&mut out, 1);
        frontend::value(&mut out, None).unwrap();
        frontend::value(&mut out, Some(b"x")).unwrap();
        binary_trailer(&mut out);
        assert_eq!(
            out,
            [
                0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 1, b'x',
                255, 255
            ]
        );
    }
}
