//! The record of one run: plain data, versioned, the only input of reports.
//!
//! Schema 1. Changes only add fields, so every later version can read the records of this one. Field names
//! include the unit. An absent value was not measured; it never means zero.
//!
//! These types are the vocabulary of everything that measures, stores and shows: a measured value has one type. The
//! stored JSON is protected by the serde attributes and by the frozen records of the tests.

mod censored;
mod check;
pub mod checked_statement;
mod client;
mod counts;
mod database;
pub mod dataset;
mod device;
pub mod diagnosis;
mod event;
#[cfg(any(test, feature = "examples"))]
pub mod example;
#[cfg(any(test, feature = "examples"))]
pub mod example_cbc;
mod experiment_id;
mod histogram;
mod latency;
mod live;
mod operation;
mod probes;
mod profile;
mod rate;
mod run;
mod samples;
mod schedule;
mod series;
mod session_loop;
mod stage;
mod statement;
mod target;

pub use crate::plan::LatencyKind;
pub use censored::*;
pub use check::*;
pub use client::*;
pub use counts::*;
pub use database::*;
pub use device::*;
pub use event::*;
pub use experiment_id::*;
pub use histogram::*;
pub use latency::*;
pub use live::*;
pub use operation::*;
pub use probes::*;
pub use profile::*;
pub use rate::*;
pub use run::*;
pub use samples::*;
pub use schedule::*;
pub use series::*;
pub use session_loop::*;
pub use stage::*;
pub use statement::*;
pub use target::*;

/// Version of the record format.
pub const SCHEMA: u32 = 1;
