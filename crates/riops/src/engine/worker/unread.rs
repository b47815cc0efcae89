//! Sessions with more bytes to read than their share of one turn.
//!
//! The poller is edge-triggered: it does not report a session again whose bytes were not all read. Such a
//! session waits in a list and gets its next share after the other sessions have been served.

use std::io;
use std::time::Duration;

use super::super::alarm::Alarm;
use super::super::session::Activity;
use super::{Clock, Worker};

impl<C: Clock> Worker<C> {
    /// Returns how long the next poll may wait; `None` until an event or the timer.
    pub(super) fn poll_timeout(&self, alarm: &mut Alarm) -> io::Result<Option<Duration>> {
        if self.has_more_to_do() {
            return Ok(Some(Duration::ZERO));
        }
        self.next_alarm().map_or(Ok(None), |at| alarm.wait_until(at, self.clock.now()))
    }

    /// Returns whether the next turn of the loop has work without any event.
    pub(super) fn has_more_to_do(&self) -> bool {
        !self.unread.is_empty() || !self.deferred.is_empty()
    }

    /// Puts a session at the end of the list.
    pub(super) fn read_later(&mut self, number: usize) {
        if let Some(session) = self.sessions.get_mut(number)
            && !matches!(session.activity, Activity::Ended | Activity::Connect)
        {
            session.unread = true;
            self.unread.push_back(number);
        }
    }

    /// Serves the first `count` sessions of the list.
    pub(super) fn serve_unread(&mut self, count: usize) {
        for _ in 0..count {
            let Some(number) = self.unread.pop_front() else {
                return;
            };
            // A session that has lost its connection since then has nothing to read.
            if let Some(session) = self.sessions.get_mut(number)
                && std::mem::take(&mut session.unread)
            {
                self.serve(number, false, false);
            }
        }
    }
}
