//! Measures the runs of an experiment on their servers, and stores them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::between::prepare_run;
use super::conduct::Bench;
use super::environment::{Environment, client_differences, server_differences};
use super::hooks::Hook;
use super::place::{ConductError, Conductor, Select};
use super::reset::{
    choose_database, copy_of, drop_copy, drop_own_database, prepare_again, prepare_template,
    restore,
};
use crate::fleet::{FleetError, Membership, Role};
use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::{Events, ExperimentId, Record, RunEvent};
use crate::server::{SelectError, Server, Target};
use crate::session::{Ran, Session, SessionError};
use crate::store::{ExperimentLock, ExperimentState, Store, StoreLocation};
use crate::study::Remaining;
use crate::study::time_left;
use crate::study::{Between, Cell, DatabaseChoice, Experiment, Reset, ServerChoice};
use crate::study::{Study, Task};

/// The record of a run, or its error. The outer error ends the experiment.
type Measured = Result<Result<Box<Record>, String>, ConductError>;

/// Where an experiment is measured.
pub struct Servers<'a> {
    store: Store,
    location: StoreLocation,
    /// `None` if another agent conducts the experiment.
    lock: Option<ExperimentLock>,
    membership: Option<Membership>,
    /// The right to conduct experiments in this fleet.
    fleet_lock: Option<ExperimentLock>,
    select: Select<'a>,
    state: ExperimentState,
    pub(super) allow_changed: bool,
    /// Servers whose environment was compared.
    checked: BTreeSet<String>,
    current: Option<(ServerChoice, Target)>,
    events: Events,
    interrupt: &'a Interrupt,
}

impl<'a> Servers<'a> {
    /// Returns the servers of an experiment; `lock` is missing if another agent conducts it.
    pub fn new(
        store: Store,
        lock: Option<ExperimentLock>,
        state: ExperimentState,
        conductor: &Conductor<'a>,
    ) -> Self {
        Self {
            store,
            location: conductor.location.clone(),
            lock,
            membership: conductor.membership.clone(),
            fleet_lock: None,
            select: conductor.select,
            state,
            allow_changed: false,
            checked: BTreeSet::new(),
            current: None,
            events: conductor.events.clone(),
            interrupt: conductor.interrupt,
        }
    }

    /// Takes the right to conduct experiments in the fleet. Fails if another process has it.
    pub(super) fn lock_fleet(&mut self) -> Result<(), ConductError> {
        if let Some(own) = self.membership.as_ref().filter(|_| self.lock.is_some()) {
            self.fleet_lock = self.store.lock_fleet(&own.name)?;
            if self.fleet_lock.is_none() {
                let name = &own.name;
                let text = format!("another process conducts an experiment in fleet {name}");
                return Err(ConductError::Failed(text));
            }
        }
        Ok(())
    }

    /// Whether no process conducts experiments in the fleet.
    pub(super) fn is_fleet_free(&self, name: &str) -> Result<bool, ConductError> {
        Ok(self.store.lock_fleet(name)?.is_some())
    }

    /// Whether an experiment that no process conducts is complete; `None` while one does.
    pub(super) fn is_complete(&self, id: &ExperimentId) -> Result<Option<bool>, ConductError> {
        let Some(lock) = self.store.lock_experiment(id)? else {
            return Ok(None);
        };
        drop(lock);
        Ok(Some(self.store.experiment(id)?.state.finished_at.is_some()))
    }

    /// Stores that the experiment is complete.
    pub(super) fn finish(&mut self, id: &str, at: Timestamp) -> Result<(), ConductError> {
        if self.state.finished_at.is_none() {
            self.state.finished_at = Some(at);
            self.store.update_experiment(id, &self.state)?;
        }
        Ok(())
    }

    /// Drops the copy of the last run, and the database of a complete experiment. Releases the server. Failures are
    /// only reported: the results are stored.
    pub fn close(&mut self, experiment: &Experiment, is_complete: bool) {
        if let Err(error) = self.drop_databases(experiment, is_complete) {
            self.events.notice(&format!("warning: {error}"));
        }
        if let Some(Err(error)) = self.current.take().map(|(_, target)| target.close()) {
            self.events.notice(&format!("warning: {error}"));
        }
    }

    /// Drops the copy of the last run, and the database of a complete experiment.
    ///
    /// # Errors
    /// If the server cannot be reached, or a database cannot be dropped.
    pub fn drop_databases(
        &mut self,
        experiment: &Experiment,
        is_complete: bool,
    ) -> Result<(), ConductError> {
        let own = match &experiment.database {
            DatabaseChoice::Own(name) if is_complete => Some(name),
            _ => None,
        };
        // A process that was killed after the last run left its databases behind.
        let is_unfinished = self.state.finished_at.is_none()
            && self.state.failures == ExperimentState::default().failures;
        let has_databases = is_complete && is_unfinished && experiment.leaves_databases();
        if let (None, true, Some(cell)) = (&self.current, has_databases, experiment.cells.first()) {
            self.select(experiment, &cell.server)?;
        }
        let Some((_, target)) = &self.current else {
            return Ok(());
        };
        let server = target.server();
        if experiment.reset == Reset::Restore {
            let template = choose_database(&server, &experiment.database, &Interrupt::new())?;
            drop_copy(&template, &experiment.id)?;
        }
        if let Some(name) = own {
            drop_own_database(&server, name)?;
        }
        Ok(())
    }
}

