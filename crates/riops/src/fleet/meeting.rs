//! The tables of the store in which the agents meet.
//! Also the clock of the store, by which all start.

use std::time::{Duration, Instant, SystemTime};

use super::error::FleetError;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::store::live::create_tables;
use crate::units::Span;

const SESSION: &str = include_str!("../../sql/fleet/session.sql");
const CREATE: &str = include_str!("../../sql/fleet/create.sql");
const EXISTS: &str = include_str!("../../sql/fleet/exists.sql");
const CLOCK: &str = include_str!("../../sql/fleet/clock.sql");
pub(super) const STATE: &str = include_str!("../../sql/fleet/state.sql");

/// A statement that takes longer has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a store that does not respond is tried again, and the pause between two attempts.
const STORE_TIMEOUT: Duration = Duration::from_mins(1);
const STORE_PAUSE: Duration = Duration::from_millis(250);
/// After a statement that took longer, the heartbeats of the others may be late as well.
const STALL: Duration = Duration::from_secs(1);
/// An attempt after that.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// A start, or the end after a breach, is at most this far in the future: the largest fleet needs a fraction of it.
const AHEAD_MAX: Duration = Duration::from_mins(10);
/// Exchanges with the clock of the store at the beginning, and later.
const EXCHANGES: usize = 20;
const EXCHANGES_LATER: usize = 4;

/// A row in text format.
type Row = Vec<Option<String>>;

/// The connection of an agent to the store. It outlives a restart of the store.
#[derive(Debug)]
pub(super) struct Meeting {
    conninfo: ConnInfo,
    /// `None` after it was lost.
    connection: Option<Connection>,
    /// Start of the current connection.
    since: Instant,
    /// When the store was first asked without a response since the last one.
    silent_since: Option<Instant>,
    pub(super) clock: StoreClock,
    /// Id of the fleet, and what only this agent knows.
    pub(super) fleet: String,
    pub(super) token: String,
}

/// What an agent knows of the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    pub(super) joined: u64,
    /// Whose sessions of the stage are connected, or which take no part in it.
    pub(super) connected: u64,
    /// Without a heartbeat and without connected sessions.
    pub(super) lost_connecting: u64,
    /// Without a heartbeat, and with or without changes that are not in the ledger.
    pub(super) lost_running: u64,
    pub(super) lost_settled: u64,
    /// No longer running.
    pub(super) ended: u64,
    /// With a result, or failed.
    pub(super) done: u64,
    /// The stage of the first agent.
    pub(super) first_stage: u64,
    /// The first agent that failed, with its error.
    pub(super) failed: Option<String>,
    /// The first agent that was lost.
    pub(super) lost_agent: Option<String>,
    /// The agreed start, by the clock of the store.
    pub(super) start_s: Option<f64>,
    pub(super) result: Option<String>,
    /// Whether the first agent will conduct the end, and whether it has verified the data.
    pub(super) first_conducts: bool,
    pub(super) first_has_verified: bool,
    /// The last agent that did not fit, and why.
    pub(super) refused: Option<String>,
}

impl Meeting {
    /// Connects to the store, creates the tables, and reads its clock.
    pub(super) fn open(conninfo: &ConnInfo) -> Result<Self, FleetError> {
        let mut conninfo = conninfo.clone();
        conninfo.application_name.get_or_insert_with(|| "riops fleet".to_owned());
        let now = Instant::now();
        let mut meeting = Self {
            conninfo,
            connection: None,
            since: now,
            silent_since: None,
            clock: StoreClock::new(now),
            fleet: String::new(),
            token: String::new(),
        };
        create_tables(meeting.connected()?, EXISTS, CREATE)?;
        meeting.read_clock(EXCHANGES)?;
        Ok(meeting)
    }

