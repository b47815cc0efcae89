//! What a workload's parameters say about a run of it, for the layers that treat all workloads alike.

use serde_json::Value;
use serde_json::map::Entry;

use super::error::{PlanError, refuse};
use super::policy::{Caches, ErrorPolicy, LatencyLimit, OnError, Protocol, Schedule, Stop};

/// The part of a plan that is the same for all workloads, as far as one of them may object to it.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields of the plan under the same names")]
pub struct Common<'a> {
    pub protocol: Protocol,
    pub schedule: Schedule,
    pub stop: Stop,
    pub pipeline: u32,
    pub reconnect_every: Option<u64>,
    pub latency_limit: Option<LatencyLimit>,
    pub rebalance: bool,
    pub keep_samples: bool,
    pub warmup_s: f64,
    pub errors: ErrorPolicy,
    pub abort_on_threshold: bool,
    /// The parameters that were given for the dataset, by their names in the registry.
    pub dataset: &'a serde_json::Map<String, Value>,
}

impl Common<'_> {
    /// Fails for what only sessions that repeat their transactions can do.
    pub(super) fn require_no_repetition(&self, workload: &str) -> Result<(), PlanError> {
        let set = [
            ("--rate", self.schedule != Schedule::Closed),
            ("--warmup", self.warmup_s != 0.0),
            ("--pipeline", self.pipeline != 1),
            ("--reconnect", self.reconnect_every.is_some()),
            ("--latency-limit", self.latency_limit.is_some()),
            ("--on-error", self.errors.on_error != OnError::Stop),
            ("--abort-on-threshold", self.abort_on_threshold),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((option, _)) => refuse(format!(
                "{option} is for workloads that repeat a transaction, which {workload} does not"
            )),
        }
    }
}

/// What of a stage's work stands in its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageFacts {
    /// Rows that one read touches, or that one statement loads.
    pub batch: Option<u64>,
    /// Rows that one update touches.
    pub update_batch: Option<u64>,
    /// How rows get into the table.
    pub method: Option<String>,
    /// Whether the loop runs in the server.
    pub in_server: bool,
    /// Whether reads stay in the index.
    pub index_only: bool,
}

/// The parameters of a workload's run.
pub trait Spec {
    /// The workload's name on the command line and in the record.
    fn name(&self) -> &'static str;

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError>;

    /// The name of its dataset in the registry; `None` where it needs none that was prepared.
    fn dataset(&self) -> Option<&'static str>;

    /// Whether any transaction changes rows of a dataset that outlives the run.
    fn writes(&self) -> bool;

    /// The name of a run in a list.
    fn title(&self) -> String {
        self.name().to_owned()
    }

    /// The part of each stage, in the order in which they run.
    fn stages(&self) -> Vec<Self>
    where
        Self: Sized + Clone,
    {
        vec![self.clone()]
    }

    /// The parameters of a run that repeats this one: what it has found out by itself is given.
    #[must_use]
    fn repeated(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// What stands in the record of a stage.
    fn facts(&self) -> StageFacts {
        StageFacts::default()
    }

    /// The state of the caches at a stage's start.
    fn caches(&self) -> Caches {
        Caches::AsFound
    }

    /// Whether the rows of this operation count in the ledger of changes.
    fn counts_changes_of(&self, _operation: &str) -> bool {
        false
    }

    /// Whether changes are counted by their effects, so that sessions can wait for each other's locks.
    fn counts_effects(&self) -> bool {
        false
    }

    /// Whether any stage's loop runs in the server, on one node and with sessions of its own.
    fn has_server_loop(&self) -> bool {
        false
    }

    /// Whether it relies on session locks and settings from its first statement on.
    fn needs_own_sessions(&self) -> bool {
        false
    }

    /// Whether a stage is complete only with all the rows of its plan.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether a stage in which no transaction ended is a result.
    fn may_end_without_transactions(&self) -> bool {
        false
    }

    /// Whether each of its stages replaces the table of the stage before.
    fn replaces_its_table(&self) -> bool {
        false
    }

    /// What was wrong with the replies that are counted as wrong.
    fn wrong_replies(&self) -> &'static str {
        "fewer or more rows than were asked for"
    }
}

/// The parameters of a dataset.
pub trait DatasetSpec {
    /// Its name in the registry: that of the workload that prepares it.
    fn name(&self) -> &'static str;

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    fn validate(&self) -> Result<(), PlanError>;

    /// Parameters that only tell how it came to be: a run is repeated on one with others, too.
    fn provenance(&self) -> &'static [&'static str] {
        &["seed"]
    }

    /// Whether what an interrupted preparation or load has left stays until somebody asks for it to be dropped.
    fn stays_when_interrupted(&self) -> bool {
        false
    }

    /// Whether it may have a database of its own.
    fn may_have_a_database(&self) -> bool {
        false
    }

    /// Changes the given parameters before they replace those of `self`: what one implies for others.
    fn complete(&self, _given: &mut serde_json::Map<String, Value>) {}
}

/// The dataset with the given parameters in the place of its own.
///
/// # Errors
/// [`PlanError`] where a parameter is unknown or has another type.
pub(super) fn overlaid<T>(
    dataset: &T,
    given: &serde_json::Map<String, Value>,
) -> Result<T, PlanError>
where
    T: DatasetSpec + serde::Serialize + serde::de::DeserializeOwned,
{
    let name = dataset.name();
    let mut given = given.clone();
    dataset.complete(&mut given);
    let mut all = serde_json::to_value(dataset)
        .map_err(|error| PlanError(format!("the dataset of {name}: {error}")))?;
    if let Some(all) = all.as_object_mut() {
        for (parameter, value) in given {
            match all.entry(parameter) {
                Entry::Occupied(mut own) => drop(own.insert(value)),
                Entry::Vacant(none) => {
                    return refuse(format!("a dataset of {name} has no parameter {}", none.key()));
                }
            }
        }
    }
    serde_json::from_value(all)
        .map_err(|error| PlanError(format!("the dataset of {name}: {error}")))
}
