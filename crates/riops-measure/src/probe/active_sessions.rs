//! The active session history of the nodes of a `YugabyteDB` cluster, read once after a stage. Not tested against a live server.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::host::Interrupt;
use crate::server::nodes::Node;
use crate::server::{Connection, ConnectionError};
use riops_model::record::ActivityRecord;

const HISTORY: &str = include_str!("../../sql/probe/active_session_history.sql");
/// Time for one node: reading the history stops the sampler of the node.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the history of the available nodes between a start and `seconds` later, or why no node has one.
///
/// # Errors
/// The message of the first node, if none returned its history.
pub fn read(
    nodes: &[Node],
    started_at: Timestamp,
    seconds: f64,
) -> Result<Vec<ActivityRecord>, String> {
    let (mut records, mut failure) = (Vec::new(), None);
    for node in nodes.iter().filter(|node| !node.down) {
        match read_node(node, started_at, seconds) {
            Ok(events) => records.extend(events),
            Err(error) => drop(failure.get_or_insert(error.to_string())),
        }
    }
    match failure {
        Some(failure) if records.is_empty() => Err(failure),
        _ => Ok(records),
    }
}

fn read_node(
    node: &Node,
    started_at: Timestamp,
    seconds: f64,
) -> Result<Vec<ActivityRecord>, ConnectionError> {
    let mut connection = Connection::open(&node.conninfo, &Interrupt::new())?;
    connection.set_deadline(Some(Instant::now() + NODE_TIMEOUT));
    // The clocks of client and server may differ: the times are relative to now.
    let from = Timestamp::now().duration_since(started_at).as_secs_f64();
    let (from, to) = (format!("{from:.3}"), format!("{:.3}", (from - seconds).max(0.0)));
    let rows = connection.query(&HISTORY.replace("{from}", &from).replace("{to}", &to))?;
    let event = |row: Vec<Option<String>>| match <[Option<String>; 4]>::try_from(row) {
        Ok([component, class, event, Some(active)]) => Some(ActivityRecord {
            node: node.name.clone(),
            component: component.unwrap_or_default(),
            class: class.unwrap_or_default(),
            event: event.unwrap_or_default(),
            active: active.parse().ok()?,
        }),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(event).collect())
}
