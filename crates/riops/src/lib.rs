//! riops measures PostgreSQL-compatible databases.
//!
//! Data flows in one direction: each module uses only the modules above it.
//! The library never prints and never exits. `riops-model`, `metrics`, `workload` and `report` are pure.

pub use riops_report as report;

pub use riops_model::{comparison, figure, plan, record, stats, study, summary, units};

pub mod metrics;

pub mod host;

pub mod server;

pub mod script;

pub mod probe;

pub mod workload;

pub mod dataset;

pub mod engine;

pub mod run;

pub mod store;

pub mod fleet;

pub mod session;

pub mod experiment;

pub mod import;

pub mod gallery;

pub mod serve;
