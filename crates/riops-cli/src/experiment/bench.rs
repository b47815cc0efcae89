//! Measures the runs of an experiment on their servers, and stores them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Result, bail};
use riops::experiment::{
    self, Bench, Cell, DatabaseChoice, Environment, Experiment, Remaining, Reset, ServerChoice,
    Study, Task, client_differences, server_differences,
};
use riops::fleet::{Fleet, FleetError, Role};
use riops::host::Interrupt;
use riops::plan::Plan;
use riops::record::Record;
use riops::report;
use riops::run::{History, NoHistory};
use riops::server::Server;
use riops::store::live::sink_of;
use riops::store::{ExperimentLock, ExperimentState, Store, StoreLocation};

use super::words::Databases;
use crate::args::{EmbeddedOptions, LiveOptions, TargetOptions};
use crate::fleet::{self, Ended, Membership};
use crate::live::{Live, OpenFeed};
use crate::screen::{Screen, Tee};
use crate::stored;
use crate::target::Target;
use crate::ui::Ui;

/// The machine or a server differs from that of the finished runs.
#[derive(Debug)]
pub(super) struct Changed(pub(super) Vec<String>);

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the environment changed since the experiment started: {}; continue with --allow-changed",
            self.0.join("; ")
        )
    }
}

impl std::error::Error for Changed {}

/// The record of a run, or its error. The outer error ends the experiment.
type Measured = Result<Result<Box<Record>, String>>;

/// Where an experiment is measured.
pub(crate) struct Servers {
    pub(crate) store: Store,
    location: StoreLocation,
    /// `None` if another agent conducts the experiment.
    lock: Option<ExperimentLock>,
    membership: Option<Membership>,
    /// The right to conduct experiments in this fleet.
    fleet_lock: Option<ExperimentLock>,
    databases: Databases,
    pub(crate) state: ExperimentState,
    pub(crate) allow_changed: bool,
    /// Servers whose environment was compared.
    checked: BTreeSet<String>,
    current: Option<(ServerChoice, Target)>,
    ui: Ui,
}

impl Servers {
    pub(crate) fn new(
        (store, location): (Store, StoreLocation),
        (lock, membership): (Option<ExperimentLock>, Option<Membership>),
        (databases, state): (Databases, ExperimentState),
        ui: Ui,
    ) -> Self {
        Self {
            store,
            location,
            lock,
            membership,
            fleet_lock: None,
            databases,
            state,
            allow_changed: false,
            checked: BTreeSet::new(),
            current: None,
            ui,
        }
    }

    /// Takes the right to conduct experiments in the fleet. Fails if another process has it.
    pub(crate) fn lock_fleet(&mut self) -> Result<()> {
        if let Some(own) = self.membership.as_ref().filter(|_| self.lock.is_some()) {
            self.fleet_lock = self.store.lock_fleet(&own.name)?;
            if self.fleet_lock.is_none() {
                bail!("another process conducts an experiment in fleet {}", own.name);
            }
        }
        Ok(())
    }

    /// Drops the copy of the last run, and the database of a complete experiment. Releases the server. Failures are
    /// only reported: the results are stored.
    pub(crate) fn close(&mut self, experiment: &Experiment, is_complete: bool) {
        let dropped = self.drop_databases(experiment, is_complete);
        let closed = self.current.take().map_or(Ok(()), |(_, target)| target.close());
        for error in [dropped, closed].into_iter().filter_map(Result::err) {
            self.ui.notice(&format!("warning: {error:#}"));
        }
    }

    /// Drops the copy of the last run, and the database of a complete experiment.
    ///
    /// # Errors
    /// If the server cannot be reached, or a database cannot be dropped.
    pub(crate) fn drop_databases(
        &mut self,
        experiment: &Experiment,
        is_complete: bool,
    ) -> Result<()> {
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
            let template =
                experiment::choose_database(&server, &experiment.database, &Interrupt::new())?;
            experiment::drop_copy(&template, &experiment.id)?;
        }
        if let Some(name) = own {
            experiment::drop_own_database(&server, name)?;
        }
        Ok(())
    }
}

impl Bench for Servers {
    type Error = anyhow::Error;