    /// Returns the connection; opens it if it was lost.
    pub(super) fn connected(&mut self) -> Result<&mut Connection, ConnectionError> {
        let timeout = response_timeout(self.silent_since.map(|since| since.elapsed()));
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            // An interrupt ends the run, and the others must learn of it.
            let mut conninfo = self.conninfo.clone();
            conninfo.connect_timeout = conninfo.connect_timeout.min(timeout);
            let mut connection = Connection::open(&conninfo, &Interrupt::new())?;
            connection.set_deadline(Some(Instant::now() + timeout));
            connection.execute(SESSION)?;
            self.since = Instant::now();
            connection
        };
        let connection = self.connection.insert(connection);
        connection.set_deadline(Some(Instant::now() + timeout));
        Ok(connection)
    }

    /// Runs a statement. If the connection is lost, runs it again on a new one, until the store has not responded for a minute,
    /// to this statement and to those before: all statements have the same effect if they are repeated.
    pub(super) fn query(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<Vec<Row>, FleetError> {
        loop {
            let asked = Instant::now();
            let result =
                self.connected().and_then(|connection| connection.query_with(sql, parameters));
            match result {
                Ok(rows) => {
                    self.silent_since = None;
                    // The others were without the store, too.
                    if asked.elapsed() > STALL {
                        self.since = Instant::now();
                    }
                    return Ok(rows);
                }
                Err(error) if error.is_final() => {
                    return Err(error.into());
                }
                Err(error) => {
                    self.connection = None;
                    let since = *self.silent_since.get_or_insert(asked);
                    if since.elapsed() >= STORE_TIMEOUT {
                        return Err(error.into());
                    }
                    std::thread::sleep(STORE_PAUSE);
                }
            }
        }
    }

    /// Runs a statement whose first parameters are the fleet and the token. Returns whether the agent is still part of it.
    pub(super) fn tell(
        &mut self,
        sql: &str,
        more: &[Option<&str>],
    ) -> Result<Option<Row>, FleetError> {
        let (fleet, token) = (self.fleet.clone(), self.token.clone());
        let own = [Some(fleet.as_str()), Some(token.as_str())];
        let parameters: Vec<_> = own.into_iter().chain(more.iter().copied()).collect();
        Ok(self.query(sql, &parameters)?.into_iter().next())
    }

    /// Runs a statement whose only parameters are the fleet and `more`.
    pub(super) fn ask(&mut self, sql: &str, more: &[Option<&str>]) -> Result<Vec<Row>, FleetError> {
        let fleet = self.fleet.clone();
        let parameters: Vec<_> =
            [Some(fleet.as_str())].into_iter().chain(more.iter().copied()).collect();
        self.query(sql, &parameters)
    }

    /// Returns the state of all agents. Agents without a heartbeat for `lost_after` are lost, unless this agent could not
    /// reach the store either.
    pub(super) fn state(&mut self, stage: u32, lost_after: Duration) -> Result<State, FleetError> {
        let lost_after_s = lost_after.as_secs_f64().to_string();
        let rows = self.ask(STATE, &[Some(&stage.to_string()), Some(&lost_after_s)])?;
        let can_judge = self.since.elapsed() > lost_after;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |column: usize| row.get(column).cloned().flatten();
        let count = |column: usize| text(column).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(State {
            joined: count(0),
            connected: count(1),
            lost_connecting: if can_judge { count(2) } else { 0 },
            lost_running: if can_judge { count(3) } else { 0 },
            lost_settled: if can_judge { count(4) } else { 0 },
            ended: count(5),
            done: count(6),
            first_stage: count(7),
            failed: text(8),
            lost_agent: text(9).filter(|_| can_judge),
            start_s: text(10).and_then(|text| text.parse().ok()),
            result: text(11),
            first_conducts: text(12).is_some() || !can_judge,
            first_has_verified: text(12).as_deref() == Some("done"),
            refused: text(13),
        })
    }

    /// Compares the own clock with the store's clock, a few times.
    pub(super) fn read_clock_again(&mut self) -> Result<(), FleetError> {
        self.read_clock(EXCHANGES_LATER)
    }

    fn read_clock(&mut self, exchanges: usize) -> Result<(), FleetError> {
        for _ in 0..exchanges {
            let sent = Instant::now();
            let reply = self.connected()?.query_value(CLOCK)?;
            let received = Instant::now();
            let store_s = reply.and_then(|text| text.parse().ok());
            if let Some(store_s) = store_s.filter(|store_s: &f64| store_s.is_finite()) {
                self.clock.add(sent, store_s, received);
            }
        }
        Ok(())
    }
}

