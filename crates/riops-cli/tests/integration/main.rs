//! Integration tests: the riops binary against the embedded PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test panics at the first unexpected value"
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
mod verification;
mod ybio;
mod yugabytedb;
