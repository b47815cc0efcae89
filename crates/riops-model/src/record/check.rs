//! Access paths, checks of the data, thresholds and the verdict: whether a result is valid.

use serde::{Deserialize, Serialize};

use crate::plan::Threshold;
use crate::units::texts;

/// Storage requests (`YugabyteDB`) of one execution of a statement.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageRequests {
    /// Read requests.
    pub reads: u64,
    /// Rows that these requests scanned, if the server reports them.
    pub rows_scanned: Option<u64>,
    /// Rows that the statement reads or updates.
    pub rows: u64,
}

/// The access path of a statement at one check.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Name of the prepared statement.
    pub statement: String,
    /// Name of the stage; absent if the run has only one.
    pub stage: Option<String>,
    /// Time of the check: `before` the run, `first` (after the first transactions), `middle` (during) or `after` the run.
    pub moment: String,
    /// The expected access path; if none was expected, the plan that was found first.
    pub expected: String,
    /// Whether no access path was expected. The plan must stay the same.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub observed: bool,
    /// The plan, one node per line; empty if it could not be checked.
    pub found: String,
    /// Whether the plan has the expected access path; false if it could not be checked.
    pub held: bool,
    /// Number of sessions with this plan, or whose plan could not be checked; if no access path was expected, number of
    /// executions with different values.
    pub sessions: u32,
    /// Why the plan could not be checked.
    pub error: Option<String>,
    /// Storage requests of the EXPLAIN itself (`YugabyteDB`).
    pub storage: Option<StorageRequests>,
}

/// Returns the text for a moment of a check.
pub fn moment_text(moment: &str) -> &str {
    match moment {
        "first" => "at the beginning of",
        "middle" => "during",
        other => other,
    }
}

/// One check of the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// The expected value.
    pub expected: String,
    /// The value in the database.
    pub found: String,
    /// Whether the two values agree.
    pub held: bool,
    /// Changes whose outcome remains unknown: the value may differ by up to this number.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unresolved: u64,
    /// Whether nothing contradicts the value, but it cannot be verified.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unknown: bool,
}

/// A threshold and the measured value.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// Name of the stage; absent if the run has only one.
    pub stage: Option<String>,
    /// The threshold of the plan.
    pub threshold: Threshold,
    /// The measured value, in microseconds for latencies; absent if nothing was measured.
    pub found: Option<f64>,
    /// Whether the measured value is only a lower bound.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub at_least: bool,
    /// Whether the threshold was met.
    pub held: bool,
    /// Whether a breach of this threshold ended the run early.
    #[serde(default)]
    pub ended_run: bool,
}

impl ThresholdRecord {
    /// Whether the threshold may be met or breached: the measured value is a lower bound that decides nothing.
    pub fn is_undecided(&self) -> bool {
        let decided = self.found.and_then(|value| self.threshold.is_met_from(value));
        self.at_least && !self.ended_run && decided.is_none()
    }
}

/// Whether the result is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the result is valid.
    pub valid: bool,
    /// Why the result is not valid; empty if it is.
    pub reasons: Vec<String>,
    /// Conditions that make a number less reliable than it looks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Stalls of the client's poll loop are part of the latency.
    Stalls,
    /// Other processes used the CPU.
    ForeignCpu,
    /// The hypervisor withheld CPU time.
    StolenCpu,
    /// The processor became slower.
    SlowProcessor,
    /// Other sessions of the server were active.
    ForeignSessions,
    /// The sessions waited for locks of other sessions.
    ForeignLocks,
    /// Other processes used the device.
    ForeignIo,
    /// A snapshot kept row versions.
    OldSnapshot,
    /// Segments of TCP were lost.
    Network,
    /// The system clock was set.
    Clock,
    /// Others used the dataset.
    SharedDataset,
    /// No transaction succeeded for a part of the measurement.
    Outage,
    /// The plan of a statement changed during the run.
    PlanChange,
    /// A statement is probably not the intended statement.
    Statement,
    /// A crash of the server may lose commits.
    Durability,
    /// A part of the observed work is not in the result.
    Observed,
}

texts!(
    /// Returns the spelling in JSON.
    WarningKind::as_str {
        Stalls: "stalls",
        ForeignCpu: "foreign_cpu",
        StolenCpu: "stolen_cpu",
        SlowProcessor: "slow_processor",
        ForeignSessions: "foreign_sessions",
        ForeignLocks: "foreign_locks",
        ForeignIo: "foreign_io",
        OldSnapshot: "old_snapshot",
        Network: "network",
        Clock: "clock",
        SharedDataset: "shared_dataset",
        Outage: "outage",
        PlanChange: "plan_change",
        Statement: "statement",
        Durability: "durability",
        Observed: "observed",
    }
);

impl WarningKind {
    /// Whether a load that belongs neither to riops nor to the server disturbed the run.
    pub fn is_disturbance(self) -> bool {
        !matches!(
            self,
            Self::Stalls
                | Self::Outage
                | Self::PlanChange
                | Self::Statement
                | Self::Durability
                | Self::Observed
        )
    }
}

/// A warning about a result.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind.
    pub kind: WarningKind,
    /// Name of the stage; absent if the run has only one.
    pub stage: Option<String>,
    /// Text with the measured values.
    pub text: String,
}

impl Warning {
    /// Returns the label of the warning: `DISTURBED` if other load caused it.
    pub fn label(&self) -> &'static str {
        if self.kind.is_disturbance() { "DISTURBED" } else { "warning" }
    }

    /// Returns the text with the stage, if the run has several.
    pub fn text_of_stage(&self) -> String {
        match &self.stage {
            Some(stage) => format!("{stage}: {}", self.text),
            None => self.text.clone(),
        }
    }

    /// Returns the text after its label.
    pub fn labeled(&self) -> String {
        format!("{}: {}", self.label(), self.text_of_stage())
    }
}
