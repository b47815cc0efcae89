//! Policies that apply to every workload: when transactions start, when a run stops, how statements are sent, how errors
//! are handled, and which part of it one of several clients runs.
//!
//! The parts together are the plan: session n belongs to the agent n modulo the number of agents, wherever it runs, and has
//! the same keys and random numbers there. So the same seed gives the same statements whatever the number of agents is.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::error::PlanError;
use crate::units::{Span, format::requested_rate};

/// Maximum number of sessions: far more than a server accepts without a pooler.
pub const SESSIONS_MAX: u32 = 10_000;

/// When the measurement stops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many seconds.
    DurationS(f64),
    /// After exactly this many transactions, summed over all sessions.
    Transactions(u64),
    /// After the transaction with which the number of rows, summed over all sessions, reaches this value.
    Rows(u64),
}

impl Stop {
    /// Returns the duration in seconds; `None` if the measurement stops by count.
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::DurationS(seconds) => Some(seconds),
            Self::Transactions(_) | Self::Rows(_) => None,
        }
    }

    /// Returns the number of transactions or rows; 0 for a duration.
    pub fn count(self) -> u64 {
        match self {
            Self::DurationS(_) => 0,
            Self::Transactions(count) | Self::Rows(count) => count,
        }
    }
}

/// Whether transactions count that are in flight when the time of a measurement is up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// They do not count: the measurement ends on time.
    #[default]
    Uncounted,
    /// They are completed, including their retries, and count: the measurement ends with the last one, as in sysbench.
    Counted,
    /// They count, but a failed one is not retried and counts nowhere: the measurement ends with its last transaction,
    /// which is earlier if no other start is due, as in pgbench.
    CountedOnce,
}

names!(Drain { Uncounted: "uncounted", Counted: "counted", CountedOnce: "counted-once" });

/// The intended start times of transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Closed loop: a transaction starts when the previous one has ended.
    #[default]
    Closed,
    /// Open loop with evenly spaced starts, over all sessions.
    Constant {
        /// Transactions per second, greater than 0.
        per_s: f64,
    },
    /// Open loop with a Poisson process, over all sessions: the arrivals of many independent users.
    Poisson {
        /// Average transactions per second, greater than 0.
        per_s: f64,
    },
    /// Open loop with a rate that changes during the measurement.
    Profile {
        /// The steps, one after the other. The warm-up has the rate at the start of the first one.
        steps: Vec<RateStep>,
        /// Whether the starts follow a Poisson process.
        #[serde(default, skip_serializing_if = "crate::units::is_default")]
        poisson: bool,
    },
}

impl Schedule {
    /// Returns the same schedule with this share of its rate.
    pub fn scaled(&self, share: f64) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Constant { per_s } => Self::Constant { per_s: per_s * share },
            Self::Poisson { per_s } => Self::Poisson { per_s: per_s * share },
            Self::Profile { steps, poisson } => {
                let scale = |step: &RateStep| RateStep {
                    from_per_s: step.from_per_s * share,
                    to_per_s: step.to_per_s * share,
                    ..*step
                };
                Self::Profile { steps: steps.iter().map(scale).collect(), poisson: *poisson }
            }
        }
    }

    /// Returns the transactions per second, on average, or `None` for a closed loop.
    pub fn per_s(&self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { per_s } | Self::Poisson { per_s } => Some(*per_s),
            Self::Profile { steps, .. } => Some(mean_per_s(steps)),
        }
    }

    /// Returns the steps of a profile; none of other schedules.
    pub fn steps(&self) -> &[RateStep] {
        match self {
            Self::Profile { steps, .. } => steps,
            Self::Closed | Self::Constant { .. } | Self::Poisson { .. } => &[],
        }
    }

    /// Returns the length of the profile, in seconds; `None` without one.
    pub fn profile_s(&self) -> Option<f64> {
        Some(length_s(self.steps())).filter(|_| !self.steps().is_empty())
    }

    /// Returns whether the intervals between starts are random.
    pub fn is_poisson(&self) -> bool {
        matches!(self, Self::Poisson { .. } | Self::Profile { poisson: true, .. })
    }

    /// Returns the name of the variant in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Constant { .. } => "constant",
            Self::Poisson { .. } => "poisson",
            Self::Profile { .. } => "profile",
        }
    }
}