impl Bench for Servers<'_> {
    type Error = ConductError;

    fn starting(&mut self, study: &Study, task: &Task, remaining: &Remaining) {
        let ordinal = study.finished.len() + 1;
        // The repetition of a disturbed run is not among the remaining ones.
        let total = study.finished.len() + remaining.runs.max(1);
        let total =
            if remaining.is_maximum { format!("at most {total}") } else { total.to_string() };
        let left = remaining.seconds.map(|seconds| format!(", {} left", time_left(seconds)));
        self.events.notice(&format!(
            "run {ordinal} of {total}{}: {}, round {}",
            left.unwrap_or_default(),
            study.experiment.task_name(task),
            task.block
        ));
    }

    fn measure(&mut self, study: &Study, task: &Task, plan: &Plan, is_first: bool) -> Measured {
        self.lock.as_mut().map_or(Ok(()), ExperimentLock::check)?;
        let experiment = &study.experiment;
        let cell = cell_of(experiment, task)?;
        let server = match self
            .select(experiment, &cell.server)
            .and_then(|()| self.prepare(experiment, cell, plan, is_first))
        {
            Ok(server) => server,
            Err(error @ ConductError::Changed(_)) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.run_with_hooks(study, task, plan, &server)
    }

    fn ended(&mut self, study: &Study) -> Result<(), ConductError> {
        let Some(last) = study.finished.last() else {
            return Ok(());
        };
        if let Err(error) = &last.result {
            let name = study.experiment.task_name(&last.task);
            let text = format!("{name} failed: {error}");
            self.events.send(&RunEvent::Notice { text, is_important: true });
            self.state.failures = serde_json::to_string(&study.failures())?;
            self.store.update_experiment(&study.experiment.id, &self.state)?;
        }
        Ok(())
    }
}

fn cell_of<'e>(experiment: &'e Experiment, task: &Task) -> Result<&'e Cell, ConductError> {
    let unknown = || ConductError::Failed(format!("the experiment has no cell {}", task.cell));
    experiment.cells.get(task.cell).ok_or_else(unknown)
}

