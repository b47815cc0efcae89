//! What a client sends.
//!
//! Encoding appends to a buffer that the caller reuses; decoding is for the fake servers of the
//! tests and for the proof that the two are inverse to each other.

use crate::cursor::{Cursor, CursorError};
use crate::frame::Frame;

/// The protocol version that riops speaks: 3.0, which every relative of PostgreSQL understands.
pub const PROTOCOL_VERSION: i32 = 0x0003_0000;

/// Why a message could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The protocol ends texts with a zero byte, so none may stand inside.
    #[error("a text with a zero byte cannot be sent: {0:?}")]
    ZeroByte(String),
    /// A list or a body exceeds what the protocol's counts can hold.
    #[error("{what} with {count} elements exceeds the protocol's limit")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
}

/// How values are written: as text, or in the binary form of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As `psql` shows them.
    Text,
    /// As the type's `send` function writes them.
    Binary,
}

impl Format {
    /// The code on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// The format of a code.
    ///
    /// # Errors
    /// [`CursorError::CountOutOfRange`] for anything but 0 and 1.
    pub fn from_code(code: i16) -> Result<Self, CursorError> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            other => Err(CursorError::CountOutOfRange(i64::from(other))),
        }
    }
}

/// What Describe and Close refer to.
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
    /// One or more statements without parameters: the simple protocol.
    Query(&'a str),
    /// Parses a statement and keeps it under a name.
    Parse {
        /// Empty for the unnamed statement.
        name: &'a str,
        /// SQL with `$1`, `$2`, …
        sql: &'a str,
        /// Types of the parameters as OIDs; 0 lets the server infer one.
        parameter_types: Vec<u32>,
    },
    /// Makes a portal of a statement and values.
    Bind {
        /// Empty for the unnamed portal.
        portal: &'a str,
        /// Name of the prepared statement.
        statement: &'a str,
        /// Format of all parameters.
        parameter_format: Format,
        /// Values; `None` stands for NULL.
        parameters: Vec<Option<&'a [u8]>>,
        /// Format of all result columns.
        result_format: Format,
    },
    /// Asks for the columns of an object.
    Describe(Object, &'a str),
    /// Runs a portal; 0 rows stand for all.
    Execute {
        /// Name of the portal.
        portal: &'a str,
        /// Largest number of rows, 0 for no limit.
        rows_max: i32,
    },
    /// Forgets an object.
    Close(Object, &'a str),
    /// Ends a batch of the extended protocol: the server answers ReadyForQuery.
    Sync,
    /// Asks the server to send what it has.
    Flush,
    /// A piece of COPY data.
    CopyData(&'a [u8]),
    /// The end of COPY data.
    CopyDone,
    /// The client gives up a COPY.
    CopyFail(&'a str),
    /// The answer to a request for authentication: the tag `p` has a body of many meanings.
    Authentication(&'a [u8]),
    /// Says goodbye.
    Terminate,
}

/// Writes a length of four bytes before what `body` appends.
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
            if let Some(field) = out.get_mut(start..start + 4) {
                field.copy_from_slice(&length.to_be_bytes());
            }
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Appends one whole message: its tag, its length, and what `body` appends. Where `body` fails,
/// nothing is appended.
///
/// # Errors
/// Those of `body`, and [`EncodeError::TooLong`] above 2 GiB.
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

/// Appends a value with its length; NULL is `None`.
///
/// # Errors
/// [`EncodeError::TooLong`] above 2 GiB.
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

/// Appends Bind for a prepared statement whose parameters are all `bigint` and whose results are
/// wanted in binary: the statement shape of the hot loop, without a list to build.
///
/// # Errors
/// [`EncodeError`] for a zero byte in a name or more than 65535 parameters.
pub fn bind_bigints(
    out: &mut Vec<u8>,
    statement: &str,
    parameters: &[i64],
) -> Result<(), EncodeError> {
    bind(out, statement, parameters.len(), |out| {
        parameters.iter().try_for_each(|parameter| value(out, Some(&parameter.to_be_bytes())))
    })
}

/// Appends Bind for a prepared statement with as many binary `parameters`, which `values` appends,
/// each with its length (as [`value()`] and [`array()`] do), and whose results are wanted in binary.
///
/// # Errors
/// Those of `values`; [`EncodeError`] for a zero byte in a name or more than 65535 parameters.
pub fn bind(
    out: &mut Vec<u8>,
    statement: &str,
    parameters: usize,
    values: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    message(out, b'B', |out| {
        text(out, "")?;
        text(out, statement)?;
        formats(out, Format::Binary);
        count(out, "parameters", parameters)?;
        values(out)?;
        formats(out, Format::Binary);
        Ok(())
    })
}

/// Appends a one-dimensional array in binary, with its length: `elements` appends its `count`
/// elements of the type with this OID, each with its length.
///
/// # Errors
/// Those of `elements`; [`EncodeError::TooLong`] above 2 GiB.
pub fn array(
    out: &mut Vec<u8>,
    element_type: u32,
    count: usize,
    elements: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let too_long = |count| EncodeError::TooLong { what: "an array", count };
    let length = i32::try_from(count).map_err(|_| too_long(count))?;
    let start = out.len();
    // The length of a value does not count itself.
    out.extend_from_slice(&[0; 4]);
    for field in [1, 0, element_type.cast_signed(), length, 1] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    elements(out)?;
    let bytes = out.len() - start - 4;
    let bytes = i32::try_from(bytes).map_err(|_| too_long(bytes))?;
    if let Some(field) = out.get_mut(start..start + 4) {
        field.copy_from_slice(&bytes.to_be_bytes());
    }
    Ok(())
}

/// One format code for all that follow.
fn formats(out: &mut Vec<u8>, format: Format) {
    out.extend_from_slice(&1i16.to_be_bytes());
    out.extend_from_slice(&format.code().to_be_bytes());
}

/// Appends Parse, without a list to build.
///
/// # Errors
/// [`EncodeError`] for a zero byte in a text or more than 65535 parameters.
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

/// Asks for TLS, as the first thing on a connection: the server answers with one byte, `S` or `N`.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The code that stands where a startup message has its version, in a request to cancel.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Appends the only message of a connection that asks to cancel what another one does.
///
/// # Errors
/// None in practice: a secret has 4 to 256 bytes.
pub fn cancel_request(out: &mut Vec<u8>, process: i32, secret: &[u8]) -> Result<(), EncodeError> {
    with_length(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&process.to_be_bytes());
        out.extend_from_slice(secret);
        Ok(())
    })
}

/// Appends the first message of a connection, which has no tag.
///
/// # Errors
/// [`EncodeError::ZeroByte`]
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
    /// Appends the message. Where it fails, nothing is appended.
    ///
    /// # Errors
    /// [`EncodeError`]
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
            Self::Sync => message(out, b'S', |_| Ok(())),
            Self::Flush => message(out, b'H', |_| Ok(())),
            Self::CopyData(data) => raw(out, b'd', data),
            Self::CopyDone => message(out, b'c', |_| Ok(())),
            Self::CopyFail(reason) => message(out, b'f', |out| text(out, reason)),
            Self::Authentication(data) => raw(out, b'p', data),
            Self::Terminate => message(out, b'X', |_| Ok(())),
        }
    }

    /// Reads a message from its frame.
    ///
    /// # Errors
    /// [`CursorError`] for a tag that no client sends (as a count out of range), a body that ends
    /// too early, or bytes left over.
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

/// No code stands for text; several are taken where they are all the same.
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

/// Reads the parameters of a startup message, whose four length bytes were taken off already.
///
/// # Errors
/// [`CursorError`] for another protocol version (as a count out of range) or a malformed body.
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

    /// Owned values from which any message can be made.
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
        fn decode_of_encode_is_the_identity(parts in parts()) {
            let message = message_of(&parts);
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            let (frame, rest) = frame::split(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(Message::decode(frame).unwrap(), message);
        }

        #[test]
        fn decode_of_an_encoded_startup_is_the_identity(
            parameters in prop::collection::vec(("[^\0]{1,20}", name()), 0..6),
        ) {
            let borrowed: Vec<_> =
                parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let mut bytes = Vec::new();
            startup(&mut bytes, &borrowed).unwrap();
            prop_assert_eq!(decode_startup(&bytes[4..]).unwrap(), borrowed);
        }

        #[test]
        fn the_short_bind_equals_the_general_one(
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
    fn a_text_with_a_zero_byte_is_refused_and_leaves_nothing_behind() {
        let mut bytes = vec![1, 2];
        let refused = Message::Query("select 1\0; drop").encode(&mut bytes);
        assert!(matches!(refused, Err(EncodeError::ZeroByte(_))));
        assert_eq!(bytes, [1, 2]);
    }
}
