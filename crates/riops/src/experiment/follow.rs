//! An agent of a fleet that takes part in the runs of an experiment, which agent 0 conducts.

use std::time::{Duration, Instant};

use super::place::{ConductError, Conductor};
use super::servers::Servers;
use crate::fleet::{Follower, Membership};
use crate::plan::Share;
use crate::record::ExperimentId;
use crate::store::{self, ExperimentState};
use crate::study::tag;
use crate::study::{Experiment, Goal};
use crate::units::format::short_id;

/// How often an agent looks for the next run.
const POLL: Duration = Duration::from_millis(500);

/// Divides the runs of an experiment among the agents of a fleet.
///
/// # Errors
/// [`ConductError`] if a run cannot be divided, or depends on one machine.
pub fn divide(experiment: &mut Experiment, own: &Membership) -> Result<(), ConductError> {
    let agents = own.agents;
    let Some(agent) = own.agent else {
        return Err(ConductError::Refused(
            "each agent of an experiment needs its number: --agent K; agent 0 conducts".to_owned(),
        ));
    };
    if let Goal::Saturation(settings) = &mut experiment.goal {
        settings.first = settings.first.max(agents);
    }
    for cell in &experiment.cells {
        let mut plan = cell.plan.clone();
        if matches!(experiment.goal, Goal::Saturation(_)) {
            plan.sessions = plan.sessions.max(agents);
        }
        plan.shared(Share { agent, agents })
            .map_err(|source| ConductError::Plan { cell: experiment.cell_name(cell), source })?;
        if cell.server.database.is_none() {
            return Err(ConductError::Refused(
                "an experiment of a fleet needs a server that all agents reach: -d postgresql://…"
                    .to_owned(),
            ));
        }
    }
    experiment.agents = Some(agents);
    Ok(())
}

impl Conductor<'_> {
    /// Takes part in the runs of an experiment as this agent of the fleet. Returns whether it is complete; false after an
    /// interrupt.
    ///
    /// # Errors
    /// [`ConductError`] if agent 0 conducts another experiment, none, or has ended too early.
    pub fn follow(
        &self,
        mut experiment: Experiment,
        own: &Membership,
        agent: u32,
    ) -> Result<bool, ConductError> {
        let store = store::open(&self.location, self.interrupt)?;
        let mut servers = Servers::new(store, None, ExperimentState::default(), self);
        let mut follower = Follower::open(&own.store, &own.name, agent)?;
        let notice = |text: &str| self.events.notice(text);
        notice(&format!("fleet {}: agent 0 conducts, agent {agent} follows", own.name));
        let deadline = Instant::now() + own.within;
        let mut is_known = false;
        loop {
            if let Some(plan) = follower.waiting()? {
                let id = plan.tags.get(tag::EXPERIMENT).map_or("", String::as_str);
                let no_experiment =
                    |_| ConductError::Failed("agent 0 conducts no experiment".to_owned());
                let id: ExperimentId = id.parse().map_err(no_experiment)?;
                if is_known && id != experiment.id {
                    let text = format!("agent 0 conducts another experiment, {id}");
                    return Err(ConductError::Refused(text));
                }
                (is_known, experiment.id) = (true, id);
                let unknown = || {
                    ConductError::Failed("agent 0 conducts an experiment that this agent does not have: specify the same options on all".to_owned())
                };
                let task = experiment.task_of_tags(&plan.tags).ok_or_else(unknown)?;
                notice(&format!("{}, round {}", experiment.task_name(&task), task.block));
                match servers.take_part(&experiment, &task)? {
                    Err(error) => notice(&error),
                    Ok(record) if !record.verdict.valid => {
                        let reasons = record.verdict.reasons.join("; ");
                        notice(&format!("run {} is NOT VALID: {reasons}", record.id));
                    }
                    Ok(_) => {}
                }
            } else if is_known {
                // Free only if no process conducts it.
                if let Some(is_complete) = servers.is_complete(&experiment.id)? {
                    if is_complete {
                        return Ok(true);
                    }
                    return Err(ConductError::Failed(format!(
                        "agent 0 has ended, and the experiment is not complete; continue it on all agents with `riops {} --resume {}`",
                        experiment.goal.command(),
                        short_id(&experiment.id)
                    )));
                }
            } else if Instant::now() >= deadline
                // Agent 0 may prepare for a long time.
                && servers.is_fleet_free(&own.name)?
            {
                let text = format!("agent 0 has not begun an experiment in fleet {}", own.name);
                return Err(ConductError::Failed(text));
            }
            if !self.interrupt.pause(POLL) {
                return Ok(false);
            }
        }
    }
}
