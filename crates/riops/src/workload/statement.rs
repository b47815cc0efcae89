//! A statement that is prepared.

/// A statement that each session prepares once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its name in the session.
    pub name: String,
    /// Its text, with `$1`, `$2`, …
    pub sql: String,
    /// OIDs of its parameters' types.
    pub parameter_types: Vec<u32>,
}
