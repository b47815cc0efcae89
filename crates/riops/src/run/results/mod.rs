//! The stages of the record, from what was measured: rates, summaries and shares.

mod client;
mod cost;
mod io;
mod latencies;
mod mix;
mod neighbors;
mod nodes;
mod observed;
mod operations;
mod session_loop;
mod sessions;
mod stage;
mod statement;

pub(super) use client::loops_are_shared;
pub(super) use cost::cost;
pub(super) use latencies::latencies;
pub(super) use mix::mix_of;
pub(super) use nodes::imbalance_of;
pub(super) use observed::observed;
pub(super) use session_loop::stage;
pub(super) use sessions::SESSIONS_STORED_MAX;
pub(super) use stage::throughput;
pub(super) use statement::statement;
