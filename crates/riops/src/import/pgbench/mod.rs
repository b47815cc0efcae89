//! The three outputs of pgbench. Source of the formats: the manual of pgbench 15 to 18, and files that it wrote.

mod aggregate;
mod log;
mod report;

pub(super) use aggregate::aggregate;
pub(super) use log::log;
pub(super) use report::text;

/// Name of the tool in records.
const TOOL: &str = "pgbench";