impl Servers<'_> {
    /// Brings server and dataset into the state that a run requires. Returns the server of the run.
    fn prepare(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        plan: &Plan,
        is_first: bool,
    ) -> Result<Server, ConductError> {
        let template = self.template(experiment)?;
        self.require_unchanged(experiment, &cell.server, &template)?;
        let (events, interrupt) = (&self.events, self.interrupt);
        let server = match experiment.reset {
            Reset::None => template,
            Reset::Restore => {
                prepare_template(&template, plan, interrupt, events)?;
                restore(&template, &experiment.id, interrupt)?
            }
            Reset::Prepare => {
                prepare_again(&template, plan, interrupt, events)?;
                template
            }
        };
        let notify = |text: &str| events.notice(text);
        prepare_run(&server, &experiment.between, plan, is_first, interrupt, &notify)?;
        Ok(server)
    }

    /// The current server with the database that contains the dataset.
    fn template(&self, experiment: &Experiment) -> Result<Server, ConductError> {
        let none = || ConductError::Failed("no server is selected".to_owned());
        let (_, target) = self.current.as_ref().ok_or_else(none)?;
        Ok(choose_database(&target.server(), &experiment.database, self.interrupt)?)
    }

    /// Stores the environment of the first run on a server. Fails if a stored experiment had another environment.
    fn require_unchanged(
        &mut self,
        experiment: &Experiment,
        choice: &ServerChoice,
        server: &Server,
    ) -> Result<(), ConductError> {
        // Servers are identified by their first cell: --database can replace the connection string.
        let first = experiment.cells.iter().position(|cell| cell.server == *choice);
        let key = first.unwrap_or_default().to_string();
        if self.checked.contains(&key) {
            return Ok(());
        }
        let now = Environment::read(server, self.interrupt)?;
        let stored = self.state.environment.as_deref().unwrap_or("{}");
        let mut known: BTreeMap<String, Environment> = serde_json::from_str(stored)?;
        let of_client = known.values().next().map(|any| client_differences(any, &now));
        let of_server = known.get(&key).map(|before| server_differences(before, &now));
        let changes = [of_client, of_server].into_iter().flatten().flatten().collect::<Vec<_>>();
        if !changes.is_empty() {
            if !self.allow_changed {
                return Err(ConductError::Changed(changes));
            }
            let text = changes.join("; ");
            self.events.notice(&format!("warning: changed since the experiment started: {text}"));
        }
        if !known.contains_key(&key) {
            known.insert(key.clone(), now);
            self.state.environment = Some(serde_json::to_string(&known)?);
            self.store.update_experiment(&experiment.id, &self.state)?;
        }
        self.checked.insert(key);
        Ok(())
    }

    /// Starts or selects the server of a cell. If the settings of the embedded server differ between the cells, it is
    /// started for every run: otherwise only a run after one with the same settings would find its buffers filled.
    fn select(
        &mut self,
        experiment: &Experiment,
        choice: &ServerChoice,
    ) -> Result<(), ConductError> {
        let settings = |cell: &Cell| cell.server.settings != choice.settings;
        let is_restarted = experiment.cells.iter().any(settings);
        if !is_restarted && self.current.as_ref().is_some_and(|(current, _)| current == choice) {
            return Ok(());
        }
        if let Some((_, target)) = self.current.take() {
            target.close().map_err(SelectError::from)?;
        }
        let target = (self.select)(choice)?;
        match &experiment.database {
            DatabaseChoice::Own(name) if target.embedded.is_some() => {
                self.events.notice(&format!("target: database {name} on the embedded server"));
            }
            _ => target.announce(&|text| self.events.notice(text)),
        }
        self.current = Some((choice.clone(), target));
        Ok(())
    }

    /// Runs the plan between the commands of the user, whose output becomes notes on the run.
    fn run_with_hooks(
        &mut self,
        study: &Study,
        task: &Task,
        plan: &Plan,
        server: &Server,
    ) -> Measured {
        let Between { before, after, .. } = &study.experiment.between;
        let hook =
            |moment, command: &'_ Option<String>| command.clone().map(|command| (moment, command));
        let run = |hook: &Option<(&'static str, String)>| {
            let Some((moment, command)) = hook else {
                return Ok(String::new());
            };
            Hook { moment, command }.run(&study.experiment, task, server)
        };
        let hooks = [hook("before", before), hook("after", after)];
        let [first, last] = &hooks;
        let before = match run(first) {
            Ok(output) => output,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let measured = self.run(plan, server, Role::Conductor)?;
        // Also after a failed run: it undoes what the first one did.
        let after = run(last);
        let Ok(record) = measured else {
            return Ok(measured);
        };
        let id = record.id.to_string();
        for (hook, output) in hooks.iter().zip([Some(&before), after.as_ref().ok()]) {
            if let Some(((moment, command), output)) = hook.as_ref().zip(output) {
                Hook { moment, command }.keep(output, &id, &self.store)?;
            }
        }
        match after {
            Ok(_) => Ok(Ok(record)),
            Err(error) => Err(error),
        }
    }

    /// Runs the plan on a server and stores the record: alone, or as an agent of a fleet.
    fn run(&mut self, plan: &Plan, server: &Server, role: Role) -> Measured {
        let session = Session {
            store: Some(&self.store),
            location: Some(self.location.clone()),
            history: &self.store,
            note: None,
            membership: self.membership.clone(),
            events: self.events.clone(),
            interrupt: self.interrupt,
        };
        let Ran { record, saved, of_fleet } = match session.run(plan, server, role, &mut |_, _| {})
        {
            Ok(ran) => ran,
            Err(SessionError::Fleet(error)) if is_end_of_experiment(&error, role) => {
                return Err(error.into());
            }
            Err(error) => return Ok(Err(failure_text(&error))),
        };
        saved.into_result()?;
        match of_fleet.filter(|(run, _)| *run != record.id.to_string()) {
            Some((run, _)) => Ok(Ok(Box::new(self.store.find(&run)?))),
            None => Ok(Ok(Box::new(record))),
        }
    }

    /// Takes part in a run of an experiment that agent 0 conducts.
    pub(super) fn take_part(&mut self, experiment: &Experiment, task: &Task) -> Measured {
        let cell = cell_of(experiment, task)?;
        let unknown = || ConductError::Failed(format!("the experiment has no cell {}", task.cell));
        let plan = experiment.plan(task).ok_or_else(unknown)?;
        self.select(experiment, &cell.server)?;
        let template = self.template(experiment)?;
        let server = match experiment.reset {
            Reset::Restore => copy_of(&template, &experiment.id),
            Reset::None | Reset::Prepare => template,
        };
        self.run(&plan, &server, Role::Follower)
    }
}

/// Returns why a run failed. Cells that need different datasets can have them, each in turn.
fn failure_text(error: &SessionError) -> String {
    let advice = match error {
        SessionError::Run(error) if error.needs_other_dataset() => {
            "; or recreate it for each run with --reset prepare"
        }
        _ => "",
    };
    format!("{error}{advice}")
}

/// Whether an agent does not fit the fleet, or the others are missing: each further run would wait for them in vain.
fn is_end_of_experiment(error: &FleetError, role: Role) -> bool {
    match error {
        FleetError::Refused { .. } | FleetError::Plan(_) => true,
        FleetError::NoStart { .. } | FleetError::Occupied(_) => role == Role::Conductor,
        _ => false,
    }
}
