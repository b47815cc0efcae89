//! riops measures PostgreSQL-compatible databases.
//!
//! Data flows in one direction: each module uses only the modules above it. The modules below are crates of their own, which this
//! one passes on. The library never prints and never exits.

pub use riops_model::{comparison, figure, plan, record, stats, study, summary, units};

pub use riops_measure::{dataset, engine, host, metrics, probe, run, script, server, workload};

pub use riops_report as report;

pub mod store;

pub mod fleet;

pub mod session;

pub mod experiment;

pub mod import;

pub mod gallery;

pub mod serve;
