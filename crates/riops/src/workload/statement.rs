//! Statements of a session.

/// A statement that each session prepares once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Name of the prepared statement.
    pub name: String,
    /// Text, with the parameters `$1`, `$2`, …
    pub sql: String,
    /// OIDs of the parameter types.
    pub parameter_types: Vec<u32>,
}
