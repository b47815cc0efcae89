//! SQLSTATE error codes, and the constants for the codes that riops handles.
//!
//! Source: PostgreSQL documentation, Appendix A.

use std::fmt;

/// An SQLSTATE: five characters; the first two are its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// Authentication failed.
    pub const INVALID_PASSWORD: Self = Self(*b"28P01");
    /// No rule in `pg_hba.conf` accepts the session.
    pub const INVALID_AUTHORIZATION: Self = Self(*b"28000");
    /// The database does not exist.
    pub const INVALID_CATALOG_NAME: Self = Self(*b"3D000");
    /// The disk is full.
    pub const DISK_FULL: Self = Self(*b"53100");
    /// The object is used by other sessions.
    pub const OBJECT_IN_USE: Self = Self(*b"55006");
    /// The role lacks a privilege.
    pub const INSUFFICIENT_PRIVILEGE: Self = Self(*b"42501");
    /// The server accepts no more connections.
    pub const TOO_MANY_CONNECTIONS: Self = Self(*b"53300");
    /// Serialization failure; retry the transaction.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// Deadlock; retry the transaction.
    pub const DEADLOCK_DETECTED: Self = Self(*b"40P01");
    /// The connection failed.
    pub const CONNECTION_FAILURE: Self = Self(*b"08006");
    /// A prepared statement of this name exists.
    pub const DUPLICATE_STATEMENT_NAME: Self = Self(*b"42P05");
    /// A prepared statement does not exist.
    pub const INVALID_STATEMENT_NAME: Self = Self(*b"26000");
    /// The connection could not be established.
    pub const CANNOT_CONNECT: Self = Self(*b"08001");
    /// The peer does not follow the protocol.
    pub const PROTOCOL_VIOLATION: Self = Self(*b"08P01");
    /// The server does not support the feature.
    pub const FEATURE_NOT_SUPPORTED: Self = Self(*b"0A000");
    /// YugabyteDB restarts or rejects a transaction; sent by releases before 2.31.
    pub const YUGABYTEDB_RESTART: Self = Self(*b"YB003");
    /// Internal error of the server.
    pub const INTERNAL_ERROR: Self = Self(*b"XX000");
    /// Placeholder for a missing code, or one that is not five ASCII letters or digits.
    pub const UNKNOWN: Self = Self(*b"-----");

    /// Parses the field `C` of an error; returns [`Self::UNKNOWN`] for a malformed code.
    pub fn parse(text: &str) -> Self {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_alphanumeric) => Self(code),
            _ => Self::UNKNOWN,
        }
    }

    /// Returns whether a later connection attempt may succeed: the server is starting up or shutting
    /// down, has no free connection slot, or the connection failed. All other errors, such as a wrong
    /// password or a missing database, are permanent.
    pub fn is_transient(&self) -> bool {
        self.class() == "08"
            || self.class() == "57"
            || *self == Self::TOO_MANY_CONNECTIONS
            || *self == Self::UNKNOWN
    }

    /// Returns the five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("-----")
    }

    /// Returns the class, the first two characters: `08` for connection exceptions.
    pub fn class(&self) -> &str {
        self.as_str().get(..2).unwrap_or("--")
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SqlState({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_malformed_code_as_unknown() {
        assert_eq!(SqlState::parse("53100"), SqlState::DISK_FULL);
        assert_eq!(SqlState::parse("53100").class(), "53");
        assert_eq!(SqlState::parse("5310"), SqlState::UNKNOWN);
        assert_eq!(SqlState::parse("531\u{e9}"), SqlState::UNKNOWN);
    }
}
