//! The exit codes of runs: processes end with them, and the agents of a fleet exchange the exit code of their run.

use crate::record::{ObservedRecord, Record, Status};

/// An operation failed.
pub const FAILED: u8 = 1;
/// The run completed, but its result is not valid.
pub const NOT_VALID: u8 = 3;
/// The run completed and is valid, but breached a threshold.
pub const BREACHED: u8 = 99;
/// Interrupted by the user.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit code of a run: the observed command's exit code, if that command failed.
pub fn exit_code(record: &Record) -> u8 {
    let observed = record.stages.iter().find_map(|stage| stage.observed.as_ref());
    if let Some(code) = observed.and_then(ObservedRecord::shell_code).filter(|&code| code != 0) {
        return u8::try_from(code).unwrap_or(FAILED);
    }
    match record.status {
        Status::Interrupted => INTERRUPTED,
        Status::Failed => FAILED,
        Status::Done if !record.verdict.valid => NOT_VALID,
        Status::Done if record.thresholds.iter().any(|threshold| !threshold.held) => BREACHED,
        Status::Done => 0,
    }
}
