//! Agents that follow: agent 0 conducts an experiment, and founds a fleet for each of its runs.

use super::HEARTBEAT_MIN;
use super::error::FleetError;
use super::heartbeat::lost_after;
use super::meeting::Meeting;
use crate::plan::Plan;
use crate::server::ConnInfo;

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
