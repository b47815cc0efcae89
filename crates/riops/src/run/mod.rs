//! Conducts one run, from the plan to the record.
//!
//! Prints nothing and reads no options. Progress and notices are sent to an [`Observer`].

mod active;
mod build;
mod conductor;
mod devices;
mod environment;
mod error;
mod fill;
mod find;
mod list;
mod observer;
mod on_dataset;
mod prepare;
mod resolve;
mod settle;
mod stage;
mod steps;
mod verify;
mod warm;

pub use crate::workload::OnMessage;
pub use active::allow_sessions;
pub use error::{ErrorKind, RunError};
pub use observer::{History, NoHistory, Observer, OnLoaded};
pub use prepare::{Prepare, prepare};
pub use verify::verify;
pub use warm::{Warmed, warm};

use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::Record;
use crate::server::Server;
use active::ActiveRun;
use conductor::conduct;
use list::runner;

/// Runs a plan on a server.
///
/// # Errors
/// [`RunError`] if the run ended before its first result. It then leaves nothing in the database that looks
/// complete. An error after the first stage is part of the record instead.
pub fn run(
    plan: &Plan,
    server: &Server,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    plan.validate()?;
    let active = ActiveRun::open(plan, server, interrupt, observer)?;
    conduct(active, runner(&plan.work).as_mut())
}
