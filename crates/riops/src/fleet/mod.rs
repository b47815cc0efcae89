//! A fleet: several clients that run one plan together, as agents.
//!
//! They meet in the PostgreSQL store; nothing listens on a port. Each agent is an ordinary run of its share of the plan
//! (`plan::Share`), with two meetings: all start at the same time, and the data are verified when the changes of all are in the
//! ledger. At the end, each stores its record in the tables of the fleet, and one of them merges all (`run::merge`).
//!
//! # Course
//!
//! 1. `join`: an agent enters the fleet of the name, or founds it. Plan, version and server must be the same. When all have
//!    joined, the first one begins its run, and so prepares what is missing; the others begin when its sessions are connected.
//! 2. `agree_start`: when the sessions of all are connected, the start is set to a time of the store's clock, which each agent
//!    knows to half a round trip (`meeting`).
//! 3. A thread sends heartbeats (`heartbeat`). An agent without one for `lost_after` is lost: before the start, the fleet
//!    ends; after it, the others go on, and the result is not valid. The first agent reads the intervals of all, and sets the
//!    end of the run if they breach a threshold together (`watch`).
//! 4. `settled`, `finish`: all wait for each other. The first agent conducts: it takes the advisory lock of the fleet, verifies
//!    the data, merges and stores. If it dies, the lock is free, and another agent does the same under the same id.
//!
//! In an experiment, agent 0 founds a fleet of the same name for each run, and the others follow (`follow`).
//!
//! An agent is known by a token, so that a process that was replaced changes nothing. Each agent removes its row at the end,
//! and the last one the fleet; rows of the dead are removed by the others, or by the next fleet.

mod error;
mod heartbeat;
mod join;
mod manifest;
mod meeting;
mod membership;

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use uuid::Uuid;

use crate::engine::Agreement;
use crate::host::Interrupt;
use crate::plan::{Plan, Share};
use crate::record::{AgentRecord, ClockRecord, Point, Record};
use crate::run::{MergedPart, merge};
use crate::units::Span;
pub use error::FleetError;
use heartbeat::{Heartbeat, MISSED_MAX, lost_after};
pub(crate) use join::OWN_FIELDS;
pub use join::{Follower, Invitation, Role};
pub use manifest::Manifest;
use meeting::State;
pub use membership::{Membership, rank};

const CONNECTED: &str = include_str!("../../sql/fleet/connected.sql");
const SETTLED: &str = include_str!("../../sql/fleet/settled.sql");
const DONE: &str = include_str!("../../sql/fleet/done.sql");
const FAILED: &str = include_str!("../../sql/fleet/failed.sql");
const START: &str = include_str!("../../sql/fleet/start.sql");
const CONDUCT: &str = include_str!("../../sql/fleet/conduct.sql");
const PARTS: &str = include_str!("../../sql/fleet/parts.sql");
const RESULT: &str = include_str!("../../sql/fleet/result.sql");
const LEAVE: &str = include_str!("../../sql/fleet/leave.sql");
const REMOVE: &str = include_str!("../../sql/fleet/remove.sql");
const ABANDON: &str = include_str!("../../sql/fleet/abandon.sql");

/// Bounds of the time between two heartbeats; within them, it is the length of an interval.
const HEARTBEAT_MIN: Duration = Duration::from_secs(1);
const HEARTBEAT_MAX: Duration = Duration::from_secs(5);
/// Time from the agreement to the start, in addition to two polls of each agent: all agents must learn of it in time.
const HEAD_START: Duration = Duration::from_secs(1);
/// All agents together poll the state this often per second, and each agent at most ten times per second.
const POLLS_PER_S: f64 = 100.0;
const POLL_MIN: Duration = Duration::from_millis(100);

/// How a fleet ended for one of its agents.
#[derive(Debug)]
pub enum Finished {
    /// This agent conducts: it stores the record, and then calls [`Fleet::complete`].
    Conducts(Box<Record>),
    /// Another agent has stored the record of the fleet, which has this id, and its process ends with this code.
    Follows {
        /// Id of the record.
        run: String,
        /// Exit code.
        code: u8,
    },
}

/// The signal that interrupted a run, if there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signal(Option<i32>);

