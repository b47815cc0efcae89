//! The forms of other tools.

pub(super) mod cbc;
pub(super) mod pgbench;
pub(super) mod pgio;
pub(super) mod sysbench;
pub(super) mod ysql_bench;

pub use pgio::pgio_sessions;
