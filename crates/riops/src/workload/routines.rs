//! Routines that a workload requires in the server, for example to run its transaction loop there.

use super::keys::mix;

/// Prefix of the comment on every routine created by riops.
pub(crate) const ROUTINE_MARK: &str = "riops routine ";

/// Routines that a workload requires in the server, in addition to its tables.
pub struct Routines {
    /// Names of the routines.
    pub names: &'static [&'static str],
    /// Statements that create them in the current schema.
    pub sql: String,
}

impl Routines {
    /// Returns the comment that distinguishes these routines from those of another version of riops.
    #[must_use]
    pub fn mark(&self) -> String {
        let hash = self.sql.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        format!("{ROUTINE_MARK}{hash:016x}")
    }
}
