//! Integration tests: the riops binary against the embedded PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test panics at the first unexpected value"
)]

mod aging;
mod bad_input;
mod between;
mod cbc;
mod cbc_drop_in;
mod certificates;
mod cluster;
mod compare;
mod connect;
mod costs;
mod crash;
mod devices;
mod docs;
mod driver;
mod errors;
mod experiment_reset;
mod faults;
mod files;
mod fixture;
mod fleet;
mod fleet_experiment;
mod fleet_network;
mod gallery;
mod gate;
mod harness;
mod help;
mod hijack;
mod hints;
mod hostile;
mod libpq;
mod libpq_forms;
mod library;
mod live;
mod load;
mod locks;
mod neighbors;
mod nodes;
mod notes;
mod observe;
mod oltp;
mod originals;
mod other_servers;
mod ownership;
mod part;
mod password;
mod pgbench;
mod pgbench_groups;
mod pgbench_messages;
mod pgio;
mod ping;
mod point;
mod portable;
mod push;
mod releases;
mod report;
mod rerun;
mod response;
mod rights;
mod rows;
mod script;
mod script_run;
mod serve;
mod server;
mod server_loop;
mod silence;
mod sources;
mod space;
mod stalls;
mod store;
mod stores;
mod storing;
mod sweep;
mod sysbench;
mod title;
mod trust;
mod verification;
mod ybio;
mod yugabytedb;
