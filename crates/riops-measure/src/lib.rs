//! Measures a database: from a plan and a server to a record.
//!
//! Each module uses only the modules above it. It must not know stores, reports, or other clients.

pub mod metrics;

pub mod host;

pub mod server;

pub mod script;

pub mod probe;

pub mod workload;

pub mod dataset;

pub mod engine;

pub mod run;
