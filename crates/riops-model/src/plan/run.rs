//! The plan of one run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::error::{PlanError, at_least_one, at_most, pairs, refuse, require_public};
use super::facts::{self, Facts};
use super::policy::{
    CleanStart, Drain, Driver, ErrorPolicy, LatencyLimit, PreparePolicy, Protocol, RATE_MAX,
    SESSIONS_MAX, Schedule, Share, Stop, Trust, Unrecorded, validate_steps,
};
use super::query::{self, NamedQuery, Prometheus};
use super::rows::RowsRun;
use super::spec::Common;
use super::spread::Spread;
use super::thinning::PointLength;
use super::threshold::{Metric, Threshold};
use super::work::{DatasetPlan, Parameters, WorkPlan};
use crate::units::Span;
use crate::units::format::truncated;

/// Maximum number of transactions in flight on one session: a limit of the protocol crate.
const PIPELINE_MAX: usize = riops_wire::pipeline::BATCHES_MAX;
/// Maximum duration of a run: 30 days.
const DURATION_S_MAX: f64 = 30.0 * 86_400.0;
/// One hour, the maximum of an interval and of a latency limit.
const HOUR_S: f64 = 3600.0;
/// Maximum number of samples per second of a profile: more are mostly overhead.
const PROFILE_HZ_MAX: u32 = 5_000;
/// Minimum interval: shorter intervals give mostly noise.
const INTERVAL_S_MIN: f64 = 0.1;

/// All parameters of a run except the address of the database, with the defaults filled in. The same plan gives the
/// same run. The defaults are the same as on the command line, with one session and the seed 0.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option")]
pub struct Plan {
    /// Work of the sessions.
    #[serde(flatten)]
    #[default(RowsRun::default().into())]
    pub work: WorkPlan,
    /// Number of sessions.
    #[default = 1]
    pub sessions: u32,
    /// Number of worker threads that drive the sessions.
    #[default = 1]
    pub workers: u32,
    /// The client, of several, that runs the plan. `sessions` then counts the sessions of all clients; rate and number of
    /// transactions are the share of this client. Absent: one client runs the plan alone.
    pub share: Option<Share>,
    /// How the workers wait for their sockets.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub driver: Driver,
    /// Intended start times of the transactions.
    pub schedule: Schedule,
    /// How statements are sent.
    #[serde(default)]
    pub protocol: Protocol,
    /// Maximum number of transactions in flight per session.
    #[serde(default = "one")]
    #[default(one())]
    pub pipeline: u32,
    /// Number of transactions after which a session reconnects; absent: never.
    pub reconnect_every: Option<u64>,
    /// Handling of errors.
    #[serde(default)]
    pub errors: ErrorPolicy,
    /// Distribution of the sessions over the nodes of a cluster.
    #[serde(default)]
    pub spread: Spread,
    /// Number of nodes that the sessions use, the first ones that `spread` allows; absent: all.
    pub nodes: Option<u32>,
    /// Whether sessions return to their node when it is available again.
    #[serde(default)]
    pub rebalance: bool,
    /// Port of the metrics endpoint of each YugabyteDB node.
    #[serde(default = "metrics_port")]
    #[default(metrics_port())]
    pub metrics_port: u16,
    /// Timeout for connecting all sessions, in seconds; absent: the timeout of each connection.
    pub connect_within_s: Option<f64>,
    /// Latency percentile in the time series, in percent.
    #[serde(default = "percentile")]
    #[default(percentile())]
    pub percentile: f64,
    /// Latency limit; absent: none.
    pub latency_limit: Option<LatencyLimit>,
    /// Thresholds for the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// Whether a breached threshold stops the run.
    #[serde(default)]
    pub abort_on_threshold: bool,
    /// Whether the run is invalid if the client was the bottleneck.
    #[serde(default)]
    pub strict: bool,
    /// Duration of the warm-up, which is not measured, in seconds.
    #[default = 2.0]
    pub warmup_s: f64,
    /// When the measurement stops.
    #[default(Stop::DurationS(10.0))]
    pub stop: Stop,
    /// Maximum duration of a measurement that stops by count, in seconds; absent: none.
    pub max_duration_s: Option<f64>,
    /// Whether transactions count that are in flight when the time is up.
    #[serde(default)]
    pub drain: Drain,
    /// Times at which the counts and latencies since the previous one are reported, in seconds since the start of the
    /// measurement (sysbench's `--report-checkpoints`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints_s: Vec<f64>,
    /// Interval of the time series, in seconds.
    #[default = 1.0]
    pub interval_s: f64,
    /// Random seed of all random streams.
    pub seed: u64,
    /// Whether riops chose the seed, which the report of sysbench then calls the current time.
    #[serde(skip)]
    pub generated_seed: Unrecorded,
    /// Whether the acknowledged changes are verified in the database after the run.
    #[default = true]
    pub verify: bool,
    /// Whether the latencies of single transactions are stored, for a graph.
    #[serde(default)]
    pub keep_samples: bool,
    /// Whether a fleet keeps the time series and the histogram of each agent.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub keep_agents: bool,
    /// Required parameters of the dataset, by their names in the registry. The others are taken from the
    /// registry, or are defaults if the dataset is prepared.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub dataset: Parameters,
    /// The part of the dataset that is used, if it is not the whole: the number of its first tables and of their
    /// first rows, by their names in the registry.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub part: Parameters,
    /// Whether a missing dataset is prepared first.
    #[serde(default)]
    pub prepare: PreparePolicy,
    /// The state of the server before the warm-up.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub clean_start: CleanStart,
    /// Settings of the server during the run, by name: of the sessions where these may set them, otherwise of the whole server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Facts about the server.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// Queries whose values are read once an interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<NamedQuery>,
    /// The Prometheus server for the queries of `probes` that are not SQL.
    pub prometheus: Option<Prometheus>,
    /// Samples per second of a CPU profile of the server; absent: none.
    pub profile_hz: Option<u32>,
    /// Whether the instructions of the server are counted.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub instructions: bool,
    /// Whether the average row size is measured.
    #[serde(default)]
    pub row_size: bool,
    /// Label.
    pub label: Option<String>,
    /// Tags, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Whether the actions besides measuring that the plan [needs](Self::needs_trust) are permitted.
    #[serde(skip)]
    pub trust: Trust,
}

