//! Parameter values of a statement, encoded for the protocol: in binary format, or as literals in the
//! statement text. Pure, and without allocation in steady state.

use std::io::Write as _;

use riops_wire::frontend::{self, EncodeError};

/// The OID of `bigint`. Like the OIDs below, it is the same in every PostgreSQL-compatible database.
pub const BIGINT_OID: u32 = 20;
/// The OID of `int`.
pub const INT_OID: u32 = 23;
/// The OID of `text`.
pub const TEXT_OID: u32 = 25;
/// The OID of `char(n)`.
pub const BPCHAR_OID: u32 = 1042;
/// The OID of `int[]`.
pub const INT_ARRAY_OID: u32 = 1007;
/// The OID of `text[]`.
pub const TEXT_ARRAY_OID: u32 = 1009;

/// SQL literals, stored consecutively in one buffer.
#[derive(Debug, Default)]
pub struct Literals {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Literals {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Returns the literal at this position, from 0.
    pub(super) fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(index).copied().unwrap_or_default();
        let bytes = self.text.get(start.unwrap_or(0)..end).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn end(&mut self) {
        self.ends.push(self.text.len());
    }

    fn write_number(&mut self, value: i64) {
        // Writing to a Vec cannot fail.
        let _ = write!(self.text, "{value}");
        self.end();
    }
}

/// Appends `length` bytes, which `fill` writes.
fn append(out: &mut Vec<u8>, length: usize, fill: impl FnOnce(&mut [u8])) {
    let start = out.len();
    out.resize(start + length, b'0');
    if let Some(bytes) = out.get_mut(start..) {
        fill(bytes);
    }
}

/// Encodes the parameter values of one execution, in order.
#[derive(Debug)]
pub struct Values<'a> {
    form: Form<'a>,
    error: Option<EncodeError>,
}

#[derive(Debug)]
enum Form<'a> {
    Binary(&'a mut Vec<u8>),
    Literals(&'a mut Literals),
}

impl<'a> Values<'a> {
    pub(super) fn binary(out: &'a mut Vec<u8>) -> Self {
        Self { form: Form::Binary(out), error: None }
    }

    pub(super) fn literals(out: &'a mut Literals) -> Self {
        Self { form: Form::Literals(out), error: None }
    }

    pub(super) fn error(self) -> Option<EncodeError> {
        self.error
    }

    /// Appends a `bigint`.
    #[inline]
    pub fn bigint(&mut self, value: i64) {
        match &mut self.form {
            Form::Binary(out) => {
                let mut bytes = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
                if let Some(slot) = bytes.last_chunk_mut() {
                    *slot = value.to_be_bytes();
                }
                out.extend_from_slice(&bytes);
            }
            Form::Literals(literals) => literals.write_number(value),
        }
    }

    /// Appends an `int`.
    pub fn int(&mut self, value: i32) {
        match &mut self.form {
            Form::Binary(out) => int(out, value),
            Form::Literals(literals) => literals.write_number(value.into()),
        }
    }

    /// Appends a text of `length` letters and digits, which `fill` writes.
    pub fn text(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) {
        match &mut self.form {
            Form::Binary(out) => text(out, length, fill),
            Form::Literals(literals) => {
                // Letters and digits need no escape.
                literals.text.push(b'\'');
                append(&mut literals.text, length, fill);
                literals.text.push(b'\'');
                literals.end();
            }
        }
    }

    /// Appends an `int[]` of `count` values.
    pub fn ints(&mut self, count: usize, values: impl Iterator<Item = i32>) {
        match &mut self.form {
            Form::Binary(out) => {
                let written = frontend::array(out, INT_OID, count, |out| {
                    values.for_each(|value| int(out, value));
                    Ok(())
                });
                self.error = self.error.take().or(written.err());
            }
            Form::Literals(literals) => {
                literals.text.extend_from_slice(b"array[");
                for (position, value) in values.enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    let _ = write!(literals.text, "{comma}{value}");
                }
                literals.text.extend_from_slice(b"]::int[]");
                literals.end();
            }
        }
    }

    /// Appends a `text[]` of `count` texts of `length` letters and digits. `fill` writes each text, given its
    /// position from 0.
    pub fn texts(&mut self, count: usize, length: usize, mut fill: impl FnMut(usize, &mut [u8])) {
        match &mut self.form {
            Form::Binary(out) => {
                let written = frontend::array(out, TEXT_OID, count, |out| {
                    (0..count)
                        .for_each(|position| text(out, length, |bytes| fill(position, bytes)));
                    Ok(())
                });
                self.error = self.error.take().or(written.err());
            }
            Form::Literals(literals) => {
                literals.text.extend_from_slice(b"'{");
                for position in 0..count {
                    if position > 0 {
                        literals.text.push(b',');
                    }
                    append(&mut literals.text, length, |bytes| fill(position, bytes));
                }
                literals.text.extend_from_slice(b"}'::text[]");
                literals.end();
            }
        }
    }
}

/// Converts a key, an id or a value of `k` to the type of its column. Plans do not allow larger numbers.
pub(super) fn int_of(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Appends the length and the bytes of an `int`.
pub(super) fn int(out: &mut Vec<u8>, value: i32) {
    let [a, b, c, d] = value.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 4, a, b, c, d]);
}

/// Appends the length and the bytes of a text, which `fill` writes.
pub(super) fn text(out: &mut Vec<u8>, length: usize, fill: impl FnOnce(&mut [u8])) {
    // Plans do not allow longer texts.
    let bytes = i32::try_from(length).unwrap_or(i32::MAX);
    out.extend_from_slice(&bytes.to_be_bytes());
    append(out, length, fill);
}
