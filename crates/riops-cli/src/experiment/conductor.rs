//! What `riops sweep` and `riops ab` have in common: an experiment is stored, conducted, continued, listed and
//! shown.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use riops::experiment::{End, Experiment, Failure, Goal, Study, conduct, next};
use riops::record::Status;
use riops::report;
use riops::store::{self, ExperimentState, StoreError, StoreLocation, StoredExperiment};
use riops::units::Span;
use riops::units::format::short_id;
use riops::units::text::json_text;

use super::bench::{Changed, Servers};
use super::draft::Draft;
use super::follow::{divide, follow};
use super::results::{Results, exit_code};
use super::stored::{
    databases, needs_trust, require_agents, require_passwords, same, trust_or_refuse,
};
use super::words::Databases;
use crate::args::fleet::FleetOptions;
use crate::args::sweep::ResumeOptions;
use crate::args::{StoreOptions, TargetOptions, TrustOption};
use crate::failure::refuse;
use crate::fleet::Membership;
use crate::stored;
use crate::ui::Ui;

/// Lists the stored experiments.
pub(crate) fn list(store_options: &StoreOptions, form: &str, ui: Ui) -> Result<ExitCode> {
    let found = stored::open_existing(store_options, ui)?.experiments()?;
    crate::ui::print_done(&match form {
        "json" => json_text(&found)?,
        "markdown" | "csv" => {
            return refuse(format!("experiments are listed as text or json, not as {form}"));
        }
        _ => report::experiments_text(&found, crate::ui::output_columns()),
    })
}

/// Conducts experiments of a store.
pub(crate) struct Conductor<'a> {
    pub(crate) store_options: &'a StoreOptions,
    pub(crate) fleet: &'a FleetOptions,
    pub(crate) results: Results<'a>,
    pub(crate) ui: Ui,
}

