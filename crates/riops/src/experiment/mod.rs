//! Experiments: sweeps over options, A/B tests and searches for the saturation point.
//!
//! An [`Experiment`] is plain data. Its state is the set of its finished runs, which are ordinary stored runs
//! with tags. A strategy decides from both what to run next, so that an experiment that was
//! killed continues where it ended. This module orders runs; it must not measure or print.

mod definition;
mod task;

pub use definition::{
    AbSettings, Axis, Between, Cell, DatabaseChoice, Experiment, Goal, Order, Reset,
    SaturationSettings, Search, ServerChoice,
};
pub use task::{Failure, Finished, Level, Study, Task, tag};
