//! Decisions that are the same for every workload: when transactions start and when they end, how they are
//! sent, what happens after an error.

use serde::{Deserialize, Serialize};

/// Sessions that one client may open: far more than a server takes without a pooler.
pub const SESSIONS_MAX: u32 = 10_000;

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
    /// Starts at random distances, over all sessions: as many independent users make them.
    Poisson {
        /// Transactions per second on average, above 0.
        per_s: f64,
    },
}

impl Schedule {
    /// Transactions per second, where a rate is set.
    #[must_use]
    pub fn per_s(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { per_s } | Self::Poisson { per_s } => Some(per_s),
        }
    }
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Parsed once for each session, then executed by name with binary values.
    #[default]
    Prepared,
    /// Parsed, bound and executed each time, with binary values.
    Extended,
    /// As text with the values in it.
    Simple,
}

impl Protocol {
    /// As it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Extended => "extended",
            Self::Simple => "simple",
        }
    }
}

/// What happens after an error that a retry cannot mend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run ends; what was measured is kept.
    #[default]
    Stop,
    /// The transaction is counted as failed, and the session goes on with the next.
    Continue,
}

/// How errors are met.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorPolicy {
    /// How often a transaction is sent again after a serialization failure or a deadlock.
    pub max_retries: u32,
    /// What happens after any other error of a statement, and when the retries are used up.
    pub on_error: OnError,
    /// How long a session whose connection broke tries to get another one, in seconds.
    pub reconnect_timeout_s: f64,
}

impl Default for ErrorPolicy {
    fn default() -> Self {
        Self { max_retries: 10, on_error: OnError::Stop, reconnect_timeout_s: 10.0 }
    }
}

/// When a transaction is late, and what happens to it then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// A longer response time is late, in seconds.
    pub limit_s: f64,
    /// Whether a transaction that could only become late is not sent at all.
    pub skip: bool,
}

/// In which state the caches are when a stage starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caches {
    /// As they are.
    #[default]
    AsFound,
    /// Without the dataset, as far as that can be done.
    Cold,
    /// With as much of the dataset as fits.
    Warm,
}

/// Whether a run prepares a dataset that is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreparePolicy {
    /// On the embedded server only: a database that somebody named is not filled without being asked.
    #[default]
    Embedded,
    /// On every server.
    IfMissing,
}