impl Conductor<'_> {
    /// Conducts a new experiment.
    pub(crate) fn start(&self, draft: Draft) -> Result<ExitCode> {
        let membership = Membership::of(self.fleet, self.store_options, self.ui)?;
        let (mut experiment, databases) = draft.define()?;
        if let Some(own) = &membership {
            divide(&mut experiment, own)?;
        }
        let study = Study::load(experiment, Vec::new(), Vec::new());
        if self.results.options.dry_run {
            return crate::ui::print_done(&report::plan_text(&study));
        }
        if let Some((own, agent)) = membership.as_ref().and_then(Membership::following) {
            return follow(study.experiment, (own, agent), databases, self.ui);
        }
        self.results.require_writable()?;
        let (study, end) = self.store_and_conduct(study.experiment, membership, databases)?;
        self.show(&study, end)
    }

    /// Conducts the A/B test of a draft, or continues the stored one that is the same.
    pub(crate) fn measured(&self, draft: Draft, continues: bool) -> Result<(Study, End)> {
        let (experiment, databases) = draft.define()?;
        if !continues {
            return self.store_and_conduct(experiment, None, databases);
        }
        let location = self.location(None)?;
        let store = store::open(&location, self.ui.interrupt)?;
        let Some(stored) = same(&store, &experiment)? else {
            drop(store);
            return self.store_and_conduct(experiment, None, databases);
        };
        let Experiment { id, created_at, seed, .. } = Experiment::of_stored(&stored)?;
        let again = experiment.clone();
        let experiment = Experiment { id, created_at, seed, ..experiment };
        let mut records = experiment.runs_in(&store)?;
        // What failed may have been the machine.
        records.retain(|record| record.status != Status::Failed);
        let study = Study::load(experiment, records, Vec::new());
        let lock = store.lock_experiment(&stored.id)?;
        let lock = lock.ok_or_else(|| anyhow!("another riops process conducts {}", stored.id))?;
        let state = (databases.clone(), stored.state);
        let servers = Servers::new((store, location), (Some(lock), None), state, self.ui);
        let found = self.conduct(study, servers);
        let Err(Some(Changed(changes))) = found.as_ref().map_err(|error| error.downcast_ref())
        else {
            return found;
        };
        // The runs of another machine cannot be compared with those of this one.
        self.ui.notice(&format!("measuring again, because this changed: {}", changes.join("; ")));
        self.store_and_conduct(again, None, databases)
    }

    fn store_and_conduct(
        &self,
        experiment: Experiment,
        membership: Option<Membership>,
        databases: Databases,
    ) -> Result<(Study, End)> {
        let location = self.location(membership.as_ref())?;
        let store = store::open(&location, self.ui.interrupt)?;
        store.require_writable()?;
        let lock = store.lock_experiment(&experiment.id)?;
        let lock = lock.ok_or_else(|| anyhow!("the id {} is in use", experiment.id))?;
        let state = ExperimentState::default();
        store.save_experiment(&StoredExperiment {
            id: experiment.id.clone(),
            name: experiment.name.clone(),
            kind: experiment.goal.name().to_owned(),
            created_at: experiment.created_at,
            definition: serde_json::to_string(&experiment)?,
            state: state.clone(),
            notes: Vec::new(),
        })?;
        let rights = (Some(lock), membership);
        let servers = Servers::new((store, location), rights, (databases, state), self.ui);
        self.conduct(Study::load(experiment, Vec::new(), Vec::new()), servers)
    }

    /// Continues a stored experiment.
    pub(crate) fn resume(
        &self,
        options: &ResumeOptions,
        trust: TrustOption,
        target: &TargetOptions,
        time_limit: Option<Span>,
    ) -> Result<ExitCode> {
        let part = options.resume.as_deref().unwrap_or("last");
        let membership = Membership::of(self.fleet, self.store_options, self.ui)?;
        let location = self.location(membership.as_ref())?;
        let store = store::open_existing(&location, self.ui.interrupt)?
            .ok_or_else(|| StoreError::NoExperiments(location.to_string()))?;
        let id = store.experiment(part)?.id;
        if let Some((own, agent)) = membership.as_ref().and_then(Membership::following) {
            let stored = store.experiment(&id)?;
            if stored.state.finished_at.is_some() {
                self.ui.notice(&format!("the experiment {id} is complete"));
                return Ok(ExitCode::SUCCESS);
            }
            let mut experiment = Experiment::of_stored(&stored)?;
            trust_or_refuse(&mut experiment, trust)?;
            require_agents(&experiment, membership.as_ref())?;
            let databases = databases(&mut experiment, target)?;
            return follow(experiment, (own, agent), databases, self.ui);
        }
        let Some(lock) = store.lock_experiment(&id)? else {
            bail!("another riops process conducts the experiment {id}; wait until it ends");
        };
        // Its state may have changed until it was locked.
        let mut stored = store.experiment(&id)?;
        let mut experiment = Experiment::of_stored(&stored)?;
        require_agents(&experiment, membership.as_ref())?;
        experiment.time_limit_s =
            time_limit.map(|limit| limit.0.as_secs_f64()).or(experiment.time_limit_s);
        let mut failures: Vec<Failure> = serde_json::from_str(&stored.state.failures)?;
        let mut records = experiment.runs_in(&store)?;
        if options.retry_failed {
            failures.clear();
            stored.state.failures = ExperimentState::default().failures;
            stored.state.finished_at = None;
            records.retain(|record| record.status != Status::Failed);
        }
        // A run that has lost an agent says nothing about its cell.
        records.retain(|record| record.agents.iter().all(|agent| agent.status.is_some()));
        trust_or_refuse(&mut experiment, trust)?;
        let databases = databases(&mut experiment, target)?;
        let study = Study::load(experiment, records, failures);
        if self.results.options.dry_run {
            return crate::ui::print_done(&report::plan_text(&study));
        }
        self.results.require_writable()?;
        if next(&study).is_some() {
            require_passwords(&study.experiment, &databases)?;
        }
        let state = (databases, stored.state);
        let rights = (Some(lock), membership);
        let mut servers = Servers::new((store, location), rights, state, self.ui);
        servers.allow_changed = options.allow_changed;
        let (study, end) = self.conduct(study, servers)?;
        self.show(&study, end)
    }

    /// Where the runs are stored, and the agents meet.
    fn location(&self, membership: Option<&Membership>) -> Result<StoreLocation> {
        membership
            .map_or_else(|| stored::location(self.store_options, self.ui), |own| Ok(own.location()))
    }

    fn show(&self, study: &Study, end: End) -> Result<ExitCode> {
        self.results.show(study, self.ui)?;
        Ok(ExitCode::from(exit_code(study, end)))
    }

    fn conduct(&self, mut study: Study, mut servers: Servers) -> Result<(Study, End)> {
        let id = study.experiment.id.clone();
        servers.lock_fleet()?;
        self.ui.notice(&report::start_line(&study));
        let result = conduct(&mut study, &mut servers, self.ui.interrupt);
        servers.close(&study.experiment, matches!(result, Ok(End::Complete)));
        let end = result?;
        // A search tries loads that fail.
        let is_search = matches!(study.experiment.goal, Goal::Saturation(_));
        let failed = study.failures().len();
        let again = |option| {
            let command = study.experiment.goal.command();
            let trust = if needs_trust(&study.experiment).is_some() { " --trust" } else { "" };
            format!("`riops {command} --resume {}{option}{trust}`", short_id(&id))
        };
        let notice = match end {
            End::Complete if failed > 0 && !is_search => {
                format!("failed runs: {failed}; repeat them with {}", again(" --retry-failed"))
            }
            End::Complete => {
                if servers.state.finished_at.is_none() {
                    servers.state.finished_at = Some(Timestamp::now());
                    servers.store.update_experiment(&id, &servers.state)?;
                }
                return Ok((study, end));
            }
            End::Failing => format!(
                "the first runs failed; fix the cause and continue with {}",
                again(" --retry-failed")
            ),
            End::TimeLimit => format!("time limit reached; continue with {}", again("")),
            End::Interrupted => format!("interrupted; continue with {}", again("")),
        };
        self.ui.notice(&notice);
        Ok((study, end))
    }
}
