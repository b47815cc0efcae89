//! Runs in progress in the database of a PostgreSQL store.
//!
//! The writer updates a heartbeat, because a reader on another machine cannot know whether it lives. Its commits do
//! not wait for the disk: a lost event only delays a chart.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{LiveError, LiveSink, LiveSource};
use crate::host::Interrupt;
use crate::record::{LIVE_VERSION, LiveRun, RunEvent};
use crate::server::{ConnInfo, Connection, ConnectionError};

/// A run without a heartbeat for this time is not shown: the writer sends one every 3 seconds.
const STALE_AFTER_S: &str = "15";
/// Events that are kept before a state replaces them.
const EVENTS_MAX: u64 = 2_000;
/// A statement that takes longer has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// At the end of a run, how long the removal of its rows may take. A heartbeat that stops has the same effect.
const END_TIMEOUT: Duration = Duration::from_secs(1);

const SESSION: &str = include_str!("../../../sql/live/session.sql");
const CREATE: &str = include_str!("../../../sql/live/create.sql");
const EXISTS: &str = include_str!("../../../sql/live/exists.sql");
const FORGET: &str = include_str!("../../../sql/live/forget.sql");
const START: &str = include_str!("../../../sql/live/start.sql");
const EVENT: &str = include_str!("../../../sql/live/event.sql");
const STATE: &str = include_str!("../../../sql/live/state.sql");
const HEARTBEAT: &str = include_str!("../../../sql/live/heartbeat.sql");
const END: &str = include_str!("../../../sql/live/end.sql");
const RUNS: &str = include_str!("../../../sql/live/runs.sql");
const RUN: &str = include_str!("../../../sql/live/run.sql");
const EVENTS: &str = include_str!("../../../sql/live/events.sql");

fn connect(conninfo: &ConnInfo, interrupt: &Interrupt) -> Result<Connection, ConnectionError> {
    let mut conninfo = conninfo.clone();
    conninfo.application_name.get_or_insert_with(|| "riops live".to_owned());
    let mut connection = Connection::open(&conninfo, interrupt)?;
    connection.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
    connection.execute(SESSION)?;
    Ok(connection)
}

/// Writes one run to the database. Removes it when dropped.
pub(super) struct PostgresqlSink {
    connection: Connection,
    id: String,
    /// Number of the last event.
    event_number: u64,
    /// Number of the event that the state contains.
    state_number: u64,
}

impl PostgresqlSink {
    /// Connects to the database of a store and adds the run.
    ///
    /// # Errors
    /// [`LiveError::Database`] if the database cannot be written.
    pub(super) fn create(conninfo: &ConnInfo, run: &LiveRun) -> Result<Self, LiveError> {
        // Ctrl-C ends the run, which is published to its end.
        let mut connection = connect(conninfo, &Interrupt::new())?;
        create_tables(&mut connection, EXISTS, CREATE)?;
        connection.execute(FORGET)?;
        let (id, state) = (run.id.to_string(), serde_json::to_string(run)?);
        connection.query_with(START, &[Some(&id), Some(&state)])?;
        Ok(Self { connection, id, event_number: 0, state_number: 0 })
    }

    fn run(&mut self, sql: &str, more: &[&str]) -> Result<(), LiveError> {
        self.connection.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
        let parameters: Vec<Option<&str>> =
            std::iter::once(self.id.as_str()).chain(more.iter().copied()).map(Some).collect();
        self.connection.query_with(sql, &parameters)?;
        Ok(())
    }
}

/// Executes `create` unless the query `is_there` returns true. A role that may only write rows can use existing tables.
pub(crate) fn create_tables(
    connection: &mut Connection,
    is_there: &str,
    create: &str,
) -> Result<(), ConnectionError> {
    let exists = |connection: &mut Connection| {
        Ok::<_, ConnectionError>(connection.query_value(is_there)?.as_deref() == Some("t"))
    };
    if exists(connection)? {
        return Ok(());
    }
    match connection.execute(create) {
        // Another riops has created them at the same time.
        Err(ConnectionError::Server(_)) if exists(connection)? => Ok(()),
        created => created,
    }
}

