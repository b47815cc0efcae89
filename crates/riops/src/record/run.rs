//! The record of one run: from its plan to its verdict.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::access::AccessRecord;
use super::agent::AgentRecord;
use super::check::{Check, ThresholdRecord, Verdict, WarningKind};
use super::client::ClientRecord;
use super::counts::UnknownOutcomes;
use super::imported::{ImportRecord, Validity};
use super::note::Note;
use super::session_loop::LoopRecord;
use super::stage::StageRecord;
use super::status::Status;
use super::target::TargetRecord;
use crate::plan::{DatasetPlan, Member, Plan};

/// Everything that is known about one run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What people wrote about it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Tags of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Origin of the results, if riops did not measure them. Such a run is neither valid nor invalid: riops
    /// verified nothing, and `verdict` states that.
    pub imported: Option<ImportRecord>,
    /// The plan of the run. That of an imported run has the values that the other tool reported, and defaults
    /// otherwise.
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
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.verdict.warnings.iter().any(|warning| warning.kind.is_disturbance())
    }

    /// Returns what lists and badges show of a run beside its status and its validity, in a word or two each.
    #[must_use]
    pub fn marks(&self) -> Vec<&'static str> {
        let mut loops = self.stages.iter().map(|stage| &stage.session_loop);
        let is_failed = self.status == Status::Failed;
        let unsteady = |each: &LoopRecord| each.steadiness.is_some_and(|found| !found.steady);
        let has_lost = |each: &LoopRecord| each.reconnects > 0;
        let kinds = || self.verdict.warnings.iter().map(|warning| warning.kind);
        let is_other = |kind: WarningKind| !kind.is_disturbance() && kind != WarningKind::Outage;
        let marks = [
            ("breached", self.thresholds.iter().any(|found| !found.held && !found.is_undecided())),
            ("undecided", self.thresholds.iter().any(ThresholdRecord::is_undecided)),
            ("disturbed", self.is_disturbed()),
            // The rate of a failed run ends with its failure.
            ("not steady", !is_failed && loops.clone().any(unsteady)),
            ("outage", kinds().any(|kind| kind == WarningKind::Outage)),
            // Such as by a restart of the server.
            ("connections lost", self.plan.reconnect_every.is_none() && loops.any(has_lost)),
            ("warning", kinds().any(is_other)),
        ];
        marks.into_iter().filter_map(|(mark, applies)| applies.then_some(mark)).collect()
    }

    /// Returns whether the result can be relied on. Use this instead of `verdict.valid`, which is false for
    /// imported runs.
    #[must_use]
    pub fn validity(&self) -> Validity {
        match (&self.imported, self.verdict.valid) {
            (Some(_), _) => Validity::NotVerified,
            (None, true) => Validity::Valid,
            (None, false) => Validity::Invalid,
        }
    }

    /// Returns the parameters of the dataset, if they have type `T`.
    #[must_use]
    pub fn dataset<T: Member<DatasetPlan>>(&self) -> Option<&T> {
        self.target.dataset.as_ref()?.parameters.get()
    }

    /// Returns the part of the dataset that the run used, which may be the whole.
    #[must_use]
    pub fn used_dataset(&self) -> Option<DatasetPlan> {
        self.target.dataset.as_ref()?.parameters.part(&self.plan.part).ok()
    }

    /// Returns the share of the dataset that the run used, from 0 to 1; `None` if it used the whole or needs none.
    #[must_use]
    pub fn dataset_share(&self) -> Option<f64> {
        let whole = &self.target.dataset.as_ref()?.parameters;
        let used = self.used_dataset().filter(|used| used != whole)?;
        Some(used.share_of(whole))
    }

    /// Returns the plan that repeats this run. It requires a dataset with the same parameters, and contains
    /// the values that the run determined itself, such as an automatic size.
    #[must_use]
    pub fn repeated_plan(&self) -> Plan {
        let mut plan = Plan { work: self.plan.work.repeated(), ..self.plan.clone() };
        let Some(dataset) = self.target.dataset.as_ref().map(|dataset| &dataset.parameters) else {
            return plan;
        };
        plan.require_sizes_of(dataset);
        let provenance = dataset.traits().provenance;
        if let (Some(_), Value::Object(found)) = (plan.work.traits().dataset, dataset.parameters())
        {
            for (name, value) in found {
                if !provenance.contains(&name.as_str()) {
                    plan.dataset.entry(name).or_insert(value);
                }
            }
        }
        plan
    }
}
