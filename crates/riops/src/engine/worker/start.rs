//! What an idle session does next: the next transaction, a look at its plans, a new connection, or
//! nothing more.

use super::super::findings::Moment;
use super::super::limit::Permission;
use super::super::session::{Activity, SessionError};
use super::{Clock, Worker};
use crate::metrics::{Counter, Origin};
use crate::units::Nanos;

/// Whether a transaction may start.
enum Next {
    Start {
        intended: Nanos,
        claimed: bool,
    },
    /// Not yet.
    Wait,
    /// No more.
    End,
}

impl<C: Clock> Worker<C> {
    /// Lets a session go on, and sends what it has to send.
    pub(super) fn go_on(&mut self, number: usize, now: Nanos) {
        self.advance(number, now);
        self.push_out(number);
    }

    /// Decides what a session does next. The end of one transaction is the start of the next: one
    /// look at the clock serves both.
    pub(super) fn advance(&mut self, number: usize, now: Nanos) {
        loop {
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            if session.activity != Activity::Work {
                return;
            }
            let over = now >= self.limit.end();
            let may_look = self.looking.is_none_or(|looking| looking == number);
            if session.next_check == Some(Moment::Middle)
                && may_look
                && !over
                && self.limit.half_is_over(now)
            {
                self.looking = Some(number);
                // What is under way ends first.
                if session.is_quiet() {
                    self.check(number, 0, now);
                }
                return;
            }
            let used_up =
                self.rules.reconnect_every.is_some_and(|every| session.since_connect >= every);
            if (used_up || session.moves) && !over {
                if session.is_quiet() {
                    self.renew(number, now);
                }
                return;
            }
            if !over && !session.has_room() {
                return;
            }
            match self.next_start(now) {
                Next::Start { intended, claimed } => {
                    if !self.begin(number, intended, now, claimed) {
                        return self.wind_up(number, now);
                    }
                }
                Next::Wait => return self.park(number),
                Next::End => return self.wind_up(number, now),
            }
        }
    }

    /// Begins the session's next transaction; false where it has none any more.
    fn begin(&mut self, number: usize, intended: Nanos, now: Nanos, claimed: bool) -> bool {
        let Some(session) = self.sessions.get_mut(number) else {
            return false;
        };
        session.begin(intended, now, claimed).unwrap_or_else(|error| {
            self.fail(number, error, now);
            true
        })
    }

    fn park(&mut self, number: usize) {
        if let Some(session) = self.sessions.get_mut(number)
            && !session.parked
        {
            session.parked = true;
            self.parked.push_back(number);
        }
    }

    /// The next start: now in the closed loop, else the next that is due.
    fn next_start(&mut self, now: Nanos) -> Next {
        loop {
            let intended = match &self.arrivals {
                None => now,
                Some(_) if now >= self.limit.end() => return Next::End,
                Some(arrivals) => arrivals.next(),
            };
            if intended > now {
                return Next::Wait;
            }
            let measured = intended >= self.limit.measure_start();
            if let Some(arrivals) = &mut self.arrivals
                && self.rules.skip_late
                && now.since(intended) > self.rules.late_after
            {
                arrivals.take();
                self.report.starts_taken += u64::from(measured);
                if measured {
                    self.report.recorder.count(Origin::default(), [(Counter::Skipped, 1)]);
                }
                continue;
            }
            let Permission::Start { claimed } = self.limit.permit(now) else {
                return Next::End;
            };
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.take();
                // By number there is one start for each transaction that is counted.
                let counted = if self.limit.is_by_number() { claimed } else { measured };
                self.report.starts_taken += u64::from(counted);
            }
            return Next::Start { intended, claimed };
        }
    }

    /// Lets the sessions that wait take the starts that are due.
    pub(super) fn start_due(&mut self, now: Nanos) {
        while let Some(&number) = self.parked.front() {
            let Some(due) = self.arrivals.as_ref().map(super::Arrivals::next) else {
                return;
            };
            if due > now {
                return;
            }
            self.parked.pop_front();
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            session.parked = false;
            // Each send takes its time: the next session starts that much later.
            let now = self.clock.now();
            self.go_on(number, now);
            let taken = self.arrivals.as_ref().is_some_and(|arrivals| arrivals.next() != due);
            if taken
                && self.limit.is_measured(now)
                && let Some(lag) = &mut self.report.recorder.start_lag
            {
                lag.record(now.since(due));
            }
        }
    }

    /// When the worker has to wake up by itself; the main thread calls for all else.
    pub(super) fn next_alarm(&self) -> Option<Nanos> {
        let start = self
            .arrivals
            .as_ref()
            .filter(|_| !self.parked.is_empty() && !self.ending)
            .map(super::Arrivals::next)
            .filter(|&start| start < self.limit.end());
        let again = self.postponed.peek().map(|postponed| postponed.due);
        start.into_iter().chain(again).min()
    }

    /// Looks at the session's plans from the given one on, then goes on with its work.
    pub(super) fn check(&mut self, number: usize, check: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if check < session.recipe.checks.len() {
            if let Err(error) = session.start_check(check) {
                self.fail(number, error, now);
            }
            return;
        }
        session.next_check = match session.next_check {
            Some(Moment::Middle) => Some(Moment::After),
            _ => None,
        };
        self.look_is_over(number);
        self.advance(number, now);
    }

    /// Lets another session look at its plans.
    pub(super) fn look_is_over(&mut self, number: usize) {
        if self.looking == Some(number) {
            self.looking = None;
        }
    }

    /// A session has nothing more to start: it ends when all is answered and looked at.
    fn wind_up(&mut self, number: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if !session.is_quiet() {
            return;
        }
        if session.next_check.is_some() {
            session.next_check = Some(Moment::After);
            return self.check(number, 0, now);
        }
        session.end();
        self.active -= 1;
    }

    /// The measurement is over: sessions that wait for something hear of it.
    pub(super) fn wind_up_all(&mut self, now: Nanos) {
        self.parked.clear();
        for number in 0..self.sessions.len() {
            match self.sessions.get(number).map(|session| session.activity) {
                Some(Activity::Work) => self.go_on(number, now),
                // Nobody waits for a connection that has nothing to do any more.
                Some(Activity::Connect) => self.give_up_connecting(number, now),
                _ => {}
            }
        }
    }

    /// Sends the sessions home whose node has come back, where that is wanted.
    pub(super) fn follow_nodes(&mut self, now: Nanos) {
        let changes = self.nodes.changes();
        if changes == self.nodes_seen {
            return;
        }
        self.nodes_seen = changes;
        if !self.rules.rebalance || self.ending {
            return;
        }
        for number in 0..self.sessions.len() {
            let stage_number = self.share.number(number as u64);
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            let connected = matches!(session.activity, Activity::Work | Activity::Check(_));
            if connected && self.nodes.should_move(stage_number, session.node) {
                session.moves = true;
                // What is under way ends first.
                if session.is_quiet() {
                    self.go_on(number, now);
                }
            }
        }
    }

    /// A new connection: the old one has served its number of transactions, or another node is due.
    fn renew(&mut self, number: usize, now: Nanos) {
        if let Some(session) = self.sessions.get_mut(number) {
            session.detach();
        }
        if let Err(error) = self.order_connection(number, true) {
            self.fail(number, SessionError::Io(error.to_string()), now);
        }
    }
}
