//! Renames the superuser of a data directory that an earlier riops initialized.

use super::error::Result;
use super::state::{FORMER_USER, State, USER};
use crate::host::Interrupt;
use crate::server::connection::Connection;

/// A role cannot rename itself. This superuser does it, and exists only meanwhile.
const HELPER: &str = "riops_rename";

/// Renames the superuser of a running server to [`USER`], and returns the state with the new name. Continues
/// a rename that was interrupted. The SCRAM password stays valid, because it does not depend on the name.
///
/// # Errors
/// If the role cannot be renamed, for example because another role has the new name.
pub(super) fn rename_superuser(state: &State, interrupt: &Interrupt) -> Result<State> {
    let renamed = State { user: USER.to_owned(), ..state.clone() };
    let open = |user: &str| {
        let state = State { user: user.to_owned(), ..state.clone() };
        Connection::open(&state.conninfo(), interrupt)
    };
    if let Ok(mut former) = open(FORMER_USER) {
        former.execute(&format!("drop role if exists {HELPER}"))?;
        former.execute(&format!("create role {HELPER} superuser login"))?;
        drop(former);
        open(HELPER)?.execute(&format!("alter role {FORMER_USER} rename to {USER}"))?;
    }
    open(USER)?.execute(&format!("drop role if exists {HELPER}"))?;
    Ok(renamed)
}