/// Returns how long to wait for a response of a store that has not responded for this time: all attempts together end in time.
fn response_timeout(silent: Option<Duration>) -> Duration {
    let left = STORE_TIMEOUT.saturating_sub(silent.unwrap_or_default());
    left.clamp(ATTEMPT_TIMEOUT, RESPONSE_TIMEOUT)
}

// The clock of the store, as a client knows it.
//
// An exchange reads the clock of the store between two readings of the own monotonic clock, so the offset between the two is
// in an interval as long as the round trip, however asymmetric it is. The offset is in the intersection of the intervals of
// all exchanges (RFC 5905, sections 8 and 11.2.1; Cristian, "Probabilistic clock synchronization", Distributed Computing 3,
// 1989). Older intervals grow by the largest rate at which a clock is adjusted.

/// Largest difference between the rates of two clocks: NTP slews one by at most this (RFC 5905, section 11.3).
const DRIFT_MAX: f64 = 500e-6;
/// Resolution of the clock of a server, in seconds.
const RESOLUTION_S: f64 = 1e-6;
/// Readings of the system clock: a process may lose its processor within one.
const READINGS: usize = 5;

/// The offset to the store's clock, as far as it is known. Its times are seconds since 1970.
#[derive(Debug, Clone)]
pub(super) struct StoreClock {
    /// Origin of the own clock.
    origin: Instant,
    /// Interval of the time of the store at the origin.
    low_s: f64,
    high_s: f64,
    /// Own time of the last exchange, in seconds since the origin.
    last_s: f64,
    pub(super) exchanges: u64,
}

impl StoreClock {
    pub(super) fn new(origin: Instant) -> Self {
        Self { origin, low_s: f64::NEG_INFINITY, high_s: f64::INFINITY, last_s: 0.0, exchanges: 0 }
    }

    /// Adds an exchange: the time of the store was `store_s` at a moment between two own times.
    pub(super) fn add(&mut self, sent: Instant, store_s: f64, received: Instant) {
        let own_s = |at: Instant| at.saturating_duration_since(self.origin).as_secs_f64();
        let (sent_s, received_s) = (own_s(sent), own_s(received));
        let (low_s, high_s) = (store_s - received_s, store_s - sent_s + RESOLUTION_S);
        let grown_s = DRIFT_MAX * (received_s - self.last_s).max(0.0);
        (self.low_s, self.high_s) =
            ((self.low_s - grown_s).max(low_s), (self.high_s + grown_s).min(high_s));
        // One of the clocks was set: only the last exchange is of the clock as it is now.
        if self.low_s > self.high_s {
            (self.low_s, self.high_s) = (low_s, high_s);
        }
        self.last_s = received_s;
        self.exchanges += 1;
    }

    fn offset_s(&self) -> f64 {
        f64::midpoint(self.low_s, self.high_s)
    }

    /// Returns half the length of the interval that contains the offset, in seconds.
    pub(super) fn uncertainty_s(&self) -> f64 {
        (self.high_s - self.low_s) / 2.0
    }

    /// Returns how far the store's clock is ahead of this machine's clock, and the uncertainty, in seconds.
    pub(super) fn ahead_s(&self) -> (f64, f64) {
        let mut own = Self::new(self.origin);
        for _ in 0..READINGS {
            let sent = Instant::now();
            let own_s = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
            own.add(sent, own_s, Instant::now());
        }
        let grown_s = DRIFT_MAX * (own.last_s - self.last_s);
        (self.offset_s() - own.offset_s(), self.uncertainty_s() + own.uncertainty_s() + grown_s)
    }

