//! Messages sent by a server.
//!
//! A decoded message borrows from its frame; row values and error fields are decoded on access.
//! Encoding is for the fake servers of the tests.

use crate::cursor::{Cursor, CursorError};
use crate::frame::Frame;
use crate::frontend::{count, message, raw, text};
use crate::sqlstate::SqlState;
use crate::value::{EncodeError, value};

/// Failure to decode a message from the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The tag is not defined by the protocol.
    #[error("the server sent a message of unknown type {:?}", char::from(*.0))]
    UnknownTag(u8),
    /// The body does not match the tag.
    #[error("the server sent a malformed message of type {:?}: {source}", char::from(*.tag))]
    Malformed {
        /// Message tag.
        tag: u8,
        /// Reason.
        source: CursorError,
    },
}

/// Transaction status in ReadyForQuery, with its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionStatus {
    /// Not in a transaction.
    Idle = b'I',
    /// In a transaction.
    Open = b'T',
    /// In a failed transaction, which can only be rolled back.
    Failed = b'E',
}

impl TransactionStatus {
    #[inline]
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            b'I' => Self::Idle,
            b'T' => Self::Open,
            b'E' => Self::Failed,
            _ => return None,
        })
    }
}

/// An authentication request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Authentication succeeded.
    Ok,
    /// Request for the cleartext password.
    CleartextPassword,
    /// Request for the MD5 hash of the password with this salt.
    Md5Password([u8; 4]),
    /// Request for SASL with one of these mechanisms.
    Sasl(Vec<&'a str>),
    /// SASL challenge.
    SaslContinue(&'a [u8]),
    /// Final SASL message.
    SaslFinal(&'a [u8]),
    /// Number of an unsupported method.
    Other(i32),
}

/// One row of a result; its values are decoded in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    columns: u16,
    values: &'a [u8],
}

impl<'a> Row<'a> {
    /// Validates the body of a `DataRow`.
    #[inline]
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, CursorError> {
        let mut body = Cursor::new(body);
        let columns = body.count()?;
        let values = body.rest();
        for _ in 0..columns {
            body.value()?;
        }
        body.finish()?;
        Ok(Self { columns, values })
    }

    /// Returns the values in order; `None` is NULL.
    pub fn values(self) -> impl Iterator<Item = Result<Option<&'a [u8]>, CursorError>> {
        let mut cursor = Cursor::new(self.values);
        (0..self.columns).map(move |_| cursor.value())
    }
}

/// The columns of a result; their names are decoded in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a>(&'a [u8]);

/// Bytes after each name: table OID, column number, type OID, type size, type modifier, format.
const COLUMN_BYTES: usize = 18;

impl<'a> Columns<'a> {
    /// Validates the body of a `RowDescription`. The simple protocol sends one for each result, so nothing
    /// is copied.
    fn decode(body: &'a [u8]) -> Result<Self, CursorError> {
        let mut cursor = Cursor::new(body);
        for _ in 0..cursor.count()? {
            cursor.text()?;
            cursor.bytes(COLUMN_BYTES)?;
        }
        cursor.finish()?;
        Ok(Self(body))
    }

    /// Returns the names of the columns in order.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        let mut cursor = Cursor::new(self.0);
        (0..cursor.count().unwrap_or(0)).map_while(move |_| {
            let name = cursor.text().ok()?;
            cursor.bytes(COLUMN_BYTES).ok().map(|_| name)
        })
    }
}

/// Fields of an error or a notice, each with a one-byte code and a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Validates the body of an ErrorResponse or NoticeResponse.
    ///
    /// # Errors
    /// Returns [`CursorError`] for a malformed body.
    pub fn decode(body: &'a [u8]) -> Result<Self, CursorError> {
        let mut cursor = Cursor::new(body);
        while cursor.u8()? != 0 {
            cursor.raw_text()?;
        }
        cursor.finish()?;
        Ok(Self(body))
    }

    /// Returns the fields in order: the code from "Error and Notice Message Fields" and the bytes,
    /// which may be in any encoding before authentication.
    pub fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut cursor = Cursor::new(self.0);
        std::iter::from_fn(move || {
            let letter = cursor.u8().ok().filter(|&letter| letter != 0)?;
            Some((letter, cursor.raw_text().ok()?))
        })
    }
}

/// An error or a notice with all its fields, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, or for a notice `WARNING`, `NOTICE`, …; not localized.
    pub severity: String,
    /// SQLSTATE.
    pub sqlstate: SqlState,
    /// Primary message.
    pub message: String,
    /// Detail message.
    pub detail: Option<String>,
    /// Hint.
    pub hint: Option<String>,
    /// All other fields by their code, in the order received.
    pub others: Vec<(char, String)>,
}

