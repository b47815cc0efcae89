//! How an agent enters a fleet.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::error::FleetError;
use super::heartbeat::{Heartbeat, Pulse, lost_after};
use super::meeting::Meeting;
use super::{Fleet, HEARTBEAT_MAX, HEARTBEAT_MIN, POLL_MIN};
use crate::host::Interrupt;
use crate::plan::{Plan, Share};
use crate::run::differing_plans;
use crate::server::{ConnInfo, Connection};
use crate::store::{self, StoreLocation};

const LOCK: &str = "select pg_advisory_xact_lock(hashtextextended('riops fleets', 0))";
const PURGE: &str = include_str!("../../sql/fleet/purge.sql");
const RUNNING: &str = include_str!("../../sql/fleet/running.sql");
const INSERT: &str = include_str!("../../sql/fleet/insert.sql");
const TAKEN: &str = include_str!("../../sql/fleet/taken.sql");
const REFUSED: &str = include_str!("../../sql/fleet/refused.sql");
const JOIN: &str = include_str!("../../sql/fleet/join.sql");

/// A fleet without a heartbeat for this time, in seconds, is dead: a fleet of the same name, and any other fleet.
const DEAD_AFTER_S: &str = "60";
const FORGOTTEN_AFTER_S: &str = "600";

/// Fields that may differ between the plans of the agents. The seed may be random: the founder's seed is used. Workers and
/// driver depend on the machine.
pub(crate) const OWN_FIELDS: [&str; 3] = ["seed", "workers", "driver"];

/// Behavior of an agent if a fleet of the name exists, and if none exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Enters it, or founds one.
    Member,
    /// Conducts an experiment: waits until the fleet of the run before has ended, and founds one.
    Conductor,
    /// Enters it, and founds none.
    Follower,
}

/// The fleet that an agent wants to enter.
#[derive(Debug, Clone, Copy)]
pub struct Invitation<'a> {
    /// Name of the fleet.
    pub name: &'a str,
    /// Number of agents.
    pub agents: u32,
    /// Number of this agent, from 0; `None`: a free one.
    pub agent: Option<u32>,
    /// The plan of all agents.
    pub plan: &'a Plan,
    /// Identity of the server and the database, which must be the same for all agents.
    pub server: &'a str,
    /// How long the agent waits for the others.
    pub within: Duration,
    /// Whether it may found the fleet.
    pub role: Role,
}