/// An agent of a fleet.
#[derive(Debug)]
pub struct Fleet {
    name: String,
    share: Share,
    full_plan: Plan,
    id: Uuid,
    host: String,
    /// Id of its run, in the names of its sessions.
    run: Option<Uuid>,
    /// Number of stages for which the sessions were connected.
    stage: u32,
    /// Lead of the store's clock over this machine's clock at the start of each stage, in seconds.
    ahead_s: Vec<f64>,
    heartbeat: Heartbeat,
    every: Duration,
    interrupt: Interrupt,
    /// Signal that had interrupted the run when the waits after the measurement began; `None` before them.
    signal_before_end: Option<Signal>,
    is_conductor: bool,
    /// Whether the changes of this agent are in the ledger. Without a ledger, there is nothing to verify.
    has_settled: bool,
    /// Whether the other agents know how this one ended.
    is_over: bool,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if !self.is_over {
            self.fail("its process ended before its run did");
        }
    }
}

impl Fleet {
    /// Returns the share of the plan that this agent runs.
    ///
    /// # Errors
    /// [`FleetError::Plan`] if the plan cannot be divided.
    pub fn plan(&self) -> Result<Plan, FleetError> {
        Ok(self.full_plan.shared(self.share)?)
    }

    /// Returns which of the agents this is.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Notes the id of the run of this agent.
    pub fn started(&mut self, run: Uuid) {
        self.run = Some(run);
    }

    /// Agrees on the start of a stage with the others. Call it when all sessions are connected.
    ///
    /// # Errors
    /// [`FleetError`] if an agent failed or was lost before the first start.
    pub fn agree_start(&mut self) -> Result<Agreement, FleetError> {
        self.stage += 1;
        self.heartbeat.shared.begin_stage()?;
        let ordinal = self.stage.to_string();
        let run = self.run.map(|run| run.to_string());
        let reply =
            self.heartbeat.shared.meeting().tell(CONNECTED, &[Some(&ordinal), run.as_deref()])?;
        reply.ok_or_else(|| FleetError::EndedWithout(self.name.clone()))?;
        let head_start_s = (HEAD_START + 2 * self.poll_every()).as_secs_f64().to_string();
        loop {
            let state = self.state()?;
            if let Some(start_s) = state.start_s {
                let mut meeting = self.heartbeat.shared.meeting();
                // Without it, the comparison before is less exact.
                let _ = meeting.read_clock_again();
                self.ahead_s.push(meeting.clock.ahead_s().0);
                let breach = Arc::clone(&self.heartbeat.shared.breach);
                return Ok(Agreement {
                    start: meeting.clock.instant_of("start", start_s)?,
                    breach,
                });
            }
            if self.stage == 1 {
                self.require_all(&state)?;
            }
            if state.connected.saturating_add(state.lost_connecting) >= state.joined {
                let mut meeting = self.heartbeat.shared.meeting();
                meeting.ask(START, &[Some(&ordinal), Some(&head_start_s)])?;
                continue;
            }
            self.pause()?;
        }
    }

    /// Fails if an agent has failed or was lost, or the user has interrupted.
    fn require_all(&self, state: &State) -> Result<(), FleetError> {
        let lost = state.lost_agent.as_ref().map(|agent| format!("{agent} was lost"));
        match state.failed.clone().or(lost) {
            Some(reason) => Err(self.no_start(reason)),
            None => Ok(()),
        }
    }

    fn no_start(&self, reason: impl Into<String>) -> FleetError {
        FleetError::NoStart { name: self.name.clone(), reason: reason.into() }
    }

    fn state(&self) -> Result<State, FleetError> {
        self.heartbeat.shared.meeting().state(self.stage, lost_after(self.every))
    }

    fn poll_every(&self) -> Duration {
        Span::of_seconds(f64::from(self.share.agents) / POLLS_PER_S).0.max(POLL_MIN)
    }

    /// Waits until the next poll.
    fn pause(&self) -> Result<(), FleetError> {
        if self.interrupt.pause(self.poll_every()) {
            return Ok(());
        }
        Err(FleetError::Interrupted)
    }

    /// Waits for the next poll after this agent has measured. Only a new signal ends the wait. The signal that ended the run and an
    /// interrupt of another agent do not: the other agents end as well, and this one waits for them.
    fn pause_at_the_end(&mut self) -> Result<(), FleetError> {
        let signal = Signal(self.interrupt.signal());
        if signal != *self.signal_before_end.get_or_insert(signal) {
            // Without the store, the others find out by themselves.
            let _ = self.heartbeat.shared.tell_interrupt();
            return Err(FleetError::Interrupted);
        }
        if self.interrupt.is_requested() {
            std::thread::sleep(self.poll_every());
        } else {
            self.interrupt.pause(self.poll_every());
        }
        Ok(())
    }

    /// Exchanges an interval. Returns the new merged intervals of all agents; only the first agent reads them.
    pub fn exchange(&self, point: &Point) -> Vec<Point> {
        self.heartbeat.shared.exchange(point)
    }