    /// Returns the instant of a time of the store's clock; the origin if the time is earlier.
    ///
    /// # Errors
    /// [`FleetError::TooFar`] if it is later than any that riops sets.
    pub(super) fn instant_of(
        &self,
        what: &'static str,
        store_s: f64,
    ) -> Result<Instant, FleetError> {
        let since_s = store_s - self.offset_s();
        let in_s = since_s - self.origin.elapsed().as_secs_f64();
        if in_s.is_nan() || in_s > AHEAD_MAX.as_secs_f64() {
            return Err(FleetError::TooFar { what, in_s, limit_s: AHEAD_MAX.as_secs() });
        }
        Ok(self.origin + Span::of_seconds(since_s).0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl StoreClock {
        /// Returns the time of the store at an instant.
        fn time_at(&self, instant: Instant) -> f64 {
            instant.saturating_duration_since(self.origin).as_secs_f64() + self.offset_s()
        }
    }

    proptest! {
        #[test]
        fn the_offset_is_within_the_uncertainty_however_asymmetric_the_delays_are(
            offset_s in -1e6f64..2e9,
            delays in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..30),
        ) {
            let origin = Instant::now();
            let mut clock = StoreClock::new(origin);
            let mut now = Duration::ZERO;
            let mut shortest = u64::MAX;
            for (there_us, back_us) in delays {
                let sent = now;
                let read = sent + Duration::from_micros(there_us);
                now = read + Duration::from_micros(back_us);
                clock.add(origin + sent, read.as_secs_f64() + offset_s, origin + now);
                shortest = shortest.min(there_us + back_us);
            }
            // A float of seconds since 1970 has a resolution of 0.24 µs.
            let computed_s = clock.time_at(origin + now) - now.as_secs_f64();
            prop_assert!((computed_s - offset_s).abs() <= clock.uncertainty_s() + 1e-6);
            // At least as exact as the shortest round trip.
            let bound = shortest as f64 / 2e6 + DRIFT_MAX * now.as_secs_f64() + 3e-6;
            prop_assert!(clock.uncertainty_s() <= bound);
            let at = clock.instant_of("start", clock.time_at(origin + now)).unwrap();
            let error = at.max(origin + now) - at.min(origin + now);
            prop_assert!(error < Duration::from_micros(1));
        }
    }

    #[test]
    fn the_clock_of_this_machine_is_not_ahead_of_itself() {
        let mut clock = StoreClock::new(Instant::now());
        let sent = Instant::now();
        let own_s = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        clock.add(sent, own_s, Instant::now());
        let (ahead_s, uncertainty_s) = clock.ahead_s();
        assert!(ahead_s.abs() <= uncertainty_s, "{ahead_s} {uncertainty_s}");
    }

    #[test]
    fn a_time_of_the_store_that_riops_never_sets_is_refused() {
        let mut clock = StoreClock::new(Instant::now());
        let sent = Instant::now();
        clock.add(sent, 1_000.0, sent);
        let at = |store_s| clock.instant_of("start", store_s);
        assert!(at(1_300.0).is_ok() && at(-1e300).is_ok() && at(f64::NEG_INFINITY).is_ok());
        for store_s in [1_000.0 + 3_600.0, 1e10, 1e19, f64::MAX, f64::INFINITY, f64::NAN] {
            let text = at(store_s).unwrap_err().to_string();
            assert!(text.contains("the start of the fleet") && text.contains("600 s"), "{text}");
        }
    }

    #[test]
    fn all_attempts_to_reach_a_store_that_is_gone_have_one_deadline() {
        let timeout = |silent_s: Option<u64>| response_timeout(silent_s.map(Duration::from_secs));
        assert_eq!([timeout(None), timeout(Some(10))], [RESPONSE_TIMEOUT; 2]);
        assert_eq!(timeout(Some(45)), Duration::from_secs(15));
        assert_eq!([timeout(Some(59)), timeout(Some(3_600))], [ATTEMPT_TIMEOUT; 2]);
    }

    #[test]
    fn after_a_step_of_a_clock_the_last_exchange_counts() {
        let origin = Instant::now();
        let mut clock = StoreClock::new(origin);
        let at = |ms| origin + Duration::from_millis(ms);
        clock.add(at(0), 1_000.000_5, at(1));
        clock.add(at(10), 2_000.010_5, at(11));
        assert!((clock.time_at(at(20)) - 2_000.02).abs() < 0.001);
    }
}
