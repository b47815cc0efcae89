//! What `riops sweep` and `riops ab` have in common: an experiment is stored, conducted, continued, also by another process,
//! listed and shown.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use riops::experiment::{End, Experiment, Failure, Goal, Study, conduct, next};
use riops::plan::Trust;
use riops::record::Status;
use riops::report;
use riops::store::{self, ExperimentState, Store, StoreError, StoreLocation, StoredExperiment};
use riops::units::Span;
use riops::units::format::short_id;
use riops::units::text::json_text;

use super::bench::{Changed, Servers};
use super::draft::Draft;
use super::follow::{divide, follow};
use super::results::{Results, exit_code};
use super::words::{Databases, without_password};
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
        self.results.show(&study, self.ui)?;
        Ok(ExitCode::from(exit_code(&study, end)))
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
        self.results.show(&study, self.ui)?;
        Ok(ExitCode::from(exit_code(&study, end)))
    }

    /// Where the runs are stored, and the agents meet.
    fn location(&self, membership: Option<&Membership>) -> Result<StoreLocation> {
        membership
            .map_or_else(|| stored::location(self.store_options, self.ui), |own| Ok(own.location()))
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

/// Returns the newest stored experiment that measures the same. Ids, times and seeds differ.
fn same(store: &Store, experiment: &Experiment) -> Result<Option<StoredExperiment>> {
    for known in store.experiments()?.into_iter().filter(|known| known.name == experiment.name) {
        let stored = store.experiment(&known.id)?;
        let Ok(mut other) = Experiment::of_stored(&stored) else { continue };
        let own = experiment.clone();
        (other.id, other.created_at, other.seed) = (own.id, own.created_at, own.seed);
        (other.time_limit_s, other.notes) = (own.time_limit_s, own.notes);
        for (other, own) in other.cells.iter_mut().zip(&own.cells) {
            (other.plan.seed, other.plan.trust) = (own.plan.seed, own.plan.trust);
        }
        if other == *experiment {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// Fails if another number of agents continues an experiment: its runs could not be compared.
fn require_agents(experiment: &Experiment, membership: Option<&Membership>) -> Result<()> {
    let given = membership.map(|own| own.agents);
    if given == experiment.agents {
        return Ok(());
    }
    let text =
        |agents: Option<u32>| agents.map_or("one client".to_owned(), |n| format!("a fleet of {n}"));
    refuse(format!(
        "the experiment is measured by {}, not by {}",
        text(experiment.agents),
        text(given)
    ))
}

/// Returns the connection string of the command line by the one of the experiment. If all cells use the same
/// database, it replaces that.
pub(crate) fn databases(experiment: &mut Experiment, target: &TargetOptions) -> Result<Databases> {
    let mut found = Databases::new();
    if let Some(given) = &target.database {
        let masked = without_password(given);
        let known: BTreeSet<_> =
            experiment.cells.iter().map(|cell| &cell.server.database).collect();
        if known.len() > 1 && !known.contains(&Some(masked.clone())) {
            return refuse(format!("the experiment uses several databases, but not {masked}"));
        }
        if known.len() == 1 {
            for cell in &mut experiment.cells {
                cell.server.database = Some(masked.clone());
            }
        }
        found.insert(masked, given.clone());
    }
    Ok(found)
}

/// Returns what an experiment does on this machine besides measuring: its plans, or a server that names a program or a
/// file.
fn needs_trust(experiment: &Experiment) -> Option<String> {
    experiment.cells.iter().find_map(|cell| {
        let server = || cell.server.named_program_or_file().map(|text| format!("uses {text}"));
        cell.plan.needs_trust().or_else(server)
    })
}

/// Permits that, if the user trusts the stored experiment. Otherwise fails if there is anything: the store may be
/// shared.
pub(crate) fn trust_or_refuse(experiment: &mut Experiment, trust: TrustOption) -> Result<()> {
    if trust.trust {
        experiment.cells.iter_mut().for_each(|cell| cell.plan.trust = Trust(true));
        return Ok(());
    }
    match needs_trust(experiment) {
        Some(what) => refuse(format!("the stored experiment {what}: permit it with --trust")),
        None => Ok(()),
    }
}

/// Fails if the password of a database is missing: passwords are not stored.
fn require_passwords(experiment: &Experiment, given: &Databases) -> Result<()> {
    let masked = experiment.cells.iter().filter_map(|cell| cell.server.database.as_ref());
    let mut missing =
        masked.filter(|database| database.contains("***") && !given.contains_key(*database));
    let Some(database) = missing.next() else {
        return Ok(());
    };
    refuse(format!(
        "the password for {database} is not stored: specify the database again with -d; for several databases use the password file (~/.pgpass) from the start"
    ))
}
