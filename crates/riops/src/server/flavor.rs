//! What differs between the flavors of servers in replies.

use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

use crate::record::Flavor;

impl Flavor {
    /// Returns whether an error may be the failure of a request to the storage, which `YugabyteDB` reports as an
    /// internal error, like any other one. After a commit or an autocommitted change, the outcome is then unknown.
    #[must_use]
    pub fn is_failed_request(self, error: &ServerError) -> bool {
        self == Self::YugabyteDb && error.sqlstate == SqlState::INTERNAL_ERROR
    }
}