    /// Returns the intervals of all agents that [`Self::exchange`] has not returned. Call it after [`Self::finish`].
    pub fn last_points(&self) -> Vec<Point> {
        self.heartbeat.shared.last_points()
    }

    /// Waits until the changes of all agents are in the ledger. Returns whether this agent verifies the data.
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed, or the user interrupts the wait.
    pub fn settled(&mut self) -> Result<bool, FleetError> {
        self.has_settled = true;
        let points = self.heartbeat.shared.own_points()?;
        self.heartbeat.shared.meeting().tell(SETTLED, &[points.as_deref()])?;
        loop {
            let state = self.state()?;
            if state.ended.saturating_add(state.lost_running) >= state.joined {
                if self.may_conduct(&state) {
                    return self.conducts();
                }
                if state.first_has_verified {
                    return Ok(false);
                }
            }
            self.pause_at_the_end()?;
        }
    }

    /// Whether this agent may conduct the end of the fleet: the first one does, unless it has ended or was lost.
    fn may_conduct(&self, state: &State) -> bool {
        self.share.agent == 0 || !state.first_conducts
    }

    /// Returns whether this agent conducts the end of the fleet.
    fn conducts(&mut self) -> Result<bool, FleetError> {
        let rows = self.heartbeat.shared.meeting().ask(CONDUCT, &[])?;
        let reply = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        // A lock that was lost with its session may belong to another agent.
        self.is_conductor = reply.as_deref() == Some("t");
        Ok(self.is_conductor)
    }

    /// Passes the record of this agent on, and waits for the end of the fleet.
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed, the records do not fit, the user interrupts the wait, or the fleet has ended
    /// without this agent.
    pub fn finish(&mut self, mut record: Record) -> Result<Finished, FleetError> {
        to_time_of_store(&mut record, &self.ahead_s);
        number_sessions(&mut record, self.share);
        let _ = self.heartbeat.shared.meeting().read_clock_again();
        let agent = self.agent();
        let (record, agent) = (pack(&record)?, serde_json::to_string(&agent)?);
        let points = self.heartbeat.shared.own_points()?;
        let done = [Some(&*record), Some(&*agent), points.as_deref()];
        let told = self.heartbeat.shared.meeting().tell(DONE, &done)?;
        let name = self.name.clone();
        let ended_without = || FleetError::EndedWithout(name.clone());
        self.is_over = true;
        if told.is_none() {
            return Err(ended_without());
        }
        loop {
            let state = self.state()?;
            if let Some(result) = state.result {
                self.leave()?;
                let code = result.parse().map_err(|_| FleetError::NoRecord(result))?;
                return Ok(Finished::Follows { run: self.id.to_string(), code });
            }
            if state.joined == 0 {
                return Err(ended_without());
            }
            let lost = state.lost_running.saturating_add(state.lost_settled);
            let has_ended = state.done.saturating_add(lost) >= state.joined;
            if has_ended && self.may_conduct(&state) && self.conducts()? {
                let merged = self.merged();
                if let Err(error) = &merged {
                    self.end(&error.to_string())?;
                }
                return Ok(Finished::Conducts(Box::new(merged?)));
            }
            self.pause_at_the_end()?;
        }
    }

    /// Returns what is known about this agent besides its record.
    fn agent(&self) -> AgentRecord {
        let shared = &self.heartbeat.shared;
        let clock = shared.meeting().clock.clone();
        let (offset_s, uncertainty_s) = clock.ahead_s();
        let (stopped_s, most_s) =
            (shared.stopped_s(), f64::from(MISSED_MAX) * self.every.as_secs_f64());
        let failure =
            (stopped_s > most_s).then(|| format!("its process did not run for {stopped_s:.1} s"));
        AgentRecord {
            number: self.share.agent,
            host: self.host.clone(),
            clock: Some(ClockRecord { offset_s, uncertainty_s, exchanges: clock.exchanges }),
            stopped_s: Some(stopped_s),
            failure,
            ..AgentRecord::default()
        }
    }

    /// Merges the records of all agents.
    fn merged(&self) -> Result<Record, FleetError> {
        let rows = self.heartbeat.shared.meeting().ask(PARTS, &[])?;
        let parts: Vec<MergedPart> = rows.iter().map(|row| part(row)).collect::<Result<_, _>>()?;
        let mut merged = merge(self.id, parts, Some(&self.full_plan))?;
        if self.has_settled && merged.checks.is_empty() {
            let text = "the data were not verified: the agent that verified them was lost, or its verification failed";
            merged.verdict.reasons.push(text.to_owned());
            merged.verdict.valid = false;
        }
        Ok(merged)
    }

