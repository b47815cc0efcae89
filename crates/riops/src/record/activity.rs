//! The active session history of `YugabyteDB`.

use serde::{Deserialize, Serialize};

/// What the sessions and requests of a node did, from its active session history. Waits of YSQL for the tserver contain the time
/// of the events of the tserver: components must not be added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityRecord {
    /// Host and port of the node.
    pub node: String,
    /// `YSQL`, `TServer`, …
    pub component: String,
    /// Class of the event.
    pub class: String,
    /// The event.
    pub event: String,
    /// Mean number of sessions or requests with this event.
    pub active: f64,
}
