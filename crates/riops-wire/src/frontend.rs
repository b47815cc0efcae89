//! Messages sent by a client.
//!
//! Encoding appends to a buffer that the caller reuses. Decoding is for the fake servers of the tests
//! and for round-trip tests.

use crate::cursor::{Cursor, CursorError};
pub use crate::encode_error::EncodeError;
use crate::frame::Frame;
use crate::value::set_length;
pub use crate::value::{array, text_value, value};

/// Protocol version that riops requests: 3.0, which every PostgreSQL-compatible server supports.
pub const PROTOCOL_VERSION: i32 = 0x0003_0000;

/// Format of values: text, or the binary form of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text format, as `psql` prints it.
    Text,
    /// Binary format, as written by the type's `send` function.
    Binary,
}

impl Format {
    /// Returns the format code in messages.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// Returns the format with this code.
    ///
    /// # Errors
    /// Returns [`CursorError::CountOutOfRange`] for any code except 0 and 1.
    pub fn from_code(code: i16) -> Result<Self, CursorError> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            other => Err(CursorError::CountOutOfRange(i64::from(other))),
        }
    }
}

/// Kind of object for Describe and Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

impl Object {
    fn code(self) -> u8 {
        match self {
            Self::Statement => b'S',
            Self::Portal => b'P',
        }
    }
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
    /// Creates a portal from a statement and parameter values.
    Bind {
        /// Portal name; empty for the unnamed portal.
        portal: &'a str,
        /// Name of the prepared statement.
        statement: &'a str,
        /// Format of all parameters.
        parameter_format: Format,
        /// Parameter values; `None` is NULL.
        parameters: Vec<Option<&'a [u8]>>,
        /// Format of all result columns.
        result_format: Format,
    },
    /// Requests the columns of an object.
    Describe(Object, &'a str),
    /// Executes a portal.
    Execute {
        /// Name of the portal.
        portal: &'a str,
        /// Maximum number of rows; 0 for no limit.
        rows_max: i32,
    },
    /// Closes an object.
    Close(Object, &'a str),
    /// Ends a batch of the extended query protocol; the server replies with ReadyForQuery.
    Sync,
    /// Requests pending output from the server.
    Flush,
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

/// Appends Bind for a prepared statement with only `bigint` parameters and results in binary format:
/// the statement shape of the hot loop, without building a list.
///
/// # Errors
/// Returns [`EncodeError`] for a zero byte in a name or more than 65535 parameters.
pub fn bind_bigints(
    out: &mut Vec<u8>,
    statement: &str,
    parameters: &[i64],
) -> Result<(), EncodeError> {
    bind(out, statement, parameters.len(), Format::Binary, |out| {
        parameters.iter().try_for_each(|parameter| value(out, Some(&parameter.to_be_bytes())))
    })
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
    out.extend_from_slice(&format.code().to_be_bytes());
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
            Self::Bind { portal, statement, parameter_format, parameters, result_format } => {
                message(out, b'B', |out| {
                    text(out, portal)?;
                    text(out, statement)?;
                    formats(out, *parameter_format);
                    count(out, "parameters", parameters.len())?;
                    for parameter in parameters {
                        value(out, *parameter)?;
                    }
                    formats(out, *result_format);
                    Ok(())
                })
            }
            Self::Describe(object, name) => message(out, b'D', |out| {
                out.push(object.code());
                text(out, name)
            }),
            Self::Execute { portal, rows_max } => message(out, b'E', |out| {
                text(out, portal)?;
                out.extend_from_slice(&rows_max.to_be_bytes());
                Ok(())
            }),
            Self::Close(object, name) => message(out, b'C', |out| {
                out.push(object.code());
                text(out, name)
            }),
            Self::Sync => {
                out.extend_from_slice(&SYNC);
                Ok(())
            }
            Self::Flush => message(out, b'H', |_| Ok(())),
            Self::CopyData(data) => raw(out, b'd', data),
            Self::CopyDone => message(out, b'c', |_| Ok(())),
            Self::CopyFail(reason) => message(out, b'f', |out| text(out, reason)),
            Self::Authentication(data) => raw(out, b'p', data),
            Self::Terminate => message(out, b'X', |_| Ok(())),
        }
    }

    /// Decodes a message from its frame.
    ///
    /// # Errors
    /// Returns [`CursorError`] for a tag that no client sends (as a count out of range), for a
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
            b'E' => Self::Execute { portal: body.text()?, rows_max: body.i32()? },
            b'C' => Self::Close(object(&mut body)?, body.text()?),
            b'S' => Self::Sync,
            b'H' => Self::Flush,
            b'd' => return Ok(Self::CopyData(frame.body)),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'p' => return Ok(Self::Authentication(frame.body)),
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

fn object(body: &mut Cursor<'_>) -> Result<Object, CursorError> {
    match body.u8()? {
        b'S' => Ok(Object::Statement),
        b'P' => Ok(Object::Portal),
        other => Err(CursorError::CountOutOfRange(i64::from(other))),
    }
}

fn decode_bind<'a>(body: &mut Cursor<'a>) -> Result<Message<'a>, CursorError> {
    let portal = body.text()?;
    let statement = body.text()?;
    let parameter_format = one_format(body)?;
    let parameters = (0..body.count()?).map(|_| body.value()).collect::<Result<_, _>>()?;
    let result_format = one_format(body)?;
    Ok(Message::Bind { portal, statement, parameter_format, parameters, result_format })
}

