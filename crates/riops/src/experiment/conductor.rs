//! Conducts an experiment: it is stored before its first run, and continued by any process later.

use jiff::Timestamp;

use super::conduct::conduct;
use super::place::{ConductError, Conductor, Select};
use super::servers::Servers;
use super::stored::{stored_definition, stored_runs};
use crate::host::Interrupt;
use crate::record::{Events, Status};
use crate::server::SelectError;
use crate::store::{
    self, ExperimentLock, ExperimentState, Store, StoreError, StoreLocation, StoredExperiment,
};
use crate::study::{
    Cell, End, Experiment, Failure, Goal, SaturationSettings, Search, Study, start_line,
};
use crate::units::format::{number_of, short_id};

/// A stored experiment that is continued: what is left is measured.
pub struct Continued {
    store: Store,
    lock: ExperimentLock,
    state: ExperimentState,
    /// The experiment and its finished runs.
    pub study: Study,
    /// Whether it goes on although the machine or a server has changed.
    pub allow_changed: bool,
}

impl<'a> Conductor<'a> {
    /// Returns a conductor of one client, whose events are ignored.
    pub fn new(location: StoreLocation, select: Select<'a>, interrupt: &'a Interrupt) -> Self {
        Self { location, membership: None, select, events: Events::ignored(), interrupt }
    }
}

