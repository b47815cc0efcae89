//! Messages sent by a client.
//!
//! Encoding appends to a buffer that the caller reuses. Decoding is for the fake servers of the tests
//! and for round-trip tests.

use crate::cursor::{Cursor, CursorError};
use crate::frame::Frame;
use crate::value::set_length;
pub use crate::value::{EncodeError, array, text_value, value};

/// Protocol version that riops requests: 3.0, which every PostgreSQL-compatible server supports.
pub const PROTOCOL_VERSION: i32 = 0x0003_0000;

/// Format of values, with its code: text, or the binary form of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum Format {
    /// Text format, as `psql` prints it.
    Text = 0,
    /// Binary format, as written by the type's `send` function.
    Binary = 1,
}

/// Kind of object for Describe and Close, with its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Object {
    /// A prepared statement.
    Statement = b'S',
    /// A portal.
    Portal = b'P',
}

/// A message with a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// One or more statements without parameters (simple query protocol).
    Query(&'a str),
    /// Parses a statement and stores it under a name.
    Parse {
        /// Statement name; empty for the unnamed statement.
        name: &'a str,
        /// SQL with `$1`, `$2`, …
        sql: &'a str,
        /// Type OIDs of the parameters; with 0, the server infers the type.
        parameter_types: Vec<u32>,
    },
    /// Creates the unnamed portal from a statement and parameter values.
    Bind {
        /// Name of the prepared statement.
        statement: &'a str,
        /// Format of all parameters and result columns.
        format: Format,
        /// Parameter values; `None` is NULL.
        parameters: Vec<Option<&'a [u8]>>,
    },
    /// Requests the columns of an object.
    Describe(Object, &'a str),
    /// Executes the unnamed portal, without a limit on its rows.
    Execute,
    /// Closes an object.
    Close(Object, &'a str),
    /// Ends a batch of the extended query protocol; the server replies with ReadyForQuery.
    Sync,
    /// A chunk of COPY data.
    CopyData(&'a [u8]),
    /// The end of COPY data.
    CopyDone,
    /// Aborts a COPY, with this error message.
    CopyFail(&'a str),
    /// A response to an authentication request; the meaning of the body of a `p` message depends on the
    /// method.
    Authentication(&'a [u8]),
    /// Terminates the session.
    Terminate,
}

/// Writes a four-byte length, then the bytes that `body` appends.
fn with_length(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let written = body(out).and_then(|()| {
        let length = out.len() - start;
        i32::try_from(length).map_err(|_| EncodeError::TooLong { what: "a message", count: length })
    });
    match written {
        Ok(length) => {
            set_length(out, start, length);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Appends one complete message: tag, length, and the bytes that `body` appends. If `body` fails,
/// nothing is appended.
///
/// # Errors
/// Returns the errors of `body`, and [`EncodeError::TooLong`] above 2 GiB.
pub(crate) fn message(
    out: &mut Vec<u8>,
    tag: u8,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.push(tag);
    let written = with_length(out, body);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

pub(crate) fn text(out: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    if text.as_bytes().contains(&0) {
        return Err(EncodeError::ZeroByte(text.to_owned()));
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

pub(crate) fn count(
    out: &mut Vec<u8>,
    what: &'static str,
    count: usize,
) -> Result<(), EncodeError> {
    let short = u16::try_from(count).map_err(|_| EncodeError::TooLong { what, count })?;
    out.extend_from_slice(&short.to_be_bytes());
    Ok(())
}

/// Appends Bind for a prepared statement with `parameters` parameters and results in one format. `values` appends
/// each parameter with its length, as [`value()`] and [`array()`] do.
///
/// # Errors
/// Returns the errors of `values`; [`EncodeError`] for a zero byte in a name or more than 65535 parameters.
pub fn bind(
    out: &mut Vec<u8>,
    statement: &str,
    parameters: usize,
    format: Format,
    values: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    message(out, b'B', |out| {
        text(out, "")?;
        text(out, statement)?;
        formats(out, format);
        count(out, "parameters", parameters)?;
        values(out)?;
        formats(out, format);
        Ok(())
    })
}

/// Appends a simple query; `sql` appends its bytes.
///
/// # Errors
/// Returns [`EncodeError::ZeroByte`] for a text with a zero byte, and [`EncodeError::TooLong`] above 2 GiB.
pub fn query(out: &mut Vec<u8>, sql: impl FnOnce(&mut Vec<u8>)) -> Result<(), EncodeError> {
    message(out, b'Q', |out| {
        let start = out.len();
        sql(out);
        let written = out.get(start..).unwrap_or_default();
        if written.contains(&0) {
            return Err(EncodeError::ZeroByte(String::from_utf8_lossy(written).into_owned()));
        }
        out.push(0);
        Ok(())
    })
}

/// Sync, encoded.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Appends one format code for all values.
fn formats(out: &mut Vec<u8>, format: Format) {
    out.extend_from_slice(&1i16.to_be_bytes());
    out.extend_from_slice(&(format as i16).to_be_bytes());
}

/// Appends Parse, without building a list.
///
/// # Errors
/// Returns [`EncodeError`] for a zero byte in a string or more than 65535 parameters.
pub fn parse(
    out: &mut Vec<u8>,
    name: &str,
    sql: &str,
    parameter_types: &[u32],
) -> Result<(), EncodeError> {
    message(out, b'P', |out| {
        text(out, name)?;
        text(out, sql)?;
        count(out, "parameter types", parameter_types.len())?;
        for oid in parameter_types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
        Ok(())
    })
}

/// Request for TLS, the first message on a connection; the server replies with one byte, `S` or `N`.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Code that replaces the protocol version of a startup message in a cancel request.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Appends a cancel request, the only message on its connection.
///
/// # Errors
/// None in practice: a secret key has 4 to 256 bytes.
pub fn cancel_request(out: &mut Vec<u8>, process: i32, secret: &[u8]) -> Result<(), EncodeError> {
    with_length(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&process.to_be_bytes());
        out.extend_from_slice(secret);
        Ok(())
    })
}

/// Appends the startup message, which has no tag.
///
/// # Errors
/// Returns [`EncodeError::ZeroByte`] if a string contains a zero byte.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) -> Result<(), EncodeError> {
    with_length(out, |out| {
        out.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        for (name, setting) in parameters {
            text(out, name)?;
            text(out, setting)?;
        }
        out.push(0);
        Ok(())
    })
}

impl<'a> Message<'a> {
    /// Appends the encoded message. On error, nothing is appended.
    ///
    /// # Errors
    /// Returns [`EncodeError`] for a zero byte in a string or a list that is too long.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Query(sql) => message(out, b'Q', |out| text(out, sql)),
            Self::Parse { name, sql, parameter_types } => parse(out, name, sql, parameter_types),
            Self::Bind { statement, format, parameters } => {
                bind(out, statement, parameters.len(), *format, |out| {
                    parameters.iter().try_for_each(|parameter| value(out, *parameter))
                })
            }
            Self::Describe(object, name) => encode_object(out, b'D', *object, name),
            Self::Execute => raw(out, b'E', &[0; 5]),
            Self::Close(object, name) => encode_object(out, b'C', *object, name),
            Self::Sync => raw(out, b'S', &[]),
            Self::CopyData(data) => raw(out, b'd', data),
            Self::CopyDone => raw(out, b'c', &[]),
            Self::CopyFail(reason) => message(out, b'f', |out| text(out, reason)),
            Self::Authentication(data) => raw(out, b'p', data),
            Self::Terminate => raw(out, b'X', &[]),
        }
    }

    /// Decodes a message from its frame.
    ///
    /// # Errors
    /// Returns [`CursorError`] for a message that riops does not send (its tag as a count out of range), for a
    /// truncated body, or for extra bytes.
    pub fn decode(frame: Frame<'a>) -> Result<Self, CursorError> {
        let mut body = Cursor::new(frame.body);
        let message = match frame.tag {
            b'Q' => Self::Query(body.text()?),
            b'P' => Self::Parse {
                name: body.text()?,
                sql: body.text()?,
                parameter_types: (0..body.count()?)
                    .map(|_| body.i32().map(i32::cast_unsigned))
                    .collect::<Result<_, _>>()?,
            },
            b'B' => decode_bind(&mut body)?,
            b'D' => Self::Describe(object(&mut body)?, body.text()?),
            b'E' if frame.body == [0; 5] => return Ok(Self::Execute),
            b'C' => Self::Close(object(&mut body)?, body.text()?),
            b'S' => Self::Sync,
            b'd' => Self::CopyData(body.take_rest()),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'p' => Self::Authentication(body.take_rest()),
            b'X' => Self::Terminate,
            other => return Err(CursorError::CountOutOfRange(i64::from(other))),
        };
        body.finish()?;
        Ok(message)
    }
}

pub(crate) fn raw(out: &mut Vec<u8>, tag: u8, data: &[u8]) -> Result<(), EncodeError> {
    message(out, tag, |out| {
        out.extend_from_slice(data);
        Ok(())
    })
}

fn encode_object(
    out: &mut Vec<u8>,
    tag: u8,
    object: Object,
    name: &str,
) -> Result<(), EncodeError> {
    message(out, tag, |out| {
        out.push(object as u8);
        text(out, name)
    })
}

fn object(body: &mut Cursor<'_>) -> Result<Object, CursorError> {
    match body.u8()? {
        b'S' => Ok(Object::Statement),
        b'P' => Ok(Object::Portal),
        other => Err(CursorError::CountOutOfRange(i64::from(other))),
    }
}

fn decode_bind<'a>(body: &mut Cursor<'a>) -> Result<Message<'a>, CursorError> {
    let (portal, statement, format) = (body.text()?, body.text()?, one_format(body)?);
    let parameters = (0..body.count()?).map(|_| body.value()).collect::<Result<_, _>>()?;
    let is_plain = portal.is_empty() && one_format(body)? == format;
    let bind = is_plain.then_some(Message::Bind { statement, format, parameters });
    bind.ok_or(CursorError::CountOutOfRange(i64::from(b'B')))
}

/// Reads one format code for all values.
fn one_format(body: &mut Cursor<'_>) -> Result<Format, CursorError> {
    match (body.count()?, body.i16()?) {
        (1, 0) => Ok(Format::Text),
        (1, 1) => Ok(Format::Binary),
        (_, other) => Err(CursorError::CountOutOfRange(i64::from(other))),
    }
}

/// Decodes the parameters of a startup message without its four length bytes.
///
/// # Errors
/// Returns [`CursorError`] for another protocol version (as a count out of range) or a malformed body.
pub fn decode_startup(body: &[u8]) -> Result<Vec<(&str, &str)>, CursorError> {
    let mut body = Cursor::new(body);
    let version = body.i32()?;
    if version != PROTOCOL_VERSION {
        return Err(CursorError::CountOutOfRange(i64::from(version)));
    }
    let mut parameters = Vec::new();
    loop {
        match body.text()? {
            "" => break,
            name => parameters.push((name, body.text()?)),
        }
    }
    body.finish().map(|()| parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{self, FRAME_BYTES_MAX};
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = String> {
        "[^\0]{0,20}"
    }

    /// Owned values from which any message can be built.
    #[derive(Debug, Clone)]
    struct Parts {
        kind: u8,
        names: (String, String),
        types: Vec<u32>,
        values: Vec<Option<Vec<u8>>>,
        data: Vec<u8>,
        binary: bool,
    }

    prop_compose! {
        fn parts()(
            kind in 0u8..12,
            names in (name(), name()),
            types in prop::collection::vec(any::<u32>(), 0..6),
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            data in prop::collection::vec(any::<u8>(), 0..200),
            binary in any::<bool>(),
        ) -> Parts {
            Parts { kind, names, types, values, data, binary }
        }
    }

    fn message_of(parts: &Parts) -> Message<'_> {
        let (first, second) = (parts.names.0.as_str(), parts.names.1.as_str());
        let object = if parts.binary { Object::Statement } else { Object::Portal };
        match parts.kind {
            0 => Message::Query(first),
            1 => Message::Parse { name: first, sql: second, parameter_types: parts.types.clone() },
            2 => Message::Bind {
                statement: first,
                format: if parts.binary { Format::Binary } else { Format::Text },
                parameters: parts.values.iter().map(Option::as_deref).collect(),
            },
            3 => Message::Describe(object, first),
            4 => Message::Execute,
            5 => Message::Close(object, first),
            6 => Message::Sync,
            7 => Message::CopyData(&parts.data),
            8 => Message::CopyDone,
            9 => Message::CopyFail(first),
            10 => Message::Authentication(&parts.data),
            _ => Message::Terminate,
        }
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_message_returns_the_message(parts in parts()) {
            let message = message_of(&parts);
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            let (frame, rest) = frame::split(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(Message::decode(frame).unwrap(), message);
        }

        #[test]
        fn decoding_an_encoded_startup_message_returns_its_parameters(
            parameters in prop::collection::vec(("[^\0]{1,20}", name()), 0..6),
        ) {
            let borrowed: Vec<_> =
                parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let mut bytes = Vec::new();
            startup(&mut bytes, &borrowed).unwrap();
            prop_assert_eq!(decode_startup(&bytes[4..]).unwrap(), borrowed);
        }
    }

    #[test]
    fn rejects_a_string_with_a_zero_byte_and_appends_nothing() {
        let mut bytes = vec![1, 2];
        let refused = Message::Query("select 1\0; drop").encode(&mut bytes);
        assert!(matches!(refused, Err(EncodeError::ZeroByte(_))));
        assert_eq!(bytes, [1, 2]);
    }
}
