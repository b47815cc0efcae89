//! The record of one run: from its plan to its verdict, its clients, its origin, and what people wrote about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::check::{AccessRecord, Check, ThresholdRecord, Verdict, WarningKind};
use super::client::{ClientCpu, ClientRecord};
use super::counts::UnknownOutcomes;
use super::histogram::StoredHistogram;
use super::latency::LatencySummary;
use super::session_loop::LoopRecord;
use super::stage::StageRecord;
use super::target::TargetRecord;
use crate::plan::{DatasetPlan, Member, Plan, PlanError, require_public};
use crate::units::texts;

/// Everything that is known about one run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the record format: [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// UUID version 7: ids sort by time.
    pub id: Uuid,
    /// Start of the run.
    pub started_at: Timestamp,
    /// Name of the workload.
    pub workload: String,
    /// Label of the run.
    pub label: Option<String>,
    /// Notes of users, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Tags of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Origin of the results, if riops did not measure them. Such a run is neither valid nor invalid: riops
    /// verified nothing, and `verdict` states that.
    pub imported: Option<ImportRecord>,
    /// The plan of the run. The plan of an imported run has the values that the other tool reported, and defaults otherwise.
    pub plan: Plan,
    /// How the run ended.
    pub status: Status,
    /// Reason why the run did not end as planned.
    pub failure: Option<String>,
    /// The database.
    pub target: TargetRecord,
    /// The load generator and its machine.
    pub client: ClientRecord,
    /// The clients of a run that was merged from the runs of several; empty for one client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRecord>,
    /// The results.
    pub stages: Vec<StageRecord>,
    /// The access paths.
    pub accesses: Vec<AccessRecord>,
    /// Outcomes of the transactions that lost their connection, as far as the data show them; absent if there
    /// were none.
    pub unknown_outcomes: Option<UnknownOutcomes>,
    /// Checks of the data after the run.
    pub checks: Vec<Check>,
    /// The thresholds of the plan and the measured values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdRecord>,
    /// Whether the result is valid.
    pub verdict: Verdict,
}

impl Record {
    /// Returns whether loads that belong neither to riops nor to the server disturbed the run.
    pub fn is_disturbed(&self) -> bool {
        self.verdict.warnings.iter().any(|warning| warning.kind.is_disturbance())
    }

    /// Returns what lists and badges show of a run beside its status and its validity, in a word or two each.
    pub fn marks(&self) -> Vec<&'static str> {
        let mut loops = self.stages.iter().map(|stage| &stage.session_loop);
        let is_failed = self.status == Status::Failed;
        let unsteady = |session_loop: &LoopRecord| {
            session_loop.steadiness.is_some_and(|steadiness| !steadiness.steady)
        };
        let has_lost = |session_loop: &LoopRecord| session_loop.reconnects > 0;
        let has_outage = self.stages.iter().any(StageRecord::has_outage);
        let has = |kind| self.verdict.warnings.iter().any(|warning| warning.kind == kind);
        let marks = [
            (
                "breached",
                self.thresholds
                    .iter()
                    .any(|threshold| !threshold.held && !threshold.is_undecided()),
            ),
            ("undecided", self.thresholds.iter().any(ThresholdRecord::is_undecided)),
            ("disturbed", self.is_disturbed()),
            // The rate of a failed run ends with its failure.
            ("not steady", !is_failed && loops.clone().any(unsteady)),
            ("outage", has(WarningKind::Outage) && has_outage),
            ("stall", has(WarningKind::Outage) && !has_outage),
            // Such as by a restart of the server.
            ("connections lost", self.plan.reconnect_every.is_none() && loops.any(has_lost)),
            ("not durable", has(WarningKind::Durability)),
            ("client stalls", has(WarningKind::Stalls)),
            ("plan change", has(WarningKind::PlanChange)),
            ("doubtful statement", has(WarningKind::Statement)),
            ("partly observed", has(WarningKind::Observed)),
        ];
        marks.into_iter().filter_map(|(mark, applies)| applies.then_some(mark)).collect()
    }

    /// Returns whether the result can be relied on. Use this instead of `verdict.valid`, which is false for
    /// imported runs.
    pub fn validity(&self) -> Validity {
        match (&self.imported, self.verdict.valid) {
            (Some(_), _) => Validity::NotVerified,
            (None, true) => Validity::Valid,
            (None, false) => Validity::Invalid,
        }
    }

    /// Returns the parameters of the dataset, if they have type `T`.
    pub fn dataset<T: Member<DatasetPlan>>(&self) -> Option<&T> {
        self.target.dataset.as_ref()?.parameters.get()
    }

    /// Returns the part of the dataset that the run used, which may be the whole.
    pub fn used_dataset(&self) -> Option<DatasetPlan> {
        self.target.dataset.as_ref()?.parameters.part(&self.plan.part).ok()
    }

    /// Returns the share of the dataset that the run used, from 0 to 1; `None` if it used the whole or needs none.
    pub fn dataset_share(&self) -> Option<f64> {
        let dataset = &self.target.dataset.as_ref()?.parameters;
        let used = self.used_dataset().filter(|used| used != dataset)?;
        Some(used.share_of(dataset))
    }

    /// Returns the plan that repeats this run. It requires a dataset with the same parameters, and contains
    /// the values that the run determined itself, such as an automatic size.
    pub fn repeated_plan(&self) -> Plan {
        let mut plan = Plan { work: self.plan.work.repeated(), ..self.plan.clone() };
        let Some(dataset) = self.target.dataset.as_ref().map(|dataset| &dataset.parameters) else {
            return plan;
        };
        plan.require_sizes_of(dataset);
        let provenance = dataset.traits().provenance;
        if let (Some(_), Value::Object(parameters)) =
            (plan.work.traits().dataset, dataset.parameters())
        {
            for (name, value) in parameters {
                if !provenance.contains(&name.as_str()) {
                    plan.dataset.entry(name).or_insert(value);
                }
            }
        }
        plan
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As planned.
    #[default]
    Done,
    /// With an error; the record has the measurements up to it.
    Failed,
    /// Interrupted by the user; the record has the measurements up to the interrupt.
    Interrupted,
}