/// Maximum rate, in transactions per second: more than any client can start.
pub(super) const RATE_MAX: f64 = 1e7;
/// Maximum number of steps: the latencies of each are recorded separately by each worker, in about 350 kB.
const STEPS_MAX: usize = 50;

/// A step of a profile: `500:30s`, or a ramp, `100..5000:2m`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Transactions per second at its start.
    pub from_per_s: f64,
    /// Transactions per second at its end.
    pub to_per_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
}

impl RateStep {
    /// Returns the number of intended starts.
    pub fn starts(self) -> f64 {
        f64::midpoint(self.from_per_s, self.to_per_s) * self.seconds
    }
}

impl FromStr for RateStep {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let step = || {
            let (rates, length) = text.split_once(':')?;
            let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
            let parse_rate = |text: &str| text.trim().replace('_', "").parse::<f64>().ok();
            let seconds = length.trim().parse::<Span>().ok()?.0.as_secs_f64();
            Some(Self { from_per_s: parse_rate(from)?, to_per_s: parse_rate(to)?, seconds })
        };
        let invalid =
            format!("\"{text}\" is not a step of a profile (examples: 500:30s, 100..5000:2m)");
        step().ok_or(PlanError(invalid))
    }
}

impl fmt::Display for RateStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", requested_rate(self.from_per_s))?;
        if self.to_per_s != self.from_per_s {
            write!(formatter, " to {}", requested_rate(self.to_per_s))?;
        }
        write!(formatter, "/s for {}", Span::of_seconds(self.seconds))
    }
}

/// Returns the length of a profile, in seconds.
fn length_s(steps: &[RateStep]) -> f64 {
    steps.iter().map(|step| step.seconds).sum()
}

/// Returns the mean rate of a profile, in transactions per second.
fn mean_per_s(steps: &[RateStep]) -> f64 {
    steps.iter().map(|step| step.starts()).sum::<f64>() / length_s(steps)
}

/// Checks the steps of a profile.
pub(super) fn validate_steps(steps: &[RateStep]) -> Result<(), PlanError> {
    let count = steps.len();
    require!(count <= STEPS_MAX, "--rate has {count} steps; at most {STEPS_MAX} are possible");
    let rates = 0.0..=RATE_MAX;
    for step in steps {
        require!(
            rates.contains(&step.from_per_s) && rates.contains(&step.to_per_s),
            "the rates of --rate must be between 0 and {RATE_MAX}, not {step}"
        );
        require!(
            !step.seconds.is_nan() && step.seconds > 0.0,
            "each step of --rate must have a length, not {step}"
        );
    }
    Ok(())
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Extended query protocol with named prepared statements: parsed once per session, binary parameters.
    #[default]
    Prepared,
    /// Extended query protocol with the unnamed statement: parsed each time, binary parameters.
    Extended,
    /// Simple query protocol, with the values in the statement text.
    Simple,
}

names!(Protocol { Prepared: "prepared", Extended: "extended", Simple: "simple" });

/// VACUUM of the tables before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vacuum {
    /// Without further work.
    Plain,
    /// With the statistics of the planner.
    Analyze,
    /// With all row versions frozen, and the statistics.
    Freeze,
}

names!(Vacuum { Plain: "plain", Analyze: "analyze", Freeze: "freeze" });

/// The state of the server before the warm-up, so that runs start alike.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CleanStart {
    /// VACUUM of the tables of the dataset.
    pub vacuum: Option<Vacuum>,
    /// CHECKPOINT, after VACUUM.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub checkpoint: bool,
    /// Pause after both, in seconds.
    pub settle_s: Option<f64>,
}

/// How a worker waits for its sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// `io_uring` if it is available, otherwise `epoll`.
    #[default]
    Auto,
    /// `epoll`: a system call for each send and for each receive.
    Epoll,
    /// `io_uring`: one system call for all that is due.
    IoUring,
}

names!(Driver { Auto: "auto", Epoll: "epoll", IoUring: "io-uring" });

/// The reaction to an error that is not retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops. The results until then are stored.
    #[default]
    Stop,
    /// The transaction is counted as failed, and the session continues with the next one.
    Continue,
    /// The transaction is counted as failed, and its session ends; the others continue. After the failure of the last
    /// retry, the session continues too.
    #[serde(rename = "end-session")]
    EndSession,
}

