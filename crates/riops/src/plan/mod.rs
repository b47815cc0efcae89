//! What to run: plain data, as it is kept in the record and read back from it.
//!
//! Reads no command line, no file and no clock.

mod cbc;
mod load;
mod oltp;
pub mod pgio;
mod rows;
mod spread;
mod threshold;
mod work;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cbc::{CbcDataset, CbcPlace, CbcRun, CbcSize, copies};
pub use load::{Contents, LoadDataset, LoadRun, Method, PointOperations, PointRun};
pub use oltp::{OltpDataset, OltpRun, OltpTest};
pub use rows::{
    BLOCK_FILLER, Caches, Distribution, Layout, LoopSide, Order, RowsDataset, RowsRun, UpdateShare,
};
pub use spread::Spread;
pub use threshold::{Metric, Quantity, Threshold, TimeKind};
pub use work::{DatasetPlan, WorkPlan};

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

/// Everything about a run that its user decided, with the defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct RunPlan {
    /// What the sessions do.
    #[serde(flatten)]
    pub work: WorkPlan,
    /// Connections that do the work.
    pub sessions: u32,
    /// Threads that drive them.
    pub workers: u32,
    /// Which intended start each transaction has.
    pub schedule: Schedule,
    /// How statements are sent.
    #[serde(default)]
    pub protocol: Protocol,
    /// Transactions that a session may have under way at once.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// A new connection after this many transactions of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u64>,
    /// How errors are met.
    #[serde(default)]
    pub errors: ErrorPolicy,
    /// Which node of a cluster each session goes to.
    #[serde(default)]
    pub spread: Spread,
    /// Whether sessions go home when the node that they had to leave is back.
    #[serde(default)]
    pub rebalance: bool,
    /// The port of the nodes at which YugabyteDB tells its metrics.
    #[serde(default = "metrics_port")]
    pub metrics_port: u16,
    /// How long connecting all sessions may take, in seconds; absent: as long as each connection may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_within_s: Option<f64>,
    /// The percentile of the points of the time series, in percent.
    #[serde(default = "percentile")]
    pub percentile: f64,
    /// When a transaction is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit: Option<LatencyLimit>,
    /// What the result has to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// Whether a breached threshold ends the run.
    #[serde(default)]
    pub abort_on_threshold: bool,
    /// Whether a result that the client limited is not valid.
    #[serde(default)]
    pub strict: bool,
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
    /// Whether single transactions are kept, for a picture.
    #[serde(default)]
    pub keep_samples: bool,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// More of them, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

impl Default for RunPlan {
    /// The defaults of the command line, for one session and with the seed 0.
    fn default() -> Self {
        Self {
            work: WorkPlan::Rows(RowsRun::default()),
            sessions: 1,
            workers: 1,
            schedule: Schedule::Closed,
            protocol: Protocol::Prepared,
            pipeline: 1,
            reconnect_every: None,
            errors: ErrorPolicy::default(),
            spread: Spread::default(),
            rebalance: false,
            metrics_port: metrics_port(),
            connect_within_s: None,
            percentile: percentile(),
            latency_limit: None,
            thresholds: Vec::new(),
            abort_on_threshold: false,
            strict: false,
            warmup_s: 2.0,
            stop: Stop::DurationS(10.0),
            interval_s: 1.0,
            seed: 0,
            verify: true,
            keep_samples: false,
            label: None,
            tags: BTreeMap::new(),
        }
    }
}

fn one() -> u32 {
    1
}

/// The tserver's.
fn metrics_port() -> u16 {
    9000
}

/// As in sysbench.
fn percentile() -> f64 {
    95.0
}

