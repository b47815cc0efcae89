//! Conducts experiments: sweeps over options, A/B tests and searches for the saturation point.
//!
//! An experiment and what its runs show are plain data (`study` in riops-model). This module orders a server and its datasets
//! for each run, measures it, and stores it (`conductor`). It must not print.

mod between;
mod build;
mod build_process;
mod conduct;
mod conductor;
mod environment;
mod follow;
mod gating;
mod hooks;
mod idle;
mod machines;
mod place;
mod reset;
mod servers;
mod stored;

pub use between::prepare_run;
pub use build::{BuildError, Builder, Variant};
pub use conduct::{Bench, conduct};
pub use conductor::Continued;
pub use environment::{Environment, client_differences, server_differences};
pub use follow::divide;
pub use gating::{BisectSearch, Bisected, GateRules, Gated, Tests};
pub use machines::Machines;
pub use place::{ConductError, Conductor, Select};
pub use reset::{
    ResetError, choose_database, copy_of, drop_copy, drop_own_database, prepare_again,
    prepare_template, restore,
};
pub use servers::Servers;
pub use stored::{stored_definition, stored_runs, stored_study};
