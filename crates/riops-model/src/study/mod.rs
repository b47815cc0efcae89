//! Experiments as data: sweeps over options, A/B tests, searches for the saturation point, gates and bisections.
//!
//! An [`Experiment`] is plain data. Its state is the set of its finished runs, which are ordinary records with tags. The next
//! run follows from both ([`next`]), so that an experiment that was killed continues where it ended. [`evaluation`] says what
//! its runs show, [`history`](history()) what stored runs show over time. Pure: it must not run anything.

mod ab;
mod definition;
pub mod evaluation;
#[cfg(any(test, feature = "examples"))]
pub mod example;
mod gate;
mod history;
pub mod limits;
mod machines;
mod next;
mod progress;
mod saturation;
pub mod search;
mod task;

pub use ab::{blocks, counted, figures_of, last_look};
pub use definition::{
    ALPHA, AbSettings, Axis, BLOCKS_MAX, Between, Cell, DatabaseChoice, EFFECT, Experiment, Goal,
    Machine, Order, REPEATS, Reset, SaturationSettings, Search, ServerChoice, VARIANT,
    names_program_or_file,
};
pub use gate::{
    BisectCommit, BisectStep, BisectView, GateMachine, GateRow, GateVerdict, GateView, GateWorkload,
};
pub use history::{
    ACKNOWLEDGED, HistoryChange, HistoryChoice, HistoryPoint, HistorySeries, history, history_of,
};
pub use machines::machines_needed;
pub use next::{End, Remaining, next, remaining};
pub use progress::{start_line, time_left};
pub use saturation::{Saturation, results};
pub use task::{Failure, Finished, Level, Study, Task, tag};
