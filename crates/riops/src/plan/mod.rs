//! What to run: plain data, as it is kept in the record and read back from it.
//!
//! Reads no command line, no file and no clock.

mod rows;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use rows::{Distribution, Order, RowsDataset, RowsRun};

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many seconds on the clock.
    DurationS(f64),
    /// After exactly this many transactions, over all sessions.
    Transactions(u64),
    /// With the transaction that brings the rows, over all sessions, to at least this many.
    Rows(u64),
}

/// Which intended start each transaction has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The next one starts when the last one has ended: the closed loop.
    #[default]
    Closed,
    /// Starts at even distances on the clock, over all sessions.
    Constant {
        /// Transactions per second, above 0.
        per_s: f64,
    },
}

/// Everything about a run that its user decided, with the defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// What the sessions do.
    pub rows: RowsRun,
    /// Connections that do the work.
    pub sessions: u32,
    /// Threads that drive them.
    pub workers: u32,
    /// Which intended start each transaction has.
    pub schedule: Schedule,
    /// Seconds before counting starts.
    pub warmup_s: f64,
    /// When counting ends.
    pub stop: Stop,
    /// Seconds of each point of the time series.
    pub interval_s: f64,
    /// From which all random streams are derived.
    pub seed: u64,
    /// Whether the acknowledged changes are counted in the database afterwards.
    pub verify: bool,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// More of them, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// Sessions that one client may open: far more than a server takes without a pooler.
pub const SESSIONS_MAX: u32 = 10_000;
/// Points of a time series that are kept.
pub const SERIES_POINTS_MAX: usize = 100_000;
/// The longest run: 30 days.
const DURATION_S_MAX: f64 = 30.0 * 86_400.0;
/// The shortest interval: below it the figures are mostly noise.
const INTERVAL_S_MIN: f64 = 0.1;

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub(crate) String);

impl RunPlan {
    /// Checks what can be checked without a target.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    pub fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--sessions", u64::from(self.sessions))?;
        at_least_one("--workers", u64::from(self.workers))?;
        if self.sessions > SESSIONS_MAX {
            return refuse(format!("--sessions {} is more than {SESSIONS_MAX}", self.sessions));
        }
        if self.workers > self.sessions {
            return refuse(format!(
                "--workers {} is more than --sessions {}: a session is driven by one worker",
                self.workers, self.sessions
            ));
        }
        if !(self.interval_s >= INTERVAL_S_MIN && self.interval_s <= 3600.0) {
            return refuse(format!(
                "--interval must be between 100ms and 1h, not {} s",
                self.interval_s
            ));
        }
        match self.stop {
            Stop::DurationS(seconds) => {
                if !(seconds > 0.0 && seconds <= DURATION_S_MAX) {
                    return refuse(format!(
                        "--duration must be above 0 and at most 30 days, not {seconds} s"
                    ));
                }
                if seconds / self.interval_s > SERIES_POINTS_MAX as f64 {
                    return refuse(format!(
                        "--interval {} s over {seconds} s makes more than {SERIES_POINTS_MAX} points: use a longer interval",
                        self.interval_s
                    ));
                }
            }
            Stop::Transactions(count) => at_least_one("--transactions", count)?,
            Stop::Rows(count) => at_least_one("--total-rows", count)?,
        }
        if !(self.warmup_s >= 0.0 && self.warmup_s <= DURATION_S_MAX) {
            return refuse(format!("--warmup must be at most 30 days, not {} s", self.warmup_s));
        }
        let names = self.label.iter().chain(self.tags.keys()).chain(self.tags.values());
        if let Some(name) = names.into_iter().find(|name| name.chars().any(char::is_control)) {
            return refuse(format!("--label and --tag take no control characters: {name:?}"));
        }
        self.rows.validate()
    }

    /// The length of the warm-up.
    #[must_use]
    pub fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s)
    }

    /// The length of an interval of the time series.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval_s)
    }
}

fn refuse<T>(message: String) -> Result<T, PlanError> {
    Err(PlanError(message))
}

fn at_least_one(option: &str, value: u64) -> Result<(), PlanError> {
    if value == 0 {
        return refuse(format!("{option} must be at least 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> RunPlan {
        RunPlan {
            rows: RowsRun::default(),
            sessions: 2,
            workers: 2,
            schedule: Schedule::Closed,
            warmup_s: 2.0,
            stop: Stop::DurationS(10.0),
            interval_s: 1.0,
            seed: 1,
            verify: true,
            label: None,
            tags: BTreeMap::new(),
        }
    }

    #[test]
    fn a_plan_survives_its_own_json() {
        let json = serde_json::to_string(&plan()).unwrap();
        assert_eq!(serde_json::from_str::<RunPlan>(&json).unwrap(), plan());
    }

    #[test]
    fn absurd_numbers_are_refused_by_the_name_of_their_option() {
        type Change = fn(&mut RunPlan);
        let cases: [(Change, &str); 13] = [
            (|plan| plan.label = Some("red\u{1b}[31m".to_owned()), "--label"),
            (|plan| plan.sessions = 0, "--sessions"),
            (|plan| plan.sessions = 1_000_000, "--sessions"),
            (|plan| plan.workers = 0, "--workers"),
            (|plan| plan.workers = 3, "--workers"),
            (|plan| plan.stop = Stop::DurationS(0.0), "--duration"),
            (|plan| plan.stop = Stop::DurationS(1e12), "--duration"),
            (|plan| plan.stop = Stop::DurationS(864_000.0), "--interval"),
            (|plan| plan.stop = Stop::Transactions(0), "--transactions"),
            (|plan| plan.stop = Stop::Rows(0), "--total-rows"),
            (|plan| plan.warmup_s = f64::INFINITY, "--warmup"),
            (|plan| plan.interval_s = 0.0, "--interval"),
            (|plan| plan.rows.batch = 0, "--batch"),
        ];
        for (change, option) in cases {
            let mut plan = plan();
            assert_eq!(plan.validate(), Ok(()));
            change(&mut plan);
            let error = plan.validate().unwrap_err().to_string();
            assert!(error.contains(option), "{error}");
        }
    }
}