/// Maximum stored bytes of one field: a server may send a megabyte of context for each of a million
/// errors.
const FIELD_BYTES_MAX: usize = 4096;
/// Maximum stored fields of one error; the protocol defines 18.
const FIELDS_MAX: usize = 32;

impl ServerError {
    /// Copies the fields; truncates each to 4 KiB.
    pub fn from_fields(fields: Fields<'_>) -> Self {
        let mut error = Self {
            severity: String::new(),
            sqlstate: SqlState::UNKNOWN,
            message: String::new(),
            detail: None,
            hint: None,
            others: Vec::new(),
        };
        for (letter, bytes) in fields.iter().take(FIELDS_MAX) {
            let bytes = bytes.get(..FIELD_BYTES_MAX).unwrap_or(bytes);
            let text = String::from_utf8_lossy(bytes).into_owned();
            match letter {
                // V is S without localization; from PostgreSQL 9.6 on, it follows S.
                b'S' | b'V' => error.severity = text,
                b'C' => error.sqlstate = SqlState::parse(&text),
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                other => error.others.push((char::from(other), text)),
            }
        }
        error
    }

    /// Returns whether the same transaction may succeed when retried: after a serialization failure, a
    /// deadlock, or YugabyteDB's errors about a schema that has just changed or a request to try again.
    ///
    /// A write must not be retried if [`Self::leaves_outcome_unknown`] is true and it may have been committed.
    pub fn is_retryable(&self) -> bool {
        match self.sqlstate {
            SqlState::SERIALIZATION_FAILURE
            | SqlState::DEADLOCK_DETECTED
            | SqlState::YUGABYTEDB_RESTART => true,
            SqlState::INTERNAL_ERROR => self.is_schema_mismatch() || self.asks_to_try_again(),
            _ => false,
        }
    }

    /// Returns whether the outcome of a commit that this error answers is unknown to the server itself: its
    /// own connection to the storage failed, it reports `statement_completion_unknown`, or YugabyteDB
    /// reports the failure of a request to its storage, which has the SQLSTATE of an internal error.
    pub fn leaves_outcome_unknown(&self) -> bool {
        self.sqlstate.class() == "08"
            || self.sqlstate.as_str() == "40003"
            || self.sqlstate == SqlState::INTERNAL_ERROR
                && self.asks_to_try_again()
                && !self.is_schema_mismatch()
    }

    /// Returns whether YugabyteDB rejected a request because of an outdated schema, before applying it.
    pub fn is_schema_mismatch(&self) -> bool {
        const MISMATCHES: [&str; 3] =
            ["schema version mismatch", "catalog version mismatch", "mismatched_schema"];
        [&self.message].into_iter().chain(&self.detail).chain(self.context()).any(|text| {
            let text = text.to_ascii_lowercase();
            MISMATCHES.iter().any(|mismatch| text.contains(mismatch))
        })
    }

    fn asks_to_try_again(&self) -> bool {
        self.message.to_ascii_lowercase().contains("try again")
    }

    fn context(&self) -> impl Iterator<Item = &String> {
        self.others.iter().filter(|(letter, _)| *letter == 'W').map(|(_, text)| text)
    }

    /// Returns whether there are too many connections. A pooler reports its limits with other codes than the server: the
    /// texts are from `PgBouncer` (`max_client_conn`, its limits for a user or a database, `query_wait_timeout`), Odyssey,
    /// Pgpool-II and Supavisor.
    pub fn is_connection_limit(&self) -> bool {
        const TEXTS: [&str; 8] = [
            "no more connections allowed",
            "client connections exceeded",
            "query_wait_timeout",
            "too many clients",
            "too many connections",
            "too many tcp connections",
            "max client connections reached",
            "max clients reached",
        ];
        let text = self.message.to_ascii_lowercase();
        self.sqlstate == SqlState::TOO_MANY_CONNECTIONS
            || ["08", "58", "XX"].contains(&self.sqlstate.class())
                && TEXTS.iter().any(|limit| text.contains(limit))
    }

