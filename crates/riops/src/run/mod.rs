//! Conducts one run, from the plan to the record.
//!
//! Prints nothing and reads no option: what it has to say goes to an [`Observer`].

mod conductor;
mod environment;
mod error;
mod fill;
mod find;
mod list;
mod observer;
mod on_dataset;
mod prepare;
mod scene;
mod settle;
mod stage;
mod steps;
mod verify;

pub use error::{ErrorKind, RunError};
pub use observer::{History, Nothing, Observer, OnLoaded};
pub use prepare::{Prepare, prepare};
pub use scene::allow_sessions;
pub use verify::verify;

use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::Record;
use crate::server::Server;
use conductor::conduct;
use list::runner;
use scene::Scene;

/// Runs a plan on a server.
///
/// # Errors
/// [`RunError`] where it did not come to a measurement; then nothing is left in the server that looks
/// complete. What ends a run after its first stage is part of the record.
pub fn run(
    plan: &Plan,
    server: &Server,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    plan.validate()?;
    let scene = Scene::open(plan, server, interrupt, observer)?;
    conduct(scene, runner(&plan.work).as_mut())
}
