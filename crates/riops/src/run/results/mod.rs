//! The stages of the record, from what was measured: rates, summaries and shares.

mod client;
mod cost;
mod io;
mod latencies;
mod mix;
mod nodes;
mod operations;
mod session_loop;
mod single;
mod stage;

pub(super) use client::loops_are_shared;
pub(super) use cost::cost;
pub(super) use latencies::latencies;
pub(super) use mix::mix_of;
pub(super) use nodes::imbalance_of;
pub(super) use operations::SESSIONS_STORED_MAX;
pub(super) use session_loop::stage;
pub(super) use single::{observed, statement};
pub(super) use stage::throughput;
