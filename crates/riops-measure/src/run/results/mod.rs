//! The stages of the record, from what was measured: rates, summaries and shares.

pub(super) mod client;
pub(super) mod cost;
mod io;
pub(super) mod latencies;
pub(super) mod nodes;
pub(super) mod operations;
pub(super) mod session_loop;
pub(super) mod single;
pub(super) mod stage;
