//! Experiments: sweeps over options, A/B tests and searches for the saturation point.
//!
//! An [`Experiment`] is plain data. Its state is the set of its finished runs, which are ordinary stored runs
//! with tags. A strategy decides from both what to run next, so that an experiment that was
//! killed continues where it ended. This module orders runs; it must not measure or print.

mod conduct;
mod definition;
#[cfg(test)]
pub(crate) mod example;
mod order;
mod progress;
pub mod search;
mod strategy;
mod task;

pub use conduct::{Bench, End, conduct};
pub use definition::{
    AbSettings, Axis, Between, Cell, DatabaseChoice, Experiment, Goal, Order, Reset,
    SaturationSettings, Search, ServerChoice,
};
pub use progress::{Remaining, remaining};
pub use strategy::{Step, next};
pub use task::{Failure, Finished, Level, Study, Task, tag};