texts!(
    /// Returns the spelling in JSON.
    Status::as_str { Done: "done", Failed: "failed", Interrupted: "interrupted" }
);

/// One of the clients of a merged run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRecord {
    /// Number of the agent, from 0.
    pub number: u32,
    /// Name of its machine.
    pub host: String,
    /// Id of its run.
    pub run: Option<Uuid>,
    /// Its machine; absent if it was lost.
    pub client: Option<ClientRecord>,
    /// How its run ended; absent if it was lost.
    pub status: Option<Status>,
    /// Reason why its run did not end as planned, or why its results are missing.
    pub failure: Option<String>,
    /// Its clock, compared with the clock of the store.
    pub clock: Option<ClockRecord>,
    /// Longest time for which its process did not run, in seconds.
    pub stopped_s: Option<f64>,
    /// Its share of each stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<AgentStage>,
}

/// The share of one client in a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStage {
    /// Start of its measurement, by the clock of the store if that is known, otherwise by its own.
    pub started_at: Option<Timestamp>,
    /// Length of its measurement, in seconds.
    pub seconds: f64,
    /// Number of its sessions.
    pub sessions: u32,
    /// Its transactions that ended within the measurement.
    pub transactions: u64,
    /// These transactions per second.
    pub transactions_per_s: f64,
    /// Latency in microseconds: response times with a rate, otherwise service times.
    pub latency_us: Option<LatencySummary>,
    /// CPU use of its process, and the limits that it reached.
    pub client_cpu: Option<ClientCpu>,
    /// Its latencies, if the plan keeps the agents.
    pub histogram: Option<StoredHistogram>,
    /// Its time series, if the plan keeps the agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<AgentPoint>,
}

/// A point of the time series of one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentPoint {
    /// End of the point, in seconds since the start of its measurement.
    pub t_s: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Transactions that ended within the point.
    pub transactions: u64,
}

/// The clock of a client, compared with the clock of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// Seconds by which the clock of the store is ahead.
    pub offset_s: f64,
    /// The offset is known to this many seconds: half the length of the interval that all exchanges allow.
    pub uncertainty_s: f64,
    /// Number of exchanges.
    pub exchanges: u64,
}

/// Where the start of an imported run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartSource {
    /// From the results.
    Results,
    /// From the user.
    User,
    /// Estimated: the results do not contain it, and the file was last modified at the end of the run.
    FileTime,
    /// Unknown: the time of the import.
    ImportTime,
}

/// Origin of results that riops did not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// Format of the results: `pgbench-log`, `sysbench`, …
    pub format: String,
    /// Names of the files, without directories; empty for a database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Time of the import.
    pub imported_at: Timestamp,
    /// Origin of the record's `started_at`.
    pub start: StartSource,
    /// Fields of the plan that the results do not contain: their values were computed or are defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreported: Vec<String>,
}

/// Whether a result can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// riops verified it.
    Valid,
    /// riops found a reason against it.
    Invalid,
    /// Imported: riops verified nothing.
    NotVerified,
}

/// Maximum length of a note, in characters.
const LENGTH_MAX: usize = 10_000;

/// A note: a hypothesis, what was changed, a conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was written.
    pub at: Timestamp,
    /// Who wrote it.
    pub author: String,
    /// Lines of plain text.
    pub text: String,
}

/// Why a text is not a note.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// There is nothing to store.
    #[error("the note is empty")]
    Empty,
    /// A note is not a document.
    #[error("the note is longer than {LENGTH_MAX} characters")]
    Long,
    /// It cannot be shown.
    #[error(transparent)]
    Unprintable(#[from] PlanError),
}

impl Note {
    /// Returns a note of now.
    ///
    /// # Errors
    /// [`NoteError`]
    pub fn new(text: &str, author: String) -> Result<Self, NoteError> {
        let lines: Vec<String> =
            text.trim().lines().map(|line| line.trim_end().to_owned()).collect();
        require_public(lines.iter().chain([&author]))?;
        let text = lines.join("\n");
        match text.chars().count() {
            0 => Err(NoteError::Empty),
            1..=LENGTH_MAX => Ok(Self { at: Timestamp::now(), author, text }),
            _ => Err(NoteError::Long),
        }
    }

    /// Returns the first line of the newest one.
    pub fn newest_line(notes: &[Self]) -> Option<String> {
        notes.last().and_then(|note| note.text.lines().next()).map(str::to_owned)
    }

    /// Returns the note with its date and author, in lines.
    pub fn lines(&self) -> Vec<String> {
        let head = format!("{} {}: ", self.at.strftime("%F"), self.author);
        let lines = self.text.lines().enumerate();
        lines
            .map(|(at, line)| if at == 0 { head.clone() + line } else { line.to_owned() })
            .collect()
    }
}