impl LiveSink for PostgresqlSink {
    fn publish(&mut self, event: &RunEvent, run: &LiveRun) -> Result<(), LiveError> {
        self.event_number += 1;
        let event_number = self.event_number.to_string();
        if self.event_number - self.state_number < EVENTS_MAX {
            return self.run(EVENT, &[&event_number, &serde_json::to_string(event)?]);
        }
        self.state_number = self.event_number;
        self.run(STATE, &[&serde_json::to_string(run)?, &event_number])
    }

    fn heartbeat(&mut self) -> Result<(), LiveError> {
        self.run(HEARTBEAT, &[])
    }
}

impl Drop for PostgresqlSink {
    fn drop(&mut self) {
        self.connection.set_deadline(Some(Instant::now() + END_TIMEOUT));
        let _ = self.connection.query_with(END, &[Some(&self.id)]);
    }
}

/// Reads the runs of a database.
pub(super) struct PostgresqlSource {
    conninfo: ConnInfo,
    interrupt: Interrupt,
    /// `None` before the first call, and after an error.
    connection: Option<Connection>,
    followed: HashMap<String, Followed>,
}

/// A run whose events are read as they arrive.
struct Followed {
    run: Option<LiveRun>,
    /// Number of the last event that was applied.
    event_number: u64,
}

impl PostgresqlSource {
    /// Creates a source, which connects at the first call.
    pub(super) fn new(conninfo: ConnInfo, interrupt: &Interrupt) -> Self {
        let interrupt = interrupt.clone();
        Self { conninfo, interrupt, connection: None, followed: HashMap::new() }
    }

    fn read(&mut self, connection: &mut Connection) -> Result<Vec<LiveRun>, LiveError> {
        connection.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
        if connection.query_value(EXISTS)?.as_deref() != Some("t") {
            return Ok(Vec::new());
        }
        let rows = connection.query_with(RUNS, &[Some(STALE_AFTER_S)])?;
        let published =
            rows.iter().filter_map(|row| Some((text(row, 0)?.to_owned(), integer(row, 1)?)));
        let published: Vec<(String, u64)> = published.collect();
        self.followed.retain(|id, _| published.iter().any(|(other, _)| other == id));
        for (id, state_number) in published {
            let is_known = self
                .followed
                .get(&id)
                .is_some_and(|followed| followed.event_number >= state_number);
            if !is_known {
                let rows = connection.query_with(RUN, &[Some(&id)])?;
                let Some(followed) = rows.first().and_then(|row| Followed::from_row(row)) else {
                    continue;
                };
                self.followed.insert(id.clone(), followed);
            }
            if let Some(followed) = self.followed.get_mut(&id) {
                let after = followed.event_number.to_string();
                for row in connection.query_with(EVENTS, &[Some(&id), Some(&after)])? {
                    followed.apply(&row);
                }
            }
        }
        let mut runs: Vec<LiveRun> =
            self.followed.values().filter_map(|followed| followed.run.clone()).collect();
        runs.sort_by_key(|run| (run.started_at, run.id));
        Ok(runs)
    }
}

fn text(row: &[Option<String>], column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

fn integer(row: &[Option<String>], column: usize) -> Option<u64> {
    text(row, column)?.parse().ok()
}

impl Followed {
    /// Reads a state.
    fn from_row(row: &[Option<String>]) -> Option<Self> {
        let run = serde_json::from_str(text(row, 0)?).ok();
        let run = run.filter(|run: &LiveRun| run.version <= LIVE_VERSION);
        Some(Self { run, event_number: integer(row, 1)? })
    }

    /// Applies an event. Events of a newer version are skipped.
    fn apply(&mut self, row: &[Option<String>]) {
        if let (Some(run), Some(Ok(event))) =
            (&mut self.run, text(row, 1).map(serde_json::from_str))
        {
            run.apply(&event);
        }
        self.event_number = integer(row, 0).unwrap_or(self.event_number);
    }
}

impl LiveSource for PostgresqlSource {
    fn runs(&mut self) -> Result<Vec<LiveRun>, LiveError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.conninfo, &self.interrupt)?,
        };
        let runs = self.read(&mut connection)?;
        self.connection = Some(connection);
        Ok(runs)
    }
}
