//! The tables of the store in which the agents meet.

use std::time::{Duration, Instant};

use super::clock::StoreClock;
use super::error::FleetError;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::store::live::create_tables;

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
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            // An interrupt ends the run, and the others must learn of it.
            let mut connection = Connection::open(&self.conninfo, &Interrupt::new())?;
            connection.execute(SESSION)?;
            self.since = Instant::now();
            connection
        };
        let connection = self.connection.insert(connection);
        connection.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
        Ok(connection)
    }

    /// Runs a statement. If the connection is lost, runs it again on a new one, until the store has not responded for a minute:
    /// all statements have the same effect if they are repeated.
    pub(super) fn query(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<Vec<Row>, FleetError> {
        let deadline = Instant::now() + STORE_TIMEOUT;
        loop {
            let asked = Instant::now();
            let result = self.connected().and_then(|each| each.query_with(sql, parameters));
            match result {
                Ok(rows) => {
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
                    if Instant::now() >= deadline {
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

    /// Returns what is known of all agents. Those without a heartbeat for `lost_after` are lost, unless this agent was
    /// without the store itself: then they were, too.
    pub(super) fn state(&mut self, stage: u32, lost_after: Duration) -> Result<State, FleetError> {
        let lost_after_s = lost_after.as_secs_f64().to_string();
        let rows = self.ask(STATE, &[Some(&stage.to_string()), Some(&lost_after_s)])?;
        let can_judge = self.since.elapsed() > lost_after;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |column: usize| row.get(column).cloned().flatten();
        let number = |column: usize| text(column).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(State {
            joined: number(0),
            connected: number(1),
            lost_connecting: if can_judge { number(2) } else { 0 },
            lost_running: if can_judge { number(3) } else { 0 },
            lost_settled: if can_judge { number(4) } else { 0 },
            ended: number(5),
            done: number(6),
            first_stage: number(7),
            failed: text(8),
            lost_agent: text(9).filter(|_| can_judge),
            start_s: text(10).and_then(|text| text.parse().ok()),
            result: text(11),
            first_conducts: text(12).is_some() || !can_judge,
            first_has_verified: text(12).as_deref() == Some("done"),
            refused: text(13),
        })
    }

    /// Compares the own clock with that of the store, a few times.
    pub(super) fn read_clock_again(&mut self) -> Result<(), FleetError> {
        self.read_clock(EXCHANGES_LATER)
    }

    fn read_clock(&mut self, exchanges: usize) -> Result<(), FleetError> {
        for _ in 0..exchanges {
            let sent = Instant::now();
            let reply = self.connected()?.query_value(CLOCK)?;
            let received = Instant::now();
            if let Some(store_s) = reply.and_then(|text| text.parse().ok()) {
                self.clock.add(sent, store_s, received);
            }
        }
        Ok(())
    }
}
