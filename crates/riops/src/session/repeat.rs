//! Several runs of one plan, with a common tag and a pause in between.

use std::time::Duration;

use uuid::Uuid;

use super::{FAILED, INTERRUPTED, NOT_VALID, Session, exit_code};
use crate::plan::Plan;
use crate::record::{Record, Status};
use crate::units::Span;

/// Tag that repeated runs have in common.
pub const REPEAT_TAG: &str = "repeat";
/// Characters of the value of the tag: the end of a UUID.
const TAG_CHARS: usize = 8;

/// How often a plan is run, and the pause between two runs, in which writes in progress and background work of the server end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    /// Number of runs.
    pub count: u32,
    /// Pause.
    pub settle: Duration,
}

/// The runs, until one failed or was interrupted.
#[derive(Debug)]
pub struct Repeated {
    /// Their records.
    pub records: Vec<Record>,
    /// Their tag: `repeat=VALUE`.
    pub tag: String,
}

impl Session<'_> {
    /// Runs a plan several times: `run` gets it with the common tag and the number of the run, and returns the record.
    ///
    /// # Errors
    /// The error of `run`.
    pub fn repeat<E>(
        &self,
        plan: &Plan,
        repeats: Repeats,
        mut run: impl FnMut(u32, &Plan) -> Result<Record, E>,
    ) -> Result<Repeated, E> {
        let mut plan = plan.clone();
        let id = Uuid::now_v7().simple().to_string();
        let value = id.get(id.len() - TAG_CHARS..).unwrap_or(&id).to_owned();
        let value = plan.tags.entry(REPEAT_TAG.to_owned()).or_insert(value).clone();
        let mut repeated = Repeated { records: Vec::new(), tag: format!("{REPEAT_TAG}={value}") };
        for position in 1..=repeats.count {
            if position > 1 {
                let pause = Span(repeats.settle);
                self.events.notice(&format!("pause of {pause} before the next run"));
                if !self.interrupt.pause(repeats.settle) {
                    break;
                }
            }
            let record = run(position, &plan)?;
            let is_done = record.status == Status::Done;
            repeated.records.push(record);
            if !is_done {
                break;
            }
        }
        Ok(repeated)
    }
}

/// Returns the exit code of the worst run: interrupted, failed, invalid, or with a breached threshold.
pub fn worst_exit_code(records: &[Record]) -> u8 {
    let severity = |code: u8| match code {
        0 => 0,
        INTERRUPTED => 4,
        FAILED => 3,
        NOT_VALID => 2,
        _ => 1,
    };
    records.iter().map(exit_code).max_by_key(|&code| severity(code)).unwrap_or_default()
}