    fn starting(&mut self, study: &Study, task: &Task, remaining: &Remaining) {
        let number = study.finished.len() + 1;
        // The repetition of a disturbed run is not among the remaining ones.
        let total = study.finished.len() + remaining.runs.max(1);
        let total =
            if remaining.is_maximum { format!("at most {total}") } else { total.to_string() };
        let left =
            remaining.seconds.map(|seconds| format!(", {} left", report::time_left(seconds)));
        self.ui.notice(&format!(
            "run {number} of {total}{}: {}, block {}",
            left.unwrap_or_default(),
            study.experiment.task_name(task),
            task.block
        ));
    }

    fn measure(&mut self, study: &Study, task: &Task, plan: &Plan, is_first: bool) -> Measured {
        self.lock.as_mut().map_or(Ok(()), ExperimentLock::check)?;
        let experiment = &study.experiment;
        let Some(cell) = experiment.cells.get(task.cell) else {
            bail!("the experiment has no cell {}", task.cell);
        };
        let server = match self
            .select(experiment, &cell.server)
            .and_then(|()| self.prepare(experiment, cell, plan, is_first))
        {
            Ok(server) => server,
            Err(error) if error.is::<Changed>() => return Err(error),
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        self.run(plan, &server, Role::Conductor)
    }

    fn ended(&mut self, study: &Study) -> Result<()> {
        let Some(last) = study.finished.last() else {
            return Ok(());
        };
        if let Err(error) = &last.result {
            let name = study.experiment.task_name(&last.task);
            self.ui.error(&format!("{name} failed: {error}"));
            self.state.failures = serde_json::to_string(&study.failures())?;
            self.store.update_experiment(&study.experiment.id, &self.state)?;
        }
        Ok(())
    }
}

impl Servers {
    /// Brings server and dataset into the state that a run requires. Returns the server of the run.
    fn prepare(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        plan: &Plan,
        is_first: bool,
    ) -> Result<Server> {
        let template = self.template(experiment)?;
        self.require_unchanged(experiment, &cell.server, &template)?;
        let ui = self.ui;
        let mut no_record = |_: &Record| {};
        let mut screen = Screen::new(ui, &NoHistory, &mut no_record);
        let server = match experiment.reset {
            Reset::None => template,
            Reset::Restore => {
                experiment::prepare_template(&template, plan, ui.interrupt, &mut screen)?;
                experiment::restore(&template, &experiment.id, ui.interrupt)?
            }
            Reset::Prepare => {
                experiment::prepare_again(&template, plan, ui.interrupt, &mut screen)?;
                template
            }
        };
        let notify = |text: &str| ui.notice(text);
        experiment::prepare_run(
            &server,
            &experiment.between,
            plan,
            is_first,
            ui.interrupt,
            &notify,
        )?;
        Ok(server)
    }

    /// The current server with the database that contains the dataset.
    fn template(&self, experiment: &Experiment) -> Result<Server> {
        let Some((_, target)) = &self.current else {
            bail!("no server is selected");
        };
        Ok(experiment::choose_database(&target.server(), &experiment.database, self.ui.interrupt)?)
    }

