//! Conducts one run, from the plan to the record.
//!
//! Prints nothing and reads no options. Progress and notices are [events](riops_model::record::RunEvent).
//!
//! # How a run is executed
//!
//! 1. The plan is validated. `active` opens the `ActiveRun`, which all parts of the run share: plan, server,
//!    control connection, nodes, hooks, and the `environment` (facts, pooler, whether the data are on this
//!    machine, its devices).
//! 2. `runner` selects the `Runner` of the workload:
//!    - `on_dataset`, `OnDataset`: loops of sessions on a dataset that `find` finds, adopts or prepares, or
//!      without a dataset. Every workload that implements `Build` gets it.
//!    - `fill`, `Fill`: `load`. Each stage creates and fills the table again and verifies it.
//!    - `observe`, `Observe`: a command that riops runs, or a time, without load of riops.
//!    - `steps`, `Steps`: `cbc`. Statements that run once, in a separate database or schema, and its selects.
//! 3. `conductor` calls the runner: `begin` (everything that can be refused is refused here, before anything is
//!    changed), `stage` for each stage, and `end` (the ledger and the checks of the data). `stage` runs a loop of
//!    sessions: caches, probes, engine. `settle` accounts for the changes of this run, and of earlier runs that
//!    could not report because their server died. `resolve` finds the outcomes of transactions that lost their
//!    connection.
//! 4. `results` assembles the record and `verdict` judges it, and the locks on the dataset end with the control
//!    connection. The record is then passed to `Hooks::complete`, which stores it. Only after that, `clean_up` drops
//!    temporary objects, so that an error there cannot lose the result.
//!
//! `settings` changes the settings of the server that the plan names before all this, and restores them after it. `find` implements the command `prepare`, `verify` the commands `verify` and `warm`. `error` is `RunError`, whose
//! `kind` determines the exit code. If the first stage fails, the run returns an error and there is no record. If a
//! later stage fails, the run ends, and its record contains the earlier stages and the reason.
//!
//! The `Hooks` receive the events and the record. Their `History` answers two questions about earlier
//! runs: the record of a run, and the measured maximum of a device. `run` thereby reads the store without
//! depending on it.

mod active;
mod clean_start;
mod conductor;
mod environment;
mod error;
mod fill;
mod find;
mod merge;
mod observe;
mod on_dataset;
mod parts;
mod resolve;
mod results;
mod settings;
mod settle;
mod stage;
mod steps;
mod verdict;
mod verify;

pub use crate::engine::{Agreement, Coordination, History, Hooks, NoHistory};
pub use crate::workload::OnMessage;
pub use active::allow_sessions;
pub use clean_start::{checkpoint, vacuum};
pub use error::{CleanStartError, ErrorKind, RunError};
pub use find::{Prepare, prepare};
pub use merge::{MergeError, Part as MergedPart, differing_plans, merge, merged_point};
pub use settings::{restore_settings, settings_warning};
pub use verify::{verify, warm};

use crate::host::Interrupt;
use crate::server::Server;
use crate::workload::Build;
use active::ActiveRun;
use conductor::{Runner, conduct};
use fill::Fill;
use observe::Observe;
use on_dataset::OnDataset;
use riops_model::figure::Figure;
use riops_model::plan::{CbcRun, LoadRun, ObserveRun, Plan, Spec, WorkPlan};
use riops_model::record::Record;
use settings::RunSettings;
use steps::Steps;

/// Runs a plan on a server.
///
/// # Errors
/// [`RunError`] if the run ended before its first result. It then leaves nothing in the database that looks
/// complete. An error after the first stage is part of the record instead.
pub fn run<'a>(
    plan: &Plan,
    server: &Server,
    interrupt: &'a Interrupt,
    hooks: Hooks<'a>,
) -> Result<Record, RunError> {
    plan.validate()?;
    plan.thresholds.iter().try_for_each(|threshold| Figure::required(threshold).map(|_| ()))?;
    let events = hooks.events.clone();
    let mut settings = RunSettings::apply(plan, server, interrupt, &events)?;
    let active = ActiveRun::open(plan, server, interrupt, hooks, &settings);
    let result = active.and_then(|active| conduct(active, runner(&plan.work).as_mut()));
    settings.restore(&events);
    result
}

/// The parameters of a workload, which select its runner.
trait Conducted {
    fn runner(&self) -> Box<dyn Runner>;
}

/// Most workloads are loops of sessions, on a prepared dataset or without one.
impl<T: Build + Spec + Clone + Into<WorkPlan> + 'static> Conducted for T {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(OnDataset::new(self))
    }
}

impl Conducted for LoadRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Fill::new(self))
    }
}

impl Conducted for CbcRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Steps::new(self))
    }
}

impl Conducted for ObserveRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Observe(self.clone()))
    }
}

/// Returns the runner for the workload of a plan.
fn runner(work: &WorkPlan) -> Box<dyn Runner> {
    riops_model::dispatch_work!(work, run => run.runner())
}
