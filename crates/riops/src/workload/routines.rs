//! What a workload needs in a server beside tables: routines that run its loop there.

use super::keys::mix;

/// What the comment on a routine of riops's own begins with.
pub(crate) const ROUTINE_MARK: &str = "riops routine ";

/// Routines that a workload needs in the server beside its tables.
pub struct Routines {
    /// Their names, each of one routine.
    pub names: &'static [&'static str],
    /// What makes them, in the current schema.
    pub sql: String,
}

impl Routines {
    /// The comment that tells these routines from those of another riops.
    #[must_use]
    pub fn mark(&self) -> String {
        let hash = self.sql.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        format!("{ROUTINE_MARK}{hash:016x}")
    }
}
