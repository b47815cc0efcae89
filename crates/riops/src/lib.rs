//! riops measures PostgreSQL-compatible databases.
//!
//! Data flows one way, and so do the modules: each uses only those above it.
//! The library never prints and never exits; `plan`, `metrics` and `report` are pure.

pub mod units;

pub mod plan;

pub mod metrics;

pub mod target;

pub mod probe;

pub mod workload;

pub mod engine;

pub mod store;

pub mod report;