    /// Ends the fleet. Its record is stored, and the process ends with this code. Call it after [`Finished::Conducts`].
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed.
    pub fn complete(&mut self, code: u8) -> Result<(), FleetError> {
        self.end(&code.to_string())
    }

    /// Ends the fleet with an exit code, or the reason why there is no record.
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed.
    pub fn end(&self, result: &str) -> Result<(), FleetError> {
        self.heartbeat.shared.meeting().ask(RESULT, &[Some(result)])?;
        self.leave()
    }

    /// Tells the others that this agent has no record.
    pub fn fail(&mut self, error: &str) {
        self.is_over = true;
        let shared = &self.heartbeat.shared;
        let told = shared.meeting().tell(FAILED, &[Some(error)]);
        // Without the store, the others find out by themselves.
        if told.is_ok() {
            let _ = shared
                .meeting()
                .ask(ABANDON, &[Some(&lost_after(self.every).as_secs_f64().to_string())]);
        }
    }

    /// Removes the rows of this agent and of lost agents; the last agent removes the fleet.
    fn leave(&self) -> Result<(), FleetError> {
        let lost_after_s = lost_after(self.every).as_secs_f64().to_string();
        let mut meeting = self.heartbeat.shared.meeting();
        meeting.tell(LEAVE, &[Some(&lost_after_s)])?;
        meeting.ask(REMOVE, &[])?;
        Ok(())
    }
}

/// Moves the times of a record to the clock of the store, which was ahead by `ahead_s` at the start of each stage.
fn to_time_of_store(record: &mut Record, ahead_s: &[f64]) {
    let of_stages = record.stages.iter_mut().filter_map(|stage| stage.started_at.as_mut());
    let start_of_run = std::iter::once((&mut record.started_at, ahead_s.first()));
    for (at, ahead_s) in start_of_run.chain(of_stages.zip(ahead_s.iter().map(Some))) {
        let ahead = jiff::SignedDuration::try_from_secs_f64(ahead_s.copied().unwrap_or(0.0));
        *at = ahead.ok().and_then(|ahead| at.checked_add(ahead).ok()).unwrap_or(*at);
    }
}

/// Gives the sessions of an agent their numbers in the whole plan.
fn number_sessions(record: &mut Record, share: Share) {
    for stage in &mut record.stages {
        for session in &mut stage.session_loop.session_details {
            session.number = share.session(session.number.saturating_sub(1)) + 1;
        }
        for ended in &mut stage.session_loop.ended_sessions {
            ended.session = share.session(ended.session);
        }
    }
}

/// Largest record that is unpacked, in bytes: the series of a run has at most 100,000 points.
const RECORD_BYTES_MAX: u64 = 1 << 28;

/// Packs a record.
fn pack(record: &Record) -> Result<String, FleetError> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let json = serde_json::to_vec(record)?;
    let packed = encoder.write_all(&json).and_then(|()| encoder.finish());
    Ok(BASE64.encode(packed.map_err(failed)?))
}

fn unpack(text: &str) -> Result<Record, FleetError> {
    let bytes = BASE64.decode(text).map_err(|error| FleetError::Record(error.to_string()))?;
    let mut json = String::new();
    let mut decoder = ZlibDecoder::new(bytes.as_slice()).take(RECORD_BYTES_MAX);
    decoder.read_to_string(&mut json).map_err(failed)?;
    Ok(serde_json::from_str(&json)?)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: std::io::Error) -> FleetError {
    FleetError::Record(error.to_string())
}

/// Returns the part of an agent from its row: number, host, state, error, record, agent, seconds since its heartbeat, run.
fn part(row: &[Option<String>]) -> Result<MergedPart, FleetError> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref);
    let position = text(0).and_then(|text| text.parse().ok()).unwrap_or(0);
    if let (Some(record), Some(agent)) = (text(4), text(5)) {
        let agent: AgentRecord = serde_json::from_str(agent)?;
        return Ok(MergedPart { agent, record: Some(unpack(record)?) });
    }
    let silent_s: f64 = text(6).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let failure = text(3).map_or_else(
        || format!("lost: no heartbeat for {silent_s:.1} s; its transactions are missing"),
        |error| format!("failed: {error}"),
    );
    let host = text(1).unwrap_or_default().to_owned();
    let run = text(7).and_then(|text| text.parse().ok());
    let agent = AgentRecord {
        number: position,
        host,
        run,
        failure: Some(failure),
        ..AgentRecord::default()
    };
    Ok(MergedPart { agent, record: None })
}
