//! The built command against a real PostgreSQL: the embedded one.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has to fail there"
)]

mod bad_input;
mod between;
mod cbc;
mod certificates;
mod cluster;
mod connect;
mod crash;
mod faults;
mod fixture;
mod help;
mod library;
mod load;
mod nodes;
mod oltp;
mod pgio;
mod ping;
mod point;
mod rerun;
mod rows;
mod server;
mod server_loop;
mod sources;
mod store;
mod title;
mod ybio;
mod yugabytedb;
