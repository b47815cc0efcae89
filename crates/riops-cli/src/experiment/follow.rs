//! An agent of a fleet that takes part in the runs of an experiment, which agent 0 conducts.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use riops::experiment::{Experiment, Goal, tag};
use riops::fleet::Follower;
use riops::plan::Share;
use riops::record::ExperimentId;
use riops::store::{self, ExperimentState};
use riops::units::format::short_id;

use super::bench::Servers;
use super::words::Databases;
use crate::failure::{INTERRUPTED, refuse};
use crate::fleet::Membership;
use crate::ui::Ui;

/// How often an agent looks for the next run.
const POLL: Duration = Duration::from_millis(500);

/// Makes an experiment that of a fleet. Fails if one of its runs cannot be divided, or depends on one machine.
pub(crate) fn divide(experiment: &mut Experiment, own: &Membership) -> Result<()> {
    let agents = own.agents;
    let Some(agent) = own.agent else {
        return refuse("each agent of an experiment needs its number: --agent K; agent 0 conducts");
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
            .map_err(|error| anyhow::Error::from(error).context(experiment.cell_name(cell)))?;
        if cell.server.database.is_none() {
            let text =
                "an experiment of a fleet needs a server that all agents reach: -d postgresql://…";
            return refuse(text);
        }
    }
    experiment.agents = Some(agents);
    Ok(())
}

/// Takes part in the runs until the experiment has ended.
pub(crate) fn follow(
    mut experiment: Experiment,
    (own, agent): (&Membership, u32),
    databases: Databases,
    ui: Ui,
) -> Result<ExitCode> {
    let place = (store::open(&own.location(), ui.interrupt)?, own.location());
    let state = (databases, ExperimentState::default());
    let mut servers = Servers::new(place, (None, Some(own.clone())), state, ui);
    let mut follower = Follower::open(&own.store, &own.name, agent)?;
    ui.notice(&format!("fleet {}: agent 0 conducts, agent {agent} follows", own.name));
    let deadline = Instant::now() + own.within;
    let mut is_known = false;
    loop {
        if let Some(plan) = follower.waiting()? {
            let id = plan.tags.get(tag::EXPERIMENT).map_or("", String::as_str);
            let id: ExperimentId = id.parse().context("agent 0 conducts no experiment")?;
            if is_known && id != experiment.id {
                return refuse(format!("agent 0 conducts another experiment, {id}"));
            }
            (is_known, experiment.id) = (true, id);
            let task = experiment.task_of_tags(&plan.tags).ok_or_else(|| {
                anyhow!("agent 0 conducts an experiment that this agent does not have: specify the same options on all")
            })?;
            ui.notice(&format!("{}, block {}", experiment.task_name(&task), task.block));
            match servers.take_part(&experiment, &task)? {
                Err(error) => ui.notice(&error),
                Ok(record) if !record.verdict.valid => {
                    let reasons = record.verdict.reasons.join("; ");
                    ui.notice(&format!("run {} is NOT VALID: {reasons}", record.id));
                }
                Ok(_) => {}
            }
        } else if is_known {
            // Free only if no process conducts it.
            if let Some(lock) = servers.store.lock_experiment(&experiment.id)? {
                drop(lock);
                if servers.store.experiment(&experiment.id)?.state.finished_at.is_some() {
                    return Ok(ExitCode::SUCCESS);
                }
                return Err(anyhow!(
                    "agent 0 has ended, and the experiment is not complete; continue it on all agents with `riops {} --resume {}`",
                    experiment.goal.command(),
                    short_id(&experiment.id)
                ));
            }
        } else if Instant::now() >= deadline
            // Agent 0 may prepare for a long time.
            && servers.store.lock_fleet(&own.name)?.is_some()
        {
            return Err(anyhow!("agent 0 has not begun an experiment in fleet {}", own.name));
        }
        if !ui.interrupt.pause(POLL) {
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
}