fn one() -> u32 {
    1
}

/// The default web server port of a YB-TServer.
fn metrics_port() -> u16 {
    9000
}

/// The default of sysbench.
fn percentile() -> f64 {
    95.0
}

impl Plan {
    /// Parses a plan from JSON.
    ///
    /// # Errors
    /// [`PlanError`] if the text is not a plan or has an unknown key: a misspelled option would otherwise be
    /// ignored silently.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let refused = |error: serde_json::Error| PlanError(format!("invalid plan: {error}"));
        let given: Value = serde_json::from_str(text).map_err(refused)?;
        require_one_workload(&given)?;
        let plan: Self = serde_json::from_str(text).map_err(refused)?;
        let known = serde_json::to_value(&plan).map_err(refused)?;
        match unknown_key(&given, &known) {
            Some(key) => refuse(format!("invalid plan: unknown key \"{key}\"")),
            None => Ok(plan),
        }
    }

    /// Returns what the run executes or writes besides measuring, as in "executes shell commands": a plan that was read
    /// needs the trust of a person for it.
    pub fn needs_trust(&self) -> Option<String> {
        let dataset = || self.prepared().ok()??.spec().needs_trust();
        let probes =
            || (!self.probes.is_empty()).then(|| "executes the queries of --probe".to_owned());
        let settings =
            || (!self.settings.is_empty()).then(|| "changes settings of the server".to_owned());
        self.work.spec().needs_trust().or_else(dataset).or_else(probes).or_else(settings)
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] with the option, its value and the allowed values.
    pub fn validate(&self) -> Result<(), PlanError> {
        // The workload is validated first, because other options may be derived from its options.
        self.work.spec().validate(&self.common())?;
        match self.prepared()? {
            Some(dataset) => dataset.spec().validate()?,
            None => require!(
                self.dataset.is_empty(),
                "the workload {} has no dataset",
                self.work.traits().name
            ),
        }
        self.validate_part()?;
        self.validate_sessions()?;
        self.validate_times()?;
        self.validate_stop()?;
        self.validate_drain()?;
        self.validate_checkpoints()?;
        self.validate_clean_start()?;
        self.validate_settings()?;
        facts::validate(&self.facts)?;
        query::validate("--probe", self.probes.iter())?;
        query::validate_prometheus(self.prometheus.as_ref(), &self.probes)?;
        if let Some(hz) = self.profile_hz {
            at_least_one("--profile", hz)?;
            at_most("--profile", hz, PROFILE_HZ_MAX, " Hz")?;
        }
        self.validate_latency_limit()?;
        self.validate_thresholds()?;
        require!(
            !self.rebalance || !matches!(self.spread, Spread::Off | Spread::LeastConnections),
            "--rebalance cannot be combined with --spread {}: sessions have no assigned node to return to",
            self.spread
        );
        self.validate_nodes()?;
        require_public(self.label.iter().cloned().chain(pairs(&self.tags)))?;
        match self.needs_trust() {
            Some(what) if !self.trust.0 => {
                refuse(format!("the plan was read and {what}: permit it with --trust"))
            }
            _ => Ok(()),
        }
    }

    fn validate_clean_start(&self) -> Result<(), PlanError> {
        let traits = self.work.traits();
        require!(
            self.clean_start.vacuum.is_none() || traits.dataset.is_some(),
            "--vacuum has no effect: the workload {} has no dataset of riops",
            traits.name
        );
        let settle_s = self.clean_start.settle_s.unwrap_or_default();
        require!(
            (0.0..=HOUR_S).contains(&settle_s),
            "--settle must be between 0 and 1h, not {}",
            Span::of_seconds(settle_s)
        );
        Ok(())
    }

    fn validate_settings(&self) -> Result<(), PlanError> {
        let is_part = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.chars().all(|other| other.is_ascii_alphanumeric() || other == '_')
        };
        for (name, value) in &self.settings {
            require!(
                name.split('.').all(is_part) && !value.contains('\0'),
                "--setting {name}: expected NAME=VALUE with the name of a setting of the server"
            );
        }
        Ok(())
    }

    fn validate_nodes(&self) -> Result<(), PlanError> {
        let Some(nodes) = self.nodes else {
            return Ok(());
        };
        at_least_one("--nodes", nodes)?;
        require!(
            self.spread != Spread::Off,
            "--nodes {nodes} cannot be combined with --spread off: riops does not choose the node of a session"
        );
        require!(
            nodes == 1 || !self.work.traits().has_server_loop,
            "--nodes {nodes} requires --loop client: loops in the server use one node"
        );
        Ok(())
    }

    fn common(&self) -> Common<'_> {
        Common {
            protocol: self.protocol,
            schedule: &self.schedule,
            stop: self.stop,
            share: self.share,
            max_duration_s: self.max_duration_s,
            pipeline: self.pipeline,
            reconnect_every: self.reconnect_every,
            latency_limit: self.latency_limit,
            rebalance: self.rebalance,
            keep_samples: self.keep_samples,
            warmup_s: self.warmup_s,
            errors: self.errors,
            abort_on_threshold: self.abort_on_threshold,
            settings: &self.settings,
            dataset: &self.dataset,
        }
    }

    /// Returns the dataset that the run prepares if it is missing: the given parameters, and defaults for the
    /// others. `None` for a workload without a prepared dataset.
    ///
    /// # Errors
    /// [`PlanError`] if a parameter is unknown or has another type.
    pub fn prepared(&self) -> Result<Option<DatasetPlan>, PlanError> {
        let default = self.work.traits().dataset.and_then(DatasetPlan::default_of);
        let mut given = self.dataset.clone();
        if default.as_ref().is_some_and(|dataset| dataset.parameters().get("seed").is_some()) {
            given.entry("seed").or_insert_with(|| self.seed.into());
        }
        default.map(|dataset| dataset.with(&given)).transpose()
    }

    fn validate_sessions(&self) -> Result<(), PlanError> {
        at_least_one("--sessions", self.sessions)?;
        at_least_one("--workers", self.workers)?;
        at_most("--sessions", self.sessions, SESSIONS_MAX, "")?;
        let own = self.own_sessions();
        let (workers, pipeline) = (self.workers, self.pipeline);
        require!(
            workers <= own,
            "--workers {workers} exceeds --sessions {own}: each session is driven by one worker"
        );
        require!(
            (1..=PIPELINE_MAX).contains(&(pipeline as usize)),
            "--pipeline must be between 1 and {PIPELINE_MAX}, not {pipeline}"
        );
        if let Some(per_s) = self.schedule.per_s() {
            require!(
                per_s > 0.0 && per_s <= RATE_MAX,
                "--rate must be greater than 0 and at most {RATE_MAX}, not {per_s}"
            );
        }
        validate_steps(self.schedule.steps())?;
        // The profile of a rate is as long as the measurement.
        if let Some(length_s) = self.schedule.profile_s() {
            require!(
                self.stop == Stop::DurationS(length_s),
                "the steps of --rate take {}, which is the duration of the measurement: omit any other",
                Span::of_seconds(length_s)
            );
        }
        self.reconnect_every.map_or(Ok(()), |every| at_least_one("--reconnect", every))
    }

    fn validate_times(&self) -> Result<(), PlanError> {
        let limit_s = self.latency_limit.map(|limit| limit.limit_s);
        let (any, positive) = (0.0..=DURATION_S_MAX, f64::MIN_POSITIVE..=DURATION_S_MAX);
        let up_to_hour = f64::MIN_POSITIVE..=HOUR_S;
        let (up_to_days, above_0) = ("between 0 and 30 days", "greater than 0 and at most 30 days");
        let times = [
            ("interval", Some(self.interval_s), &(INTERVAL_S_MIN..=HOUR_S), "between 100ms and 1h"),
            ("warmup", Some(self.warmup_s), &any, up_to_days),
            ("thread-init-timeout", self.connect_within_s, &positive, above_0),
            ("reconnect-timeout", Some(self.errors.reconnect_timeout_s), &any, up_to_days),
            ("duration", self.stop.seconds(), &positive, above_0),
            ("max-duration", self.max_duration_s, &positive, above_0),
            ("latency-limit", limit_s, &up_to_hour, "greater than 0 and at most 1h"),
        ];
        for (option, seconds, range, text) in times {
            if let Some(seconds) = seconds {
                require!(range.contains(&seconds), "--{option} must be {text}, not {seconds} s");
            }
        }
        require!(
            self.percentile == 0.0 || (1.0..=100.0).contains(&self.percentile),
            "--percentile must be between 1 and 100, or 0 for none, not {}",
            self.percentile
        );
        Ok(())
    }

    fn validate_stop(&self) -> Result<(), PlanError> {
        match self.stop {
            Stop::DurationS(_) if self.max_duration_s.is_some() => {
                refuse("--max-duration requires --transactions or --total-rows")
            }
            _ if self.max_duration_s.is_some() && self.work.traits().has_server_loop => {
                refuse("--max-duration requires --loop client")
            }
            Stop::DurationS(_) => Ok(()),
            Stop::Transactions(count) => at_least_one("--transactions", count),
            Stop::Rows(count) => at_least_one("--total-rows", count),
        }
    }

    fn validate_drain(&self) -> Result<(), PlanError> {
        let (drain, traits) = (self.drain, self.work.traits());
        let is_timed = self.stop.seconds().or(self.max_duration_s).is_some();
        require!(
            drain == Drain::Uncounted || is_timed,
            "--drain {drain} requires --duration or --max-duration: nothing is in flight after a number of transactions or rows"
        );
        require!(
            drain == Drain::Uncounted || !traits.has_server_loop,
            "--drain {drain} requires --loop client"
        );
        require!(
            !self.errors.redraw || traits.can_redraw,
            "errors.redraw is not possible in the workload {}: its retries send the same bytes",
            traits.name
        );
        Ok(())
    }

    /// Each checkpoint must be the end of an interval, and later than the one before.
    fn validate_checkpoints(&self) -> Result<(), PlanError> {
        let mut before = 0.0;
        for &checkpoint in &self.checkpoints_s {
            let intervals = checkpoint / self.interval_s;
            require!(
                checkpoint > before && (intervals - intervals.round()).abs() < 1e-6,
                "--report-checkpoints must be multiples of --interval ({} s) in ascending order, not {checkpoint}",
                self.interval_s
            );
            before = checkpoint;
        }
        Ok(())
    }

    fn validate_latency_limit(&self) -> Result<(), PlanError> {
        if !self.latency_limit.is_some_and(|limit| limit.skip) {
            return Ok(());
        }
        require!(
            self.stop.seconds().is_some() || self.work.traits().limits_each_session,
            "--skip-late requires --duration: skipped transactions do not count toward a number of transactions or rows"
        );
        require!(
            self.schedule != Schedule::Closed,
            "--skip-late requires --rate: in a closed loop no transaction is late before it is sent"
        );
        Ok(())
    }

    fn validate_thresholds(&self) -> Result<(), PlanError> {
        require!(
            !self.abort_on_threshold
                || self.thresholds.iter().any(|threshold| threshold.metric != Metric::Figure),
            "--abort-on-threshold has no effect: the figures of the thresholds are known when the run has ended"
        );
        for threshold in &self.thresholds {
            require!(
                threshold.metric != Metric::Late || self.latency_limit.is_some(),
                "--threshold '{threshold}' requires --latency-limit: without it no transaction is late"
            );
        }
        for part in self.thresholds.iter().filter_map(|threshold| threshold.part.as_ref()) {
            match &part.probe {
                None => drop(self.work.spec().script_of(part)?),
                Some(name) => require!(
                    self.probes.iter().any(|probe| probe.name == *name),
                    "a threshold is for the probe \"{name}\", which the run does not have: add --probe '{name}=SELECT …'"
                ),
            }
        }
        for threshold in &self.thresholds {
            require!(
                self.schedule != Schedule::Closed || !threshold.requires_rate(),
                "--threshold '{threshold}' requires --rate: it is not measured in a closed loop"
            );
        }
        Ok(())
    }

    /// Returns the checkpoints before the end of the measurement, which is the last one, in seconds.
    pub fn checkpoints_s(&self) -> impl Iterator<Item = f64> {
        let end_s = self.stop.seconds().or(self.max_duration_s).unwrap_or(f64::INFINITY);
        self.checkpoints_s.iter().copied().filter(move |&t_s| t_s < end_s)
    }

    /// Returns the duration of the warm-up.
    pub fn warmup(&self) -> Duration {
        Span::of_seconds(self.warmup_s).0
    }

    /// Returns how many intervals the points of the time series cover. A run of the maximum duration ends when it is interrupted.
    pub fn point_length(&self) -> PointLength {
        let seconds = self.stop.seconds().filter(|&seconds| seconds < DURATION_S_MAX);
        PointLength::for_intervals(
            seconds.map(|seconds| truncated((seconds / self.interval_s).ceil())),
        )
    }

    /// Returns the interval of the time series.
    pub fn interval(&self) -> Duration {
        Span::of_seconds(self.interval_s).0
    }
}

/// Fails with the names of all workloads: the error of serde does not name the missing field.
fn require_one_workload(given: &Value) -> Result<(), PlanError> {
    let names = WorkPlan::executable_names();
    let all = WorkPlan::names();
    let present: Vec<_> =
        all.iter().filter(|name| given.get(name).is_some()).map(String::as_str).collect();
    require!(
        present.len() == 1,
        "invalid plan: it must have the parameters of exactly one workload ({}), but has {}",
        names.join(", "),
        if present.is_empty() { "none".to_owned() } else { present.join(" and ") }
    );
    Ok(())
}

/// Returns the first key of `given` that is missing in `known`. Keys with an empty value are accepted,
/// because serialization omits them.
fn unknown_key(given: &Value, known: &Value) -> Option<String> {
    let (Value::Object(given), Value::Object(known)) = (given, known) else {
        return None;
    };
    given.iter().find_map(|(key, value)| match known.get(key) {
        Some(known) => unknown_key(value, known).map(|inner| format!("{key}.{inner}")),
        None if is_empty(value) => None,
        None => Some(key.clone()),
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