/// The handling of errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default)]
pub struct ErrorPolicy {
    /// Maximum number of retries of a transaction after serialization failures and deadlocks.
    #[default = 10]
    pub max_retries: u32,
    /// Reaction to any other statement error, and to the failure of the last retry.
    pub on_error: OnError,
    /// Whether a retry draws new random values, without a pause, instead of sending the same bytes.
    pub redraw: bool,
    /// Timeout for reconnecting a session after its connection was lost, in seconds.
    #[default = 10.0]
    pub reconnect_timeout_s: f64,
}

/// The latency limit, and the handling of late transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// Maximum response time, in seconds. A transaction above it is late.
    pub limit_s: f64,
    /// Whether transactions that are already late before they are sent are skipped.
    pub skip: bool,
}

/// The state of the caches at the start of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caches {
    /// Unchanged.
    #[default]
    AsFound,
    /// Without the dataset; otherwise the run is invalid.
    Cold,
    /// Without the dataset, as far as permitted.
    ColdTry,
    /// With as much of the dataset as fits.
    Warm,
}

/// Whether a run prepares a dataset that is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreparePolicy {
    /// Only on the embedded server: a database named by the user is not filled without their consent.
    #[default]
    Embedded,
    /// On every server.
    IfMissing,
}

/// Whether a plan may execute commands of the shell and write files. It is not data: only a person can give it, and a plan
/// that was read does not have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trust(pub bool);

impl PartialEq for Trust {
    /// Plans that differ only in this describe the same run.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Something about a command line that is not a part of what is run: plans that differ only in this are equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unrecorded(pub bool);

impl PartialEq for Unrecorded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Which of several clients runs a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of the agent, from 0.
    pub agent: u32,
    /// Number of agents.
    pub agents: u32,
}

impl Share {
    /// Whether a session of the whole plan, counted from 0, belongs to the agent.
    pub fn has(self, session: u32) -> bool {
        session.checked_rem(self.agents) == Some(self.agent)
    }

    /// Returns the number of its sessions, of all sessions of the plan.
    pub fn sessions_of(self, all: u32) -> u32 {
        all.saturating_sub(self.agent).div_ceil(self.agents.max(1))
    }

    /// Returns the number in the whole plan of one of its sessions, both counted from 0.
    pub fn session(self, own: u64) -> u64 {
        u64::from(self.agent) + own * u64::from(self.agents)
    }

    /// Returns the rows that the agent loads, of all rows in batches of this size: whole batches, one after another.
    pub fn rows_of(self, rows: u64, batch: u64) -> Range<u64> {
        let batches = rows.div_ceil(batch.max(1));
        let first = |agent: u32| {
            let batches_before =
                u128::from(batches) * u128::from(agent) / u128::from(self.agents.max(1));
            u64::try_from(batches_before).unwrap_or(batches).saturating_mul(batch).min(rows)
        };
        first(self.agent)..first(self.agent + 1)
    }

    /// Returns the part of `count` units that belongs to the agent if each of all sessions has the same number, and the
    /// first ones one more for the rest.
    pub(super) fn part_of(self, count: u64, sessions: u32) -> u64 {
        let (own, all) = (u64::from(self.sessions_of(sessions)), u64::from(sessions.max(1)));
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of sessions")]
        let rest = (count % all) as u32;
        own * (count / all) + u64::from(self.sessions_of(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_or_two_rates_and_a_length() {
        let step =
            |text: &str| text.parse::<RateStep>().map(|step| (step.to_string(), step.starts()));
        assert_eq!(step("500:30s"), Ok(("500/s for 30s".to_owned(), 15_000.0)));
        assert_eq!(step("100..5_000:2m"), Ok(("100 to 5,000/s for 2m".to_owned(), 306_000.0)));
        for text in ["", "500", "500:", ":30s", "500..:30s", "a:30s", "500:30x", "1..2..3:5s"] {
            assert!(step(text).unwrap_err().0.contains("100..5000:2m"), "{text}");
        }
    }

    #[test]
    fn the_mean_weighs_each_step_by_its_length() {
        let steps = ["0..1000:10s", "2000:30s"].map(|text| text.parse().unwrap());
        assert_eq!((length_s(&steps), mean_per_s(&steps)), (40.0, 1_625.0));
    }
}
