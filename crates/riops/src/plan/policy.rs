//! Policies that apply to every workload: when transactions start, when a run stops, how statements are sent,
//! and how errors are handled.

use serde::{Deserialize, Serialize};

use super::names::names;
use super::profile::{RateStep, length_s, mean_per_s};

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
    /// Returns the name of the variant in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DurationS(_) => "duration_s",
            Self::Transactions(_) => "transactions",
            Self::Rows(_) => "rows",
        }
    }

    /// Returns the duration in seconds; `None` if the measurement stops by count.
    #[must_use]
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::DurationS(seconds) => Some(seconds),
            Self::Transactions(_) | Self::Rows(_) => None,
        }
    }

    /// Returns the number of transactions or rows; 0 for a duration.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Self::DurationS(_) => 0,
            Self::Transactions(count) | Self::Rows(count) => count,
        }
    }
}

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
        /// Whether the starts are those of a Poisson process.
        #[serde(default, skip_serializing_if = "crate::units::is_default")]
        poisson: bool,
    },
}

impl Schedule {
    /// Returns the transactions per second, on average, or `None` for a closed loop.
    #[must_use]
    pub fn per_s(&self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { per_s } | Self::Poisson { per_s } => Some(*per_s),
            Self::Profile { steps, .. } => Some(mean_per_s(steps)),
        }
    }

    /// Returns the steps of a profile; none of other schedules.
    #[must_use]
    pub fn steps(&self) -> &[RateStep] {
        match self {
            Self::Profile { steps, .. } => steps,
            Self::Closed | Self::Constant { .. } | Self::Poisson { .. } => &[],
        }
    }

    /// Returns the length of the profile, in seconds; `None` without one.
    #[must_use]
    pub fn profile_s(&self) -> Option<f64> {
        Some(length_s(self.steps())).filter(|_| !self.steps().is_empty())
    }

    /// Returns whether the intervals between starts are random.
    #[must_use]
    pub fn is_poisson(&self) -> bool {
        matches!(self, Self::Poisson { .. } | Self::Profile { poisson: true, .. })
    }

    /// Returns the name of the variant in JSON.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Constant { .. } => "constant",
            Self::Poisson { .. } => "poisson",
            Self::Profile { .. } => "profile",
        }
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorPolicy {
    /// Maximum number of retries of a transaction after serialization failures and deadlocks.
    pub max_retries: u32,
    /// Reaction to any other statement error, and to the failure of the last retry.
    pub on_error: OnError,
    /// Timeout for reconnecting a session after its connection was lost, in seconds.
    pub reconnect_timeout_s: f64,
}

impl Default for ErrorPolicy {
    fn default() -> Self {
        Self { max_retries: 10, on_error: OnError::Stop, reconnect_timeout_s: 10.0 }
    }
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

/// Whether a plan may execute commands of the shell and write files. It is no data: only a person can give it, and a plan
/// that was read does not have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trust(pub bool);

impl PartialEq for Trust {
    /// Plans that differ only in this describe the same run.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