impl Fleet {
    /// Enters the fleet of this name, or founds it, and waits until all agents have joined, and the first one has prepared
    /// what is missing. The store must exist.
    ///
    /// # Errors
    /// [`FleetError`] if the agent does not fit the fleet, the others do not come in time, or the store cannot be accessed.
    pub fn join(
        store: &ConnInfo,
        invitation: &Invitation<'_>,
        interrupt: &Interrupt,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, FleetError> {
        let Invitation { name, agents, agent, plan, .. } = *invitation;
        // Whether the plan can be divided does not depend on which agent this is.
        plan.shared(Share { agent: agent.unwrap_or(0), agents })?;
        // Creates it.
        let location = StoreLocation::Postgresql(Box::new(store.clone()));
        drop(store::open(&location, interrupt).map_err(|error| refused(name, error.to_string()))?);
        let mut meeting = Meeting::open(store)?;
        require_dedicated(&mut meeting, name)?;
        let every = plan.interval().clamp(HEARTBEAT_MIN, HEARTBEAT_MAX);
        let deadline = Instant::now() + invitation.within;
        let (id, agent, full_plan) = loop {
            match enter(&mut meeting, invitation, lost_after(every)) {
                Err(error @ FleetError::Refused { .. }) => {
                    let host = crate::host::machine::facts().host;
                    let agent = agent.map_or_else(String::new, |agent| format!(" {agent}"));
                    let text = format!("agent{agent} on {host}: {error}");
                    // The error says it here in any case.
                    let _ = meeting.query(REFUSED, &[Some(name), Some(&text)]);
                    return Err(error);
                }
                Err(FleetError::Occupied(_)) if Instant::now() < deadline => {
                    if !interrupt.pause(POLL_MIN) {
                        return Err(FleetError::Interrupted);
                    }
                }
                entered => break entered?,
            }
        };
        let share = Share { agent, agents };
        let pulse = Pulse {
            every,
            shows_all: agent == 0,
            plan: full_plan.clone(),
            interrupt: interrupt.clone(),
        };
        let mut fleet = Self {
            name: name.to_owned(),
            share,
            full_plan,
            id,
            host: crate::host::machine::facts().host,
            run: None,
            stage: 0,
            ahead_s: Vec::new(),
            heartbeat: Heartbeat::start(meeting, pulse)?,
            every,
            interrupt: interrupt.clone(),
            signal_before_end: None,
            is_conductor: false,
            has_settled: false,
            is_over: false,
        };
        notice(&format!("fleet {name}: this is agent {agent} of {agents}"));
        let joined = fleet.await_others(invitation.within, notice);
        joined.inspect_err(|error| fleet.fail(&error.to_string()))?;
        Ok(fleet)
    }

    fn await_others(
        &mut self,
        within: Duration,
        notice: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        let deadline = Instant::now() + within;
        let agents = u64::from(self.share.agents);
        let (mut known, mut is_told, mut refused) = (0, false, None);
        loop {
            let state = self.state()?;
            self.require_all(&state)?;
            if state.joined < agents && Instant::now() >= deadline {
                let joined = format!("{} of {agents} agents have joined", state.joined);
                let refused = state.refused.as_ref().map(|refused| format!("; {refused}"));
                return Err(self.no_start(joined + &refused.unwrap_or_default()));
            }
            if state.joined >= agents && (self.share.agent == 0 || state.first_stage > 0) {
                return Ok(());
            }
            if state.refused.is_some() && state.refused != refused {
                refused = state.refused;
                notice(refused.as_deref().unwrap_or_default());
            }
            if state.joined != known && state.joined < agents {
                notice(&format!("{} of {agents} agents have joined", state.joined));
                known = state.joined;
            }
            if state.joined >= agents && !is_told {
                notice("waiting for agent 0, which prepares what is missing");
                is_told = true;
            }
            self.pause()?;
        }
    }
}

fn refused(name: &str, reason: impl Into<String>) -> FleetError {
    FleetError::Refused { name: name.to_owned(), reason: reason.into() }
}

/// Fails behind a pooler in transaction mode, where several clients share the session that holds a lock.
fn require_dedicated(meeting: &mut Meeting, name: &str) -> Result<(), FleetError> {
    const PROCESS: &str = "select pg_backend_pid()";
    let connection = meeting.connected()?;
    let own = connection.session_info().process.to_string();
    // A pooler sends its own number at the start.
    let processes = [connection.query_value(PROCESS)?, connection.query_value(PROCESS)?];
    if processes.iter().all(|process| process.as_ref() == Some(&own)) {
        return Ok(());
    }
    let text = "the store is behind a connection pooler: agents need sessions of their own; use the address of the server";
    Err(refused(name, text))
}

/// Enters the fleet in one transaction. Returns the id of the fleet, the number of the agent, and the founder's plan.
fn enter(
    meeting: &mut Meeting,
    invitation: &Invitation<'_>,
    lost_after: Duration,
) -> Result<(Uuid, u32, Plan), FleetError> {
    let token = Uuid::now_v7().to_string();
    let connection = meeting.connected()?;
    connection.execute("begin")?;
    let entered = enter_locked(connection, invitation, &token, lost_after);
    connection.execute(if entered.is_ok() { "commit" } else { "rollback" })?;
    let (id, agent, full_plan) = entered?;
    (meeting.fleet, meeting.token) = (id.to_string(), token);
    Ok((id, agent, full_plan))
}

fn enter_locked(
    connection: &mut Connection,
    invitation: &Invitation<'_>,
    token: &str,
    lost_after: Duration,
) -> Result<(Uuid, u32, Plan), FleetError> {
    let Invitation { name, agents, plan, server, role, .. } = *invitation;
    connection.execute(LOCK)?;
    let lost_after_s = lost_after.as_secs_f64().to_string();
    connection.query_with(PURGE, &[Some(FORGOTTEN_AFTER_S), None, Some(&lost_after_s)])?;
    connection.query_with(PURGE, &[Some(DEAD_AFTER_S), Some(name), Some(&lost_after_s)])?;
    let own = [agents.to_string(), env!("CARGO_PKG_VERSION").to_owned(), server.to_owned()];
    let running = connection.query_with(RUNNING, &[Some(name)])?.into_iter().next();
    let (id, full_plan) = match (running, role) {
        (Some(_), Role::Conductor) => return Err(FleetError::Occupied(name.to_owned())),
        (None, Role::Follower) => {
            let reason = "agent 0, which founded it, has left".to_owned();
            return Err(FleetError::NoStart { name: name.to_owned(), reason });
        }
        (Some(row), _) => running_fleet(row, invitation, &own)?,
        (None, _) => create_fleet(connection, invitation, &own)?,
    };
    let agent = free_number(connection, &id.to_string(), invitation, lost_after)?;
    let (id_text, number_text, host) =
        (id.to_string(), agent.to_string(), crate::host::machine::facts().host);
    connection.query_with(JOIN, &[Some(&id_text), Some(&number_text), Some(token), Some(&host)])?;
    let full_plan = Plan { workers: plan.workers, driver: plan.driver, ..full_plan };
    Ok((id, agent, full_plan))
}

/// Creates a fleet. Returns its id and its plan.
fn create_fleet(
    connection: &mut Connection,
    invitation: &Invitation<'_>,
    own: &[String; 3],
) -> Result<(Uuid, Plan), FleetError> {
    let (id, json) = (Uuid::now_v7(), serde_json::to_string(invitation.plan)?);
    let [agents, version, server] = own.each_ref().map(|text| Some(text.as_str()));
    let id_text = id.to_string();
    let row = [Some(&*id_text), Some(invitation.name), agents, version, server, Some(&*json)];
    connection.query_with(INSERT, &row)?;
    Ok((id, invitation.plan.clone()))
}

/// Returns the id and the plan of a fleet, from its row, if the agent fits.
fn running_fleet(
    row: Vec<Option<String>>,
    invitation: &Invitation<'_>,
    own: &[String; 3],
) -> Result<(Uuid, Plan), FleetError> {
    let (name, plan) = (invitation.name, invitation.plan);
    let texts: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
    let [id, same @ .., json, is_started] = texts.as_slice() else {
        return Err(refused(name, "its row in the store is damaged"));
    };
    if is_started == "t" {
        let text = "it is running already: an agent that comes later, or again, cannot take part";
        return Err(refused(name, text));
    }
    require_same(name, own, same)?;
    let full_plan = Plan { trust: plan.trust, ..serde_json::from_str(json)? };
    let names = ["the fleet", "this agent"];
    if let Some(text) = differing_plans([&full_plan, plan], &OWN_FIELDS, names)? {
        return Err(refused(name, text));
    }
    let id = id.parse().map_err(|_| refused(name, "its id in the store is damaged"))?;
    Ok((id, full_plan))
}

/// Fails with the first difference between this agent and the fleet: number of agents, version, server, plan.
fn require_same(name: &str, own: &[String; 3], existing: &[String]) -> Result<(), FleetError> {
    let names = ["number of agents", "version of riops", "server"];
    let mut pairs = names.into_iter().zip(own.iter().zip(existing));
    match pairs.find(|(_, (own, existing))| own != existing) {
        Some((what, (own, existing))) => {
            Err(refused(name, format!("its {what} is {existing}, this agent's is {own}")))
        }
        None => Ok(()),
    }
}

/// Returns the given number, or the lowest free one.
fn free_number(
    connection: &mut Connection,
    fleet: &str,
    invitation: &Invitation<'_>,
    lost_after: Duration,
) -> Result<u32, FleetError> {
    let Invitation { name, agents, agent, .. } = *invitation;
    let lost_after_s = lost_after.as_secs_f64().to_string();
    let rows = connection.query_with(TAKEN, &[Some(fleet), Some(&lost_after_s)])?;
    let taken: Vec<(u32, String)> = rows
        .into_iter()
        .filter_map(|row| match row.as_slice() {
            [Some(agent_text), Some(host), Some(lives)] if lives == "t" => {
                Some((agent_text.parse().ok()?, host.clone()))
            }
            _ => None,
        })
        .collect();
    let holder = |wanted: u32| taken.iter().find(|(agent, _)| *agent == wanted);
    match agent {
        Some(agent) => match holder(agent) {
            Some((_, host)) => {
                Err(refused(name, format!("agent {agent} has joined already, on {host}")))
            }
            None => Ok(agent),
        },
        None => (0..agents)
            .find(|candidate| holder(*candidate).is_none())
            .ok_or_else(|| refused(name, format!("all of its {agents} agents have joined"))),
    }
}

const WAITING: &str = include_str!("../../sql/fleet/waiting.sql");

/// An agent between two fleets of the same name.
#[derive(Debug)]
pub struct Follower {
    meeting: Meeting,
    name: String,
    agent: u32,
}

impl Follower {
    /// Connects to the store, which must exist.
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed.
    pub fn open(store: &ConnInfo, name: &str, agent: u32) -> Result<Self, FleetError> {
        Ok(Self { meeting: Meeting::open(store)?, name: name.to_owned(), agent })
    }

    /// Returns the plan of the fleet that agent 0 has founded and that waits for this agent, if there is one.
    ///
    /// # Errors
    /// [`FleetError`] if the store cannot be accessed, or the plan is damaged.
    pub fn waiting(&mut self) -> Result<Option<Plan>, FleetError> {
        let lives_s = lost_after(HEARTBEAT_MIN).as_secs_f64().to_string();
        let agent = self.agent.to_string();
        let parameters = [Some(self.name.as_str()), Some(&*agent), Some(&*lives_s)];
        let plan = self.meeting.query(WAITING, &parameters)?.into_iter().flatten().flatten().next();
        Ok(plan.map(|json| serde_json::from_str(&json)).transpose()?)
    }
}