/// No code means text. Several codes are accepted if they are all equal.
fn one_format(body: &mut Cursor<'_>) -> Result<Format, CursorError> {
    let mut found = None;
    for _ in 0..body.count()? {
        let code = body.i16()?;
        let format = Format::from_code(code)?;
        if found.is_some_and(|earlier| earlier != format) {
            return Err(CursorError::CountOutOfRange(i64::from(code)));
        }
        found = Some(format);
    }
    Ok(found.unwrap_or(Format::Text))
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
        let name = body.text()?;
        if name.is_empty() {
            body.finish()?;
            return Ok(parameters);
        }
        parameters.push((name, body.text()?));
    }
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
        rows_max: i32,
        binary: (bool, bool),
    }

    prop_compose! {
        fn parts()(
            kind in 0u8..13,
            names in (name(), name()),
            types in prop::collection::vec(any::<u32>(), 0..6),
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            data in prop::collection::vec(any::<u8>(), 0..200),
            rows_max in any::<i32>(),
            binary in any::<(bool, bool)>(),
        ) -> Parts {
            Parts { kind, names, types, values, data, rows_max, binary }
        }
    }

    fn format(binary: bool) -> Format {
        if binary { Format::Binary } else { Format::Text }
    }

    fn message_of(parts: &Parts) -> Message<'_> {
        let (first, second) = (parts.names.0.as_str(), parts.names.1.as_str());
        let object = if parts.binary.0 { Object::Statement } else { Object::Portal };
        match parts.kind {
            0 => Message::Query(first),
            1 => Message::Parse { name: first, sql: second, parameter_types: parts.types.clone() },
            2 => Message::Bind {
                portal: first,
                statement: second,
                parameter_format: format(parts.binary.0),
                parameters: parts.values.iter().map(Option::as_deref).collect(),
                result_format: format(parts.binary.1),
            },
            3 => Message::Describe(object, first),
            4 => Message::Execute { portal: first, rows_max: parts.rows_max },
            5 => Message::Close(object, first),
            6 => Message::Sync,
            7 => Message::Flush,
            8 => Message::CopyData(&parts.data),
            9 => Message::CopyDone,
            10 => Message::CopyFail(first),
            11 => Message::Authentication(&parts.data),
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

        #[test]
        fn bind_bigints_equals_the_general_bind(
            statement in name(),
            parameters in prop::collection::vec(any::<i64>(), 0..6),
        ) {
            let encoded: Vec<_> = parameters.iter().map(|value| value.to_be_bytes()).collect();
            let mut general = Vec::new();
            Message::Bind {
                portal: "",
                statement: &statement,
                parameter_format: Format::Binary,
                parameters: encoded.iter().map(|value| Some(value.as_slice())).collect(),
                result_format: Format::Binary,
            }
            .encode(&mut general)
            .unwrap();
            let mut short = Vec::new();
            bind_bigints(&mut short, &statement, &parameters).unwrap();
            prop_assert_eq!(short, general);
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
