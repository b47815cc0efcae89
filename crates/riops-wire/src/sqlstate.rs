//! SQLSTATE, the five characters that name an error, and the few that riops acts on.
//!
//! The list is appendix A of the PostgreSQL documentation.

use std::fmt;

/// An error code: five characters, of which the first two are its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// Authentication failed.
    pub const INVALID_PASSWORD: Self = Self(*b"28P01");
    /// No rule of the server lets the session in.
    pub const INVALID_AUTHORIZATION: Self = Self(*b"28000");
    /// The database does not exist.
    pub const INVALID_CATALOG_NAME: Self = Self(*b"3D000");
    /// The disk is full.
    pub const DISK_FULL: Self = Self(*b"53100");
    /// Somebody uses it.
    pub const OBJECT_IN_USE: Self = Self(*b"55006");
    /// The role may not do that.
    pub const INSUFFICIENT_PRIVILEGE: Self = Self(*b"42501");
    /// The server takes no more connections.
    pub const TOO_MANY_CONNECTIONS: Self = Self(*b"53300");
    /// Another transaction got in the way: run it again.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// Two transactions waited for each other: run it again.
    pub const DEADLOCK_DETECTED: Self = Self(*b"40P01");
    /// A connection broke.
    pub const CONNECTION_FAILURE: Self = Self(*b"08006");
    /// No connection came about.
    pub const CANNOT_CONNECT: Self = Self(*b"08001");
    /// The peer does not follow the protocol.
    pub const PROTOCOL_VIOLATION: Self = Self(*b"08P01");
    /// The server starts, stops or recovers.
    pub const CANNOT_CONNECT_NOW: Self = Self(*b"57P03");
    /// The server does not have this.
    pub const FEATURE_NOT_SUPPORTED: Self = Self(*b"0A000");
    /// Something went wrong inside the server.
    pub const INTERNAL_ERROR: Self = Self(*b"XX000");
    /// What stands where the server sent no code, or one that is not five printable characters.
    pub const UNKNOWN: Self = Self(*b"-----");

    /// Takes the text of an error's field `C`; [`Self::UNKNOWN`] for anything malformed.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_alphanumeric) => Self(code),
            _ => Self::UNKNOWN,
        }
    }

    /// Whether the server may let a session in a little later: it starts or stops, has no free
    /// slot, or the connection broke. Anything else (a wrong password, a missing database) stays
    /// as it is.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.class() == "08"
            || self.class() == "57"
            || *self == Self::TOO_MANY_CONNECTIONS
            || *self == Self::UNKNOWN
    }

    /// The five characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("-----")
    }

    /// The class, the first two characters: `08` for a lost connection.
    #[must_use]
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
    fn a_malformed_code_is_unknown() {
        assert_eq!(SqlState::parse("53100"), SqlState::DISK_FULL);
        assert_eq!(SqlState::parse("53100").class(), "53");
        assert_eq!(SqlState::parse("5310"), SqlState::UNKNOWN);
        assert_eq!(SqlState::parse("531\u{e9}"), SqlState::UNKNOWN);
    }
}
