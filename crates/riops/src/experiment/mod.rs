//! Experiments: sweeps over options, A/B tests and searches for the saturation point.
//!
//! An [`Experiment`] is plain data. Its state is the set of its finished runs, which are ordinary stored runs
//! with tags. A strategy decides from both what to run next, so that an experiment that was
//! killed continues where it ended. This module orders runs, conducts them (`conductor`), and says what they show together
//! (`comparison` of two groups, `evaluation` of an experiment, `history` of stored runs); it must not print.

mod ab;
mod between;
mod build;
mod build_process;
pub mod comparison;
mod conduct;
mod conductor;
mod definition;
mod environment;
pub mod evaluation;
#[cfg(test)]
#[path = "tests/example.rs"]
pub(crate) mod example;
mod follow;
mod gate;
mod gating;
mod history;
mod idle;
pub mod limits;
mod place;
mod progress;
mod reset;
mod saturation;
pub mod search;
mod servers;
mod task;

pub use ab::{blocks, counted, figures_of, last_look};
pub use between::{BetweenError, prepare_run};
pub use build::{BuildError, Builder, Variant};
pub use conduct::{Bench, End, Remaining, conduct, next, remaining};
pub use conductor::Continued;
pub use definition::{
    ALPHA, AbSettings, Axis, BLOCKS_MAX, Between, Cell, DatabaseChoice, EFFECT, Experiment, Goal,
    Order, REPEATS, Reset, SaturationSettings, Search, ServerChoice, VARIANT,
    names_program_or_file,
};
pub use environment::{Environment, client_differences, server_differences};
pub use gate::{
    BisectCommit, BisectStep, BisectView, GateRow, GateVerdict, GateView, GateWorkload,
};
pub use gating::{BisectSearch, Bisected, GateRules, Gated, Tests};
pub use history::{
    ACKNOWLEDGED, HistoryChange, HistoryChoice, HistoryPoint, HistorySeries, history, history_of,
};
pub use place::{ConductError, Conductor, Select};
pub use progress::start_line;
pub use reset::{
    ResetError, choose_database, copy_of, drop_copy, drop_own_database, prepare_again,
    prepare_template, restore,
};
pub use saturation::{Saturation, results};
pub use servers::Servers;
pub use task::{Failure, Finished, Level, Study, Task, tag};
