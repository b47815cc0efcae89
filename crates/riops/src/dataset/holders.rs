//! The sessions for which a lock or a database must wait, for messages.

use crate::server::Connection;
use crate::units::sql::literal;
use crate::workload::fill;

/// First key of the advisory locks: the letters `riop`.
pub(super) const LOCK_SPACE: i32 = 0x7269_6f70;

const LOCK_HOLDERS: &str = include_str!("../../sql/dataset/lock_holders.sql");
const CONNECTED: &str = include_str!("../../sql/dataset/connected.sql");

/// Sessions of other clients, as text; empty if they are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders(pub(crate) Vec<String>);

impl Holders {
    /// Returns the sessions that hold the advisory lock with this name. They are unknown if the query fails: the
    /// name is only for a message.
    pub(super) fn of_lock(connection: &mut Connection, name: &str) -> Self {
        let space = LOCK_SPACE.to_string();
        Self::query(connection, &fill(LOCK_HOLDERS, &[("space", &space), ("name", &literal(name))]))
    }

    /// Returns the sessions that are connected to a database, as [`Self::of_lock`] does.
    pub(crate) fn of_database(connection: &mut Connection, name: &str) -> Self {
        Self::query(connection, &fill(CONNECTED, &[("name", &literal(name))]))
    }

    /// Adds the sessions that are not in the list.
    pub(crate) fn merge(&mut self, more: Self) {
        let new: Vec<_> = more.0.into_iter().filter(|session| !self.0.contains(session)).collect();
        self.0.extend(new);
    }

    fn query(connection: &mut Connection, sql: &str) -> Self {
        Self(connection.query(sql).into_iter().flatten().flatten().flatten().collect())
    }
}

impl std::fmt::Display for Holders {
    /// Writes the sessions after a colon, or nothing.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => Ok(()),
            sessions => write!(formatter, ": {}", sessions.join("; ")),
        }
    }
}
