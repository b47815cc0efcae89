//! The three outputs of pgbench. Source of the formats: the manual of pgbench 15 to 18, and files that it wrote.

mod aggregate;
mod log;
mod report;
mod values;

pub(super) use aggregate::aggregate;
pub(super) use log::log;
pub(super) use report::PgbenchReport;

use crate::record::{ErrorEntry, LateRecord, Outcomes};

/// Name of the tool in records.
const TOOL: &str = "pgbench";

/// Why a number cannot be used: it, or a sum with it, does not fit.
const OUT_OF_RANGE: &str = "a number is out of range";

/// Returns the second of a time in a log, in seconds since 1970: at most the latest time that can be stored.
fn second(epoch_s: i64) -> Result<i64, String> {
    let range = 0..=jiff::Timestamp::MAX.as_second();
    if range.contains(&epoch_s) { Ok(epoch_s) } else { Err(OUT_OF_RANGE.to_owned()) }
}

/// Returns the errors that occurred, by their SQLSTATE; an empty one is unknown.
fn errors<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<ErrorEntry> {
    let entry = |(sqlstate, count): (&str, u64)| ErrorEntry {
        sqlstate: sqlstate.to_owned(),
        count,
        ..ErrorEntry::default()
    };
    let occurred = |(sqlstate, count): &(&str, u64)| !sqlstate.is_empty() && *count > 0;
    counts.into_iter().filter(occurred).map(entry).collect()
}

fn outcomes(succeeded: u64, failed: u64) -> Outcomes {
    Outcomes { attempted: succeeded + failed, succeeded, failed, unknown: 0 }
}

/// The starts that were skipped in a log, which does not contain the limit.
fn skipped(skipped: u64) -> Option<LateRecord> {
    (skipped > 0).then_some(LateRecord { limit_us: None, transactions: None, skipped })
}