    /// Stores the environment of the first run on a server. Fails if it differs from that of a stored experiment.
    fn require_unchanged(
        &mut self,
        experiment: &Experiment,
        choice: &ServerChoice,
        server: &Server,
    ) -> Result<()> {
        // Servers are identified by their first cell: --database can replace the connection string.
        let first = experiment.cells.iter().position(|cell| cell.server == *choice);
        let key = first.unwrap_or_default().to_string();
        if self.checked.contains(&key) {
            return Ok(());
        }
        let now = Environment::read(server, self.ui.interrupt)?;
        let stored = self.state.environment.as_deref().unwrap_or("{}");
        let mut known: BTreeMap<String, Environment> = serde_json::from_str(stored)?;
        let of_client = known.values().next().map(|any| client_differences(any, &now));
        let of_server = known.get(&key).map(|before| server_differences(before, &now));
        let changes = [of_client, of_server].into_iter().flatten().flatten().collect::<Vec<_>>();
        if !changes.is_empty() {
            if !self.allow_changed {
                return Err(Changed(changes).into());
            }
            let text = changes.join("; ");
            self.ui.notice(&format!("warning: changed since the experiment started: {text}"));
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
    fn select(&mut self, experiment: &Experiment, choice: &ServerChoice) -> Result<()> {
        let settings = |cell: &Cell| cell.server.settings != choice.settings;
        let is_restarted = experiment.cells.iter().any(settings);
        if !is_restarted && self.current.as_ref().is_some_and(|(current, _)| current == choice) {
            return Ok(());
        }
        if let Some((_, target)) = self.current.take() {
            target.close()?;
        }
        let target = Target::select(&self.options_of(choice), self.ui)?;
        match &experiment.database {
            DatabaseChoice::Own(name) if target.server().embedded => {
                self.ui.notice(&format!("target: database {name} on the embedded server"));
            }
            _ => target.announce(self.ui),
        }
        self.current = Some((choice.clone(), target));
        Ok(())
    }

    fn options_of(&self, choice: &ServerChoice) -> TargetOptions {
        let masked = choice.database.as_ref();
        let given = masked.and_then(|masked| self.databases.get(masked));
        TargetOptions {
            database: given.or(masked).cloned(),
            embedded: EmbeddedOptions {
                server_dir: choice.server_dir.clone(),
                server_data: choice.server_data.clone(),
                server_user: choice.server_user.clone(),
                server_port: choice.server_port,
                server_set: choice.settings.clone(),
                cache_dir: choice.cache_dir.clone(),
            },
        }
    }

    /// Runs the plan on a server and stores the record: alone, or as an agent of a fleet.
    fn run(&mut self, plan: &Plan, server: &Server, role: Role) -> Measured {
        let (ui, membership) = (self.ui, self.membership.as_ref());
        let joined = membership.map(|own| own.join(plan, server, role, ui)).transpose();
        let mut fleet = match joined {
            Err(error) if ends_experiment(&error, role) => return Err(error),
            Err(error) => return Ok(Err(format!("{error:#}"))),
            Ok(fleet) => fleet,
        };
        let shared = fleet.as_ref().map(Fleet::plan).transpose()?;
        let plan = shared.as_ref().unwrap_or(plan);
        let location = self.location.clone();
        let feed = plan.is_first().then(|| Box::new(move || sink_of(&location)) as OpenFeed);
        let mut live = Live::open(&LiveOptions::default(), feed, ui)?;
        let save = |record: &Record| {
            stored::save(&self.store, record).map_err(|error| stored::keep(record, &error))
        };
        let (mut saved, is_alone) = (Ok(()), fleet.is_none());
        let mut publish = |record: &Record| {
            if is_alone {
                saved = save(record);
            }
        };
        let history: &dyn History = if is_alone { &self.store } else { &NoHistory };
        let screen_ui = if plan.is_first() { ui } else { ui.without_intervals() };
        let mut screen = Screen::new(screen_ui, history, &mut publish);
        let mut observer = Tee(&mut screen, &mut live);
        let (result, ended) =
            fleet::run(fleet.as_mut(), (plan, server), (&mut observer, &save), ui);
        if let Err(error) = &result {
            live.failed(error);
        }
        saved?;
        Ok(match (result, ended) {
            (Err(error), _) => Err(error.to_string()),
            (_, Some(Err(error))) => Err(format!("{error:#}")),
            (Ok(own), None) => Ok(Box::new(own)),
            (Ok(_), Some(Ok(Ended { merged, run, .. }))) => {
                Ok(Box::new(merged.map_or_else(|| self.store.find(&run), Ok)?))
            }
        })
    }

    /// Takes part in a run of an experiment that agent 0 conducts.
    pub(super) fn take_part(&mut self, experiment: &Experiment, task: &Task) -> Measured {
        let Some((plan, cell)) = experiment.plan(task).zip(experiment.cells.get(task.cell)) else {
            bail!("the experiment has no cell {}", task.cell);
        };
        self.select(experiment, &cell.server)?;
        let template = self.template(experiment)?;
        let server = match experiment.reset {
            Reset::Restore => experiment::copy_of(&template, &experiment.id),
            Reset::None | Reset::Prepare => template,
        };
        self.run(&plan, &server, Role::Follower)
    }
}

/// Whether an agent does not fit the fleet, or the others are missing: each further run would wait for them in vain.
fn ends_experiment(error: &anyhow::Error, role: Role) -> bool {
    match error.downcast_ref() {
        Some(FleetError::Refused { .. }) => true,
        Some(FleetError::NoStart { .. } | FleetError::Occupied(_)) => role == Role::Conductor,
        _ => false,
    }
}
