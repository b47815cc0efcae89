//! The sessions of a worker, by their numbers in it.

use std::ops::{Deref, DerefMut};

use super::super::session::Session;
use super::super::tally::SessionTally;

pub(in crate::engine) struct Sessions {
    all: Vec<Session>,
    /// Number of sessions that have not ended.
    pub(super) active: usize,
    /// Number of sessions whose last transaction has not ended.
    unfinished: usize,
}

impl Deref for Sessions {
    type Target = [Session];

    fn deref(&self) -> &[Session] {
        &self.all
    }
}

impl DerefMut for Sessions {
    fn deref_mut(&mut self) -> &mut [Session] {
        &mut self.all
    }
}

impl Sessions {
    pub(in crate::engine) fn new(all: Vec<Session>) -> Self {
        Self { active: all.len(), unfinished: all.len(), all }
    }

    /// Returns the number of sessions with a transaction in flight.
    pub(super) fn busy(&self) -> u64 {
        self.iter().filter(|session| !session.is_idle()).count() as u64
    }

    /// Records that the last transaction of a session has ended. Returns whether it was the last one of the worker.
    pub(super) fn finish(&mut self, number: usize) -> bool {
        match self.all.get_mut(number) {
            Some(session) if !session.finished => {
                session.finished = true;
                self.unfinished -= 1;
                self.unfinished == 0
            }
            _ => false,
        }
    }

    /// Returns the work of each session.
    pub(super) fn tallies(self) -> Vec<SessionTally> {
        self.all.into_iter().map(Session::into_tally).collect()
    }
}