/// Sessions that one client may open: far more than a server takes without a pooler.
pub const SESSIONS_MAX: u32 = 10_000;
/// Points of a time series that are kept.
pub const SERIES_POINTS_MAX: usize = 100_000;
/// Transactions under way on one session: the wire protocol's part counts up to it.
const PIPELINE_MAX: usize = riops_wire::pipeline::BATCHES_MAX;
/// More starts a second than any client makes.
const RATE_MAX: f64 = 1e7;
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
        // First: its options may be where the others come from.
        self.work.validate()?;
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
        if self.pipeline == 0 || self.pipeline as usize > PIPELINE_MAX {
            return refuse(format!(
                "--pipeline must be between 1 and {PIPELINE_MAX}, not {}",
                self.pipeline
            ));
        }
        if let Some(per_s) = self.schedule.per_s()
            && !(per_s > 0.0 && per_s <= RATE_MAX)
        {
            return refuse(format!("--rate must be above 0 and at most {RATE_MAX}, not {per_s}"));
        }
        if let Some(every) = self.reconnect_every {
            at_least_one("--reconnect", every)?;
        }
        self.validate_time_limits()?;
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
        if !(self.percentile >= 1.0 && self.percentile <= 100.0) {
            return refuse(format!(
                "--percentile must be between 1 and 100, not {}",
                self.percentile
            ));
        }
        if let Some(seconds) = self.connect_within_s
            && !(seconds > 0.0 && seconds <= DURATION_S_MAX)
        {
            return refuse(format!(
                "--thread-init-timeout must be above 0 and at most 30 days, not {seconds} s"
            ));
        }
        if self.rebalance && matches!(self.spread, Spread::Off | Spread::LeastConnections) {
            return refuse(format!(
                "--rebalance and --spread {} contradict each other: sessions have no home to go back to",
                self.spread
            ));
        }
        let names = self.label.iter().chain(self.tags.keys()).chain(self.tags.values());
        if let Some(name) = names.into_iter().find(|name| name.chars().any(char::is_control)) {
            return refuse(format!("--label and --tag take no control characters: {name:?}"));
        }
        if let WorkPlan::Oltp(run) = &self.work {
            if self.pipeline > 1 {
                return refuse(
                    "--pipeline of oltp sends the statements of one transaction together, and takes no number"
                        .to_owned(),
                );
            }
            if run.pipeline && run.skip_trx {
                return refuse(
                    "--pipeline and --skip-trx contradict each other: what is sent together is one transaction"
                        .to_owned(),
                );
            }
        }
        self.validate_server_loop()
    }

    /// What the loop in the server cannot do: everything that is decided for each transaction.
    fn validate_server_loop(&self) -> Result<(), PlanError> {
        let WorkPlan::Rows(rows) = &self.work else {
            return Ok(());
        };
        if !rows.has_server_loop() {
            return Ok(());
        }
        let client_only = [
            ("--rebalance", self.rebalance),
            ("--graph", self.keep_samples),
            ("--rate", self.schedule != Schedule::Closed),
            ("--latency-limit", self.latency_limit.is_some()),
            ("--pipeline", self.pipeline > 1),
            ("--reconnect", self.reconnect_every.is_some()),
            ("--protocol extended", self.protocol == Protocol::Extended),
        ];
        match client_only.iter().find(|(_, used)| *used) {
            Some((option, _)) => refuse(format!(
                "{option} goes with --loop client only: the server-side loop is one call a session"
            )),
            None => Ok(()),
        }
    }

    fn validate_time_limits(&self) -> Result<(), PlanError> {
        if let Some(LatencyLimit { limit_s, skip }) = self.latency_limit {
            if !(limit_s > 0.0 && limit_s <= 3600.0) {
                return refuse(format!(
                    "--latency-limit must be above 0 and at most 1h, not {limit_s} s"
                ));
            }
            if skip && !matches!(self.stop, Stop::DurationS(_)) {
                return refuse(
                    "--skip-late goes with --duration only: what is skipped is no transaction that a number could count"
                        .to_owned(),
                );
            }
            if skip && self.schedule == Schedule::Closed {
                return refuse(
                    "--skip-late needs --rate: without intended starts nothing is late before it is sent"
                        .to_owned(),
                );
            }
        }
        let timeout_s = self.errors.reconnect_timeout_s;
        if !(0.0..=DURATION_S_MAX).contains(&timeout_s) {
            return refuse(format!(
                "--reconnect-timeout must be at most 30 days, not {timeout_s} s"
            ));
        }
        if self.latency_limit.is_none()
            && let Some(late) =
                self.thresholds.iter().find(|threshold| threshold.metric == Metric::Late)
        {
            return refuse(format!(
                "--threshold '{late}' needs --latency-limit: without it nothing is late"
            ));
        }
        let response = |threshold: &&Threshold| {
            matches!(threshold.metric, Metric::Time(TimeKind::Response, _) | Metric::Waiting)
        };
        match self.thresholds.iter().find(response) {
            Some(threshold) if self.schedule == Schedule::Closed => refuse(format!(
                "--threshold '{threshold}' needs --rate: without intended starts there is none"
            )),
            _ => Ok(()),
        }
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
            sessions: 2,
            workers: 2,
            thresholds: vec!["p99<10ms".parse().unwrap()],
            ..RunPlan::default()
        }
    }

    #[test]
    fn a_plan_survives_its_own_json() {
        let json = serde_json::to_string(&plan()).unwrap();
        assert_eq!(serde_json::from_str::<RunPlan>(&json).unwrap(), plan());
    }

    #[test]
    fn a_plan_of_an_older_version_can_be_read() {
        let mut json = serde_json::to_value(plan()).unwrap();
        for added in [
            "protocol",
            "pipeline",
            "errors",
            "thresholds",
            "abort_on_threshold",
            "strict",
            "keep_samples",
            "spread",
            "rebalance",
            "metrics_port",
            "percentile",
        ] {
            json.as_object_mut().unwrap().remove(added);
        }
        for added in ["update_share", "loop", "caches", "non_transactional"] {
            json["rows"].as_object_mut().unwrap().remove(added).unwrap();
        }
        json["rows"]["update_batch"] = 7.into();
        let read: RunPlan = serde_json::from_value(json).unwrap();
        let work = WorkPlan::Rows(RowsRun { update_batch: Some(7), ..RowsRun::default() });
        assert_eq!(read, RunPlan { work, thresholds: Vec::new(), ..plan() });
    }

    #[test]
    fn absurd_numbers_are_refused_by_the_name_of_their_option() {
        type Change = fn(&mut RunPlan);
        let cases: [(Change, &str); 23] = [
            (|plan| plan.thresholds.push("late=0".parse().unwrap()), "needs --latency-limit"),
            (
                |plan| {
                    plan.schedule = Schedule::Constant { per_s: 1.0 };
                    plan.stop = Stop::Rows(5);
                    plan.latency_limit = Some(LatencyLimit { limit_s: 1.0, skip: true });
                },
                "--duration only",
            ),
            (|plan| plan.pipeline = 0, "--pipeline"),
            (|plan| plan.pipeline = 1_000, "--pipeline"),
            (|plan| plan.schedule = Schedule::Constant { per_s: 0.0 }, "--rate"),
            (|plan| plan.schedule = Schedule::Poisson { per_s: f64::NAN }, "--rate"),
            (|plan| plan.reconnect_every = Some(0), "--reconnect"),
            (
                |plan| plan.latency_limit = Some(LatencyLimit { limit_s: 1.0, skip: true }),
                "--skip-late",
            ),
            (|plan| plan.errors.reconnect_timeout_s = f64::NAN, "--reconnect-timeout"),
            (|plan| plan.thresholds.push("response.p99<1s".parse().unwrap()), "needs --rate"),
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
            (
                |plan| plan.work = WorkPlan::Rows(RowsRun { batch: 0, ..RowsRun::default() }),
                "--batch",
            ),
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
