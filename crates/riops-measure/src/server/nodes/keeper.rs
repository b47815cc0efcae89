//! Monitors the nodes during a stage: detects nodes that return or join, and changes of roles.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::discovery::{listed, open_to_probe, probe};
use super::{Entry, Nodes, RETRY_AFTER};
use crate::host::Interrupt;
use crate::server::conninfo::ConnInfo;
use riops_model::plan::Spread;

/// How often the list of nodes is read again.
const REFRESH_INTERVAL: Duration = Duration::from_mins(5);
/// How often the monitoring thread checks for due work.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Nodes {
    /// Returns a counter that increases when a node returns, joins or changes its role.
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Relaxed)
    }

    /// Returns whether the nodes must be monitored with [`Self::monitor`].
    pub fn needs_monitoring(&self) -> bool {
        self.0.spread != Spread::Off
    }

    /// Monitors the nodes until `over` is set: probes failed nodes again, and reads the list of nodes
    /// every 5 minutes and after errors. Calls `changed` if [`Self::changes`] has increased.
    pub fn monitor(&self, over: &Interrupt, changed: &dyn Fn()) {
        let mut refreshed = Instant::now();
        while !over.is_requested() {
            std::thread::sleep(POLL_INTERVAL);
            let before = self.changes();
            self.retry_failed(over);
            let requested = self.0.refresh_requested.load(Ordering::Relaxed);
            let wait = if requested { RETRY_AFTER } else { REFRESH_INTERVAL };
            if refreshed.elapsed() >= wait {
                self.0.refresh_requested.store(false, Ordering::Relaxed);
                refreshed = Instant::now();
                if self.0.discovered {
                    self.refresh(over);
                } else {
                    self.probe_live(over);
                }
            }
            if self.changes() != before {
                changed();
            }
        }
    }

    fn retry_failed(&self, over: &Interrupt) {
        let is_due = |entry: &Entry| entry.failed_at.is_some_and(|at| at.elapsed() >= RETRY_AFTER);
        for (position, conninfo) in self.numbered(is_due) {
            self.probe_node(position, &conninfo, over);
        }
    }

    /// Returns the numbers and the settings of these nodes.
    fn numbered(&self, is_one: impl Fn(&Entry) -> bool) -> Vec<(usize, ConnInfo)> {
        (0..)
            .zip(self.entries().iter())
            .filter(|(_, entry)| is_one(entry))
            .map(|(position, entry)| (position, entry.node.conninfo.clone()))
            .collect()
    }

    /// Probes one node and updates its state. A promoted standby accepts writes from now on.
    fn probe_node(&self, position: usize, conninfo: &ConnInfo, over: &Interrupt) {
        let result = probe(conninfo, false, over);
        if let Some(entry) = self.entries().get_mut(position) {
            let (had_failed, role) = (entry.failed_at.is_some(), entry.node.role);
            entry.failed_at = result.is_err().then(Instant::now);
            if let Ok(probed) = result
                && !self.0.discovered
            {
                entry.node.role = probed.role;
            }
            let has_returned = had_failed && entry.failed_at.is_none();
            if has_returned || entry.node.role != role {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            // The cluster may have removed a failed node from its list.
            if has_returned {
                self.0.refresh_requested.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Probes the available nodes of a list given by the user, because their roles may have changed.
    fn probe_live(&self, over: &Interrupt) {
        for (position, node) in self.live() {
            self.probe_node(position, &node, over);
        }
    }

    fn live(&self) -> Vec<(usize, ConnInfo)> {
        self.numbered(|entry| entry.member && entry.failed_at.is_none())
    }

    /// Reads the list of nodes from an available node. Nodes that are no longer listed get no further
    /// sessions.
    fn refresh(&self, over: &Interrupt) {
        let read_list = |conninfo: &ConnInfo| {
            let mut connection = open_to_probe(conninfo, false, over)?;
            listed(&mut connection, &self.0.conninfo)
        };
        let first = self.live().into_iter().find_map(|(position, conninfo)| {
            read_list(&conninfo).inspect_err(|_| self.mark_failed(position)).ok()
        });
        let Some(Some(nodes)) = first else {
            return;
        };
        let mut entries = self.entries();
        for entry in entries.iter_mut() {
            let member = nodes.iter().any(|node| node.name == entry.node.name);
            if member && !entry.member {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            entry.member = member;
        }
        // A list of zeros does not replace the counted numbers.
        let has_numbers = nodes.iter().any(|node| node.connections > 0);
        for node in nodes {
            if let Some(known) = entries.iter_mut().find(|entry| entry.node.name == node.name) {
                if has_numbers {
                    known.node.connections = node.connections;
                }
            } else if self.may_grow() {
                entries.push(Entry { node, failed_at: None, member: true, sessions: 0 });
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