impl Conductor<'_> {
    /// Stores a new experiment and conducts it.
    ///
    /// # Errors
    /// [`ConductError`] if a result could not be stored, or no further run is possible.
    pub fn start(&self, mut experiment: Experiment) -> Result<(Study, End), ConductError> {
        self.limit_sessions(&mut experiment)?;
        let store = store::open(&self.location, self.interrupt)?;
        store.require_writable()?;
        let lock = store.lock_experiment(&experiment.id)?;
        let in_use = || ConductError::Failed(format!("the id {} is in use", experiment.id));
        let lock = lock.ok_or_else(in_use)?;
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
        let study = Study::load(experiment, Vec::new(), Vec::new());
        self.resume(Continued { store, lock, state, study, allow_changed: false })
    }

    /// Limits a search for the number of sessions to what the servers permit.
    fn limit_sessions(&self, experiment: &mut Experiment) -> Result<(), ConductError> {
        let Goal::Saturation(settings @ SaturationSettings { search: Search::Sessions, .. }) =
            &mut experiment.goal
        else {
            return Ok(());
        };
        let mut checked = Vec::new();
        for Cell { server, .. } in &experiment.cells {
            if checked.contains(&server) {
                continue;
            }
            checked.push(server);
            let target = (self.select)(server)?;
            let free = target.server().free_sessions(self.interrupt);
            target.close().map_err(SelectError::from)?;
            let free = free.map_err(SelectError::from)?;
            if let Some(free) = free.filter(|free| *free < settings.last) {
                self.events.notice(&format!(
                    "at most {}: the server, the role and the database permit no more connections",
                    number_of(free.into(), "session")
                ));
                settings.last = free;
            }
        }
        Ok(())
    }

    /// Continues the newest stored experiment that measures the same, except for its failed runs: they may have been the
    /// fault of the machine. Without one, or on another machine, it is a new experiment.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_or_continue(&self, experiment: Experiment) -> Result<(Study, End), ConductError> {
        let store = store::open(&self.location, self.interrupt)?;
        let Some(stored) = same(&store, &experiment)? else {
            drop(store);
            return self.start(experiment);
        };
        let Experiment { id, created_at, seed, .. } = stored_definition(&stored)?;
        let again = experiment.clone();
        let experiment = Experiment { id, created_at, seed, ..experiment };
        let mut records = stored_runs(&experiment, &store)?;
        records.retain(|record| record.status != Status::Failed);
        let study = Study::load(experiment, records, Vec::new());
        let lock = store.lock_experiment(&stored.id)?;
        let conducted =
            || ConductError::Failed(format!("another riops process conducts {}", stored.id));
        let lock = lock.ok_or_else(conducted)?;
        let state = stored.state;
        if let Some(at) = state.finished_at.filter(|_| study.experiment.machine().is_some()) {
            self.events.notice(&format!(
                "{}: measured until {at}, not measured again; another gate needs another name",
                study.experiment.name
            ));
            return Ok((study, End::Complete));
        }
        match self.resume(Continued { store, lock, state, study, allow_changed: false }) {
            // Runs of different machines cannot be compared.
            Err(ConductError::Changed(changes)) => {
                let changes = changes.join("; ");
                self.events.notice(&format!("measuring again, because this changed: {changes}"));
                self.start(again)
            }
            ended => ended,
        }
    }

    /// Finds an experiment by a part of its id, its name, or `last`, to continue it.
    ///
    /// # Errors
    /// [`ConductError`] if there is none, or another process or another number of agents conducts it.
    pub fn continued(&self, part: &str, retries_failed: bool) -> Result<Continued, ConductError> {
        let store = self.existing()?;
        let id = store.experiment(part)?.id;
        let Some(lock) = store.lock_experiment(&id)? else {
            return Err(ConductError::Failed(format!(
                "another riops process conducts the experiment {id}; wait until it ends"
            )));
        };
        // Its state may have changed until it was locked.
        let mut stored = store.experiment(&id)?;
        let experiment = stored_definition(&stored)?;
        self.require_agents(&experiment)?;
        let mut failures: Vec<Failure> = serde_json::from_str(&stored.state.failures)?;
        let mut records = stored_runs(&experiment, &store)?;
        if retries_failed {
            failures.clear();
            stored.state.failures = ExperimentState::default().failures;
            stored.state.finished_at = None;
            records.retain(|record| record.status != Status::Failed);
        }
        // A run that has lost an agent says nothing about its cell.
        records.retain(|record| record.agents.iter().all(|agent| agent.status.is_some()));
        let study = Study::load(experiment, records, failures);
        Ok(Continued { store, lock, state: stored.state, study, allow_changed: false })
    }

    /// Returns a stored experiment for an agent that takes part in it; `None` if it is complete.
    ///
    /// # Errors
    /// [`ConductError`] if there is none, or another number of agents conducts it.
    pub fn followed(&self, part: &str) -> Result<Option<Experiment>, ConductError> {
        let stored = self.existing()?.experiment(part)?;
        if stored.state.finished_at.is_some() {
            self.events.notice(&format!("the experiment {} is complete", stored.id));
            return Ok(None);
        }
        let experiment = stored_definition(&stored)?;
        self.require_agents(&experiment)?;
        Ok(Some(experiment))
    }

    fn existing(&self) -> Result<Store, ConductError> {
        let store = store::open_existing(&self.location, self.interrupt)?;
        Ok(store.ok_or_else(|| StoreError::NoExperiments(self.location.to_string()))?)
    }

    /// Fails if another number of agents continues an experiment: its runs could not be compared.
    fn require_agents(&self, experiment: &Experiment) -> Result<(), ConductError> {
        let given = self.membership.as_ref().map(|own| own.agents);
        if given == experiment.agents {
            return Ok(());
        }
        let text = |agents: Option<u32>| {
            agents.map_or("one client".to_owned(), |count| format!("a fleet of {count}"))
        };
        Err(ConductError::Refused(format!(
            "the experiment is measured by {}, not by {}",
            text(experiment.agents),
            text(given)
        )))
    }

    /// Measures what is left.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn resume(&self, continued: Continued) -> Result<(Study, End), ConductError> {
        let Continued { store, lock, state, mut study, allow_changed } = continued;
        let mut servers = Servers::new(store, Some(lock), state, self);
        servers.allow_changed = allow_changed;
        servers.lock_fleet()?;
        self.events.notice(&start_line(&study));
        let result = conduct(&mut study, &mut servers, self.interrupt);
        servers.close(&study.experiment, matches!(result, Ok(End::Complete)));
        let end = result?;
        let id = study.experiment.id.clone();
        // A search tries loads that fail.
        let is_search = matches!(study.experiment.goal, Goal::Saturation(_));
        let failed = study.failures().len();
        let again = |option| {
            let command = study.experiment.goal.command();
            let trust = if study.experiment.needs_trust().is_some() { " --trust" } else { "" };
            format!("`riops {command} --resume {}{option}{trust}`", short_id(&id))
        };
        let notice = match end {
            End::Complete if failed > 0 && !is_search => {
                format!("failed runs: {failed}; repeat them with {}", again(" --retry-failed"))
            }
            // The other machines do not wait for more.
            End::TimeLimit if study.experiment.machine().is_some() => {
                servers.finish(&id, Timestamp::now())?;
                "time limit reached: the complete rounds count".to_owned()
            }
            End::Complete => {
                servers.finish(&id, Timestamp::now())?;
                return Ok((study, end));
            }
            End::Failing => format!(
                "the first runs failed; fix the cause and continue with {}",
                again(" --retry-failed")
            ),
            End::TimeLimit => format!("time limit reached; continue with {}", again("")),
            End::Interrupted => format!("interrupted; continue with {}", again("")),
        };
        self.events.notice(&notice);
        Ok((study, end))
    }
}

/// Returns the newest stored experiment that measures the same. Ids, times and seeds differ.
fn same(store: &Store, experiment: &Experiment) -> Result<Option<StoredExperiment>, ConductError> {
    for known in store.experiments()?.into_iter().filter(|known| known.name == experiment.name) {
        let stored = store.experiment(&known.id)?;
        let Ok(mut other) = stored_definition(&stored) else { continue };
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