    /// Returns the message as libpq prints it: with its severity, and the detail, the hint and the context on separate lines.
    pub fn in_lines(&self) -> String {
        let mut text = format!("{}:  {}", self.severity, self.message);
        let (detail, hint) = (self.detail.as_ref(), self.hint.as_ref());
        for (name, part) in [("DETAIL", detail), ("HINT", hint), ("CONTEXT", self.context().next())]
        {
            text.extend(part.map(|part| format!("\n{name}:  {part}")));
        }
        text
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (SQLSTATE {})", self.message, self.sqlstate)?;
        if let Some(detail) = &self.detail {
            write!(formatter, "; {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "; hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ServerError {}

/// A message with a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A step of authentication.
    Authentication(Authentication<'a>),
    /// Key for cancel requests.
    BackendKeyData {
        /// Process ID of the session's backend.
        process: i32,
        /// Secret key: four bytes in protocol 3.0.
        secret: &'a [u8],
    },
    /// Bind succeeded.
    BindComplete,
    /// Close succeeded.
    CloseComplete,
    /// A statement completed; the command tag contains the number of rows: `SELECT 1`.
    CommandComplete(&'a str),
    /// The server is ready to receive COPY data.
    CopyInResponse,
    /// The server will send COPY data.
    CopyOutResponse,
    /// A chunk of COPY data.
    CopyData(&'a [u8]),
    /// The end of COPY data.
    CopyDone,
    /// A row.
    DataRow(Row<'a>),
    /// The statement was empty.
    EmptyQueryResponse,
    /// A statement, or the connection, failed.
    ErrorResponse(Fields<'a>),
    /// The server supports only an older minor version, or does not support some options.
    NegotiateProtocolVersion,
    /// The statement returns no rows.
    NoData,
    /// A notice.
    NoticeResponse(Fields<'a>),
    /// A notification from NOTIFY.
    NotificationResponse,
    /// Type OIDs of a statement's parameters.
    ParameterDescription,
    /// A reported setting of the session.
    ParameterStatus {
        /// Name.
        name: &'a str,
        /// Value.
        value: &'a str,
    },
    /// Parse succeeded.
    ParseComplete,
    /// Execute reached its row limit.
    PortalSuspended,
    /// The server is ready for the next request.
    ReadyForQuery(TransactionStatus),
    /// The columns of the result that follows.
    RowDescription(Columns<'a>),
}

impl<'a> Message<'a> {
    /// Decodes a message from its frame.
    ///
    /// # Errors
    /// Returns [`DecodeError`] for an unknown tag or a malformed body.
    pub fn decode(frame: Frame<'a>) -> Result<Self, DecodeError> {
        let tag = frame.tag;
        decode_body(tag, frame.body)
            .map_err(|source| DecodeError::Malformed { tag, source })?
            .ok_or(DecodeError::UnknownTag(tag))
    }

    /// Appends the encoded message.
    ///
    /// # Errors
    /// Returns [`EncodeError`] for a zero byte in a text or a list that is too long.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Authentication(step) => {
                message(out, b'R', |out| encode_authentication(step, out))
            }
            Self::BackendKeyData { process, secret } => message(out, b'K', |out| {
                out.extend_from_slice(&process.to_be_bytes());
                out.extend_from_slice(secret);
                Ok(())
            }),
            Self::BindComplete => raw(out, b'2', &[]),
            Self::CloseComplete => raw(out, b'3', &[]),
            Self::CommandComplete(tag) => message(out, b'C', |out| text(out, tag)),
            Self::CopyInResponse => raw(out, b'G', &[0, 0, 0]),
            Self::CopyOutResponse => raw(out, b'H', &[0, 0, 0]),
            Self::CopyData(data) => raw(out, b'd', data),
            Self::CopyDone => raw(out, b'c', &[]),
            Self::DataRow(row) => message(out, b'D', |out| {
                out.extend_from_slice(&row.columns.to_be_bytes());
                out.extend_from_slice(row.values);
                Ok(())
            }),
            Self::EmptyQueryResponse => raw(out, b'I', &[]),
            Self::ErrorResponse(fields) => raw(out, b'E', fields.0),
            Self::NegotiateProtocolVersion => raw(out, b'v', &[0, 3, 0, 0, 0, 0, 0, 0]),
            Self::NoData => raw(out, b'n', &[]),
            Self::NoticeResponse(fields) => raw(out, b'N', fields.0),
            Self::NotificationResponse => raw(out, b'A', &[0, 0, 0, 0, 0, 0]),
            Self::ParameterDescription => raw(out, b't', &[0, 0]),
            Self::ParameterStatus { name, value } => message(out, b'S', |out| {
                text(out, name)?;
                text(out, value)
            }),
            Self::ParseComplete => raw(out, b'1', &[]),
            Self::PortalSuspended => raw(out, b's', &[]),
            Self::ReadyForQuery(status) => raw(out, b'Z', &[*status as u8]),
            Self::RowDescription(columns) => raw(out, b'T', columns.0),
        }
    }
}

/// Appends a DataRow with these values.
///
/// # Errors
/// Returns [`EncodeError`] for too many or too large values.
pub fn data_row(out: &mut Vec<u8>, values: &[Option<&[u8]>]) -> Result<(), EncodeError> {
    message(out, b'D', |out| {
        count(out, "columns", values.len())?;
        values.iter().try_for_each(|column| value(out, *column))
    })
}

/// Appends a `RowDescription` with these column names; the types are left open.
///
/// # Errors
/// Returns [`EncodeError`] for a zero byte in a name or too many names.
pub fn row_description(out: &mut Vec<u8>, names: &[&str]) -> Result<(), EncodeError> {
    message(out, b'T', |out| {
        count(out, "columns", names.len())?;
        for name in names {
            text(out, name)?;
            out.extend_from_slice(&[0; COLUMN_BYTES]);
        }
        Ok(())
    })
}

/// Appends an ErrorResponse with these fields.
///
/// # Errors
/// Returns [`EncodeError::ZeroByte`] if a field contains a zero byte.
pub fn error_response(out: &mut Vec<u8>, fields: &[(u8, &str)]) -> Result<(), EncodeError> {
    fields_message(out, b'E', fields)
}

/// Appends a NoticeResponse with these fields.
///
/// # Errors
/// Returns [`EncodeError::ZeroByte`] if a field contains a zero byte.
pub fn notice_response(out: &mut Vec<u8>, fields: &[(u8, &str)]) -> Result<(), EncodeError> {
    fields_message(out, b'N', fields)
}

fn fields_message(out: &mut Vec<u8>, tag: u8, fields: &[(u8, &str)]) -> Result<(), EncodeError> {
    message(out, tag, |out| {
        for (letter, content) in fields {
            out.push(*letter);
            text(out, content)?;
        }
        out.push(0);
        Ok(())
    })
}

fn encode_authentication(step: &Authentication<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (code, data): (i32, &[u8]) = match step {
        Authentication::Ok => (0, &[]),
        Authentication::CleartextPassword => (3, &[]),
        Authentication::Md5Password(salt) => (5, salt),
        Authentication::Sasl(_) => (10, &[]),
        Authentication::SaslContinue(data) => (11, data),
        Authentication::SaslFinal(data) => (12, data),
        Authentication::Other(code) => (*code, &[]),
    };
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(data);
    if let Authentication::Sasl(mechanisms) = step {
        mechanisms.iter().try_for_each(|mechanism| text(out, mechanism))?;
        out.push(0);
    }
    Ok(())
}

/// Returns `None` for an unknown tag.
fn decode_body(tag: u8, bytes: &[u8]) -> Result<Option<Message<'_>>, CursorError> {
    let mut body = Cursor::new(bytes);
    let message = match tag {
        b'D' => return Row::decode(bytes).map(|row| Some(Message::DataRow(row))),
        b'C' => Message::CommandComplete(body.text()?),
        b'Z' => {
            let code = body.u8()?;
            let status = TransactionStatus::from_code(code);
            Message::ReadyForQuery(status.ok_or(CursorError::CountOutOfRange(code.into()))?)
        }
        b'2' => Message::BindComplete,
        b'1' => Message::ParseComplete,
        b'3' => Message::CloseComplete,
        b'I' => Message::EmptyQueryResponse,
        b'n' => Message::NoData,
        b's' => Message::PortalSuspended,
        b'c' => Message::CopyDone,
        b'd' => Message::CopyData(body.take_rest()),
        b'E' => return Fields::decode(bytes).map(|fields| Some(Message::ErrorResponse(fields))),
        b'N' => return Fields::decode(bytes).map(|fields| Some(Message::NoticeResponse(fields))),
        b'A' => return Ok(Some(Message::NotificationResponse)),
        b'v' => return Ok(Some(Message::NegotiateProtocolVersion)),
        b'G' | b'H' => {
            body.u8()?;
            for _ in 0..body.count()? {
                body.i16()?;
            }
            if tag == b'G' { Message::CopyInResponse } else { Message::CopyOutResponse }
        }
        b'K' => Message::BackendKeyData { process: body.i32()?, secret: body.take_rest() },
        b'R' => Message::Authentication(authentication(&mut body)?),
        b'S' => Message::ParameterStatus { name: body.text()?, value: body.text()? },
        b'T' => {
            return Columns::decode(bytes).map(|columns| Some(Message::RowDescription(columns)));
        }
        b't' => {
            for _ in 0..body.count()? {
                body.i32()?;
            }
            Message::ParameterDescription
        }
        _ => return Ok(None),
    };
    body.finish()?;
    Ok(Some(message))
}

fn authentication<'a>(body: &mut Cursor<'a>) -> Result<Authentication<'a>, CursorError> {
    Ok(match body.i32()? {
        0 => Authentication::Ok,
        3 => Authentication::CleartextPassword,
        5 => Authentication::Md5Password(body.i32()?.to_be_bytes()),
        10 => {
            // An empty name ends the list.
            let next = || Some(body.text()).filter(|name| *name != Ok(""));
            Authentication::Sasl(std::iter::from_fn(next).collect::<Result<_, _>>()?)
        }
        11 => Authentication::SaslContinue(body.take_rest()),
        12 => Authentication::SaslFinal(body.take_rest()),
        other => {
            body.take_rest();
            Authentication::Other(other)
        }
    })
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
