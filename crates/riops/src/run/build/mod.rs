//! Builds the record from the measured types: rates, summaries, the verdict. Does no I/O.

mod accesses;
mod client;
mod commands;
mod io;
mod latencies;
mod mix;
mod neighbors;
mod nodes;
mod operations;
mod parts;
mod reasons;
mod run;
mod session_loop;
mod sessions;
mod stage;
mod statement;
mod thresholds;
mod warnings;

pub(super) use parts::{Ending, Measured, MeasuredStatement, Part, RunContext};
pub(super) use run::build;
