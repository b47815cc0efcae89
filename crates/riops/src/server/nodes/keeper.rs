//! Keeping up with the nodes while a stage runs: which have come back, which have joined, whose role has
//! changed hands.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::look::{LOOK_PATIENCE, listed, look, quick};
use super::{Entry, LEFT_OUT, Nodes, Role};
use crate::host::Interrupt;
use crate::plan::Spread;
use crate::server::connection::Connection;
use crate::server::conninfo::ConnInfo;

/// How often the list of nodes is read again.
const REFRESH: Duration = Duration::from_mins(5);
/// How often the keeper of the list looks whether there is something to do.
const KEEPER_LOOK: Duration = Duration::from_millis(100);

impl Nodes {
    /// Changes whenever a node has come back or joined.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Relaxed)
    }

    /// Whether there is anything to keep up with.
    #[must_use]
    pub fn need_a_keeper(&self) -> bool {
        self.0.spread != Spread::Off
    }

    /// Watches over the list until `over`: nodes that failed are tried again, the cluster is asked for
    /// its nodes from time to time and after errors. `changed` is called when a node has come.
    pub fn keep(&self, over: &Interrupt, changed: &dyn Fn()) {
        let mut refreshed = Instant::now();
        while !over.requested() {
            std::thread::sleep(KEEPER_LOOK);
            let before = self.changes();
            self.try_failed_again(over);
            let wanted = self.0.refresh_wanted.load(Ordering::Relaxed);
            let wait = if wanted { LEFT_OUT } else { REFRESH };
            if refreshed.elapsed() >= wait {
                self.0.refresh_wanted.store(false, Ordering::Relaxed);
                refreshed = Instant::now();
                if self.0.discovered {
                    self.refresh(over);
                } else {
                    self.look_at_all(over);
                }
            }
            if self.changes() != before {
                changed();
            }
        }
    }

    fn try_failed_again(&self, over: &Interrupt) {
        let due: Vec<(usize, ConnInfo)> = {
            let entries = self.entries();
            let due = |entry: &Entry| entry.failed_at.is_some_and(|at| at.elapsed() >= LEFT_OUT);
            (0..)
                .zip(entries.iter())
                .filter(|(_, entry)| due(entry))
                .map(|(number, entry)| (number, entry.node.conninfo.clone()))
                .collect()
        };
        for (number, conninfo) in due {
            self.look_at(number, &conninfo, over);
        }
    }

    /// Looks at one node, and keeps what is seen: a standby that was promoted takes writes.
    fn look_at(&self, number: usize, conninfo: &ConnInfo, over: &Interrupt) {
        let look = look(conninfo, over);
        if let Some(entry) = self.entries().get_mut(number) {
            let before = (entry.failed_at.is_some(), entry.node.role);
            entry.failed_at = look.is_err().then(Instant::now);
            if let Ok((role, _)) = look
                && !self.0.discovered
            {
                entry.node.role = role;
            }
            if look_is_news(before, (entry.failed_at.is_some(), entry.node.role)) {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            // Where it has come back the cluster may not have named it for a while.
            if before.0 && entry.failed_at.is_none() {
                self.0.refresh_wanted.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Looks at the nodes that were named by hand: roles may have changed hands.
    fn look_at_all(&self, over: &Interrupt) {
        for (number, node) in self.live() {
            self.look_at(number, &node, over);
        }
    }

    fn live(&self) -> Vec<(usize, ConnInfo)> {
        (0..)
            .zip(self.entries().iter())
            .filter(|(_, entry)| entry.member && entry.failed_at.is_none())
            .map(|(number, entry)| (number, entry.node.conninfo.clone()))
            .collect()
    }

    /// Asks a node that answers for all of them. Who is not named any more gets no further sessions.
    fn refresh(&self, over: &Interrupt) {
        let ask = |conninfo: &ConnInfo| {
            let mut connection = Connection::open(&quick(conninfo), over)?;
            connection.set_deadline(Some(Instant::now() + LOOK_PATIENCE));
            listed(&mut connection, &self.0.conninfo)
        };
        let mut found = None;
        for (number, conninfo) in self.live() {
            match ask(&conninfo) {
                Ok(listed) => {
                    found = listed;
                    break;
                }
                Err(_) => self.mark_failed(number),
            }
        }
        let Some(found) = found else {
            return;
        };
        let mut entries = self.entries();
        for entry in entries.iter_mut() {
            let member = found.iter().any(|node| node.name == entry.node.name);
            if member && !entry.member {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            entry.member = member;
        }
        for node in found {
            if let Some(known) = entries.iter_mut().find(|entry| entry.node.name == node.name) {
                known.node.connections = node.connections;
            } else {
                entries.push(Entry { node, failed_at: None, member: true, sessions: 0 });
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Whether sessions may want to move: a node has come back, or another one takes writes.
fn look_is_news(before: (bool, Role), after: (bool, Role)) -> bool {
    (before.0 && !after.0) || before.1 != after.1
}
