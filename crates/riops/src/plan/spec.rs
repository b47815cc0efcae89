//! Properties of a workload, for the layers that treat all workloads the same way.

use serde_json::Value;
use serde_json::map::Entry;

use super::error::{PlanError, refuse};
use super::keys::Distribution;
use super::pgbench::TransactionLog;
use super::policy::{Caches, ErrorPolicy, LatencyLimit, OnError, Protocol, Schedule, Stop};
use super::threshold::Part;

/// The settings that all workloads share, so that a workload can reject those it does not support.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields of the plan under the same names")]
pub struct Common<'a> {
    pub protocol: Protocol,
    pub schedule: Schedule,
    pub stop: Stop,
    pub max_duration_s: Option<f64>,
    pub pipeline: u32,
    pub reconnect_every: Option<u64>,
    pub latency_limit: Option<LatencyLimit>,
    pub rebalance: bool,
    pub keep_samples: bool,
    pub warmup_s: f64,
    pub errors: ErrorPolicy,
    pub abort_on_threshold: bool,
    /// Parameters given for the dataset, by their names in the registry.
    pub dataset: &'a serde_json::Map<String, Value>,
}

impl Common<'_> {
    /// Fails if an option is set that applies only to workloads that repeat a transaction.
    pub(super) fn refuse_repetition_options(&self, workload: &str) -> Result<(), PlanError> {
        let set = [
            ("--rate", self.schedule != Schedule::Closed),
            ("--warmup", self.warmup_s != 0.0),
            ("--max-duration", self.max_duration_s.is_some()),
            ("--pipeline", self.pipeline != 1),
            ("--reconnect", self.reconnect_every.is_some()),
            ("--latency-limit", self.latency_limit.is_some()),
            ("--on-error", self.errors.on_error != OnError::Stop),
            ("--abort-on-threshold", self.abort_on_threshold),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((option, _)) => refuse(format!(
                "{option} is not supported by {workload}, which does not repeat a transaction"
            )),
        }
    }
}

/// Properties of a stage that are stored in its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageFacts {
    /// Rows per read, or per statement of a load.
    pub batch: Option<u64>,
    /// Rows per update.
    pub update_batch: Option<u64>,
    /// Load method.
    pub method: Option<String>,
    /// Whether the transaction loop runs in the server.
    pub in_server: bool,
    /// Whether reads are index-only.
    pub index_only: bool,
}

/// The share of an operation in a mix of two kinds of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Name of the operation.
    pub operation: &'static str,
    /// Requested share, in percent.
    pub percent: u8,
    /// Whether it is a share of the rows, not of the transactions.
    pub of_rows: bool,
    /// Rows per transaction: of the operation, and of the other one.
    pub rows_each: (u64, u64),
}

/// The parameters of a workload's run.
pub trait Spec {
    /// Returns the workload's name on the command line and in the record.
    fn name(&self) -> &'static str;

    /// Returns what it does on this machine besides measuring, as in "executes shell commands".
    fn needs_trust(&self) -> Option<String> {
        None
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] with the option, its value and the allowed values.
    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError>;

    /// Checks that a threshold can be judged for a part of the result.
    ///
    /// # Errors
    /// [`PlanError`] if the part does not exist.
    fn validate_part(&self, _part: &Part) -> Result<(), PlanError> {
        refuse("thresholds of scripts and commands require run script".to_owned())
    }

    /// Returns the name of its dataset in the registry, or `None` if it needs no prepared dataset.
    fn dataset(&self) -> Option<&'static str>;

    /// Whether `riops run` can execute it.
    fn is_executable(&self) -> bool {
        true
    }

    /// Whether the main result counts transactions and not rows.
    fn counts_transactions(&self) -> bool {
        false
    }

    /// Whether rows were counted.
    fn counts_rows(&self) -> bool {
        true
    }

    /// Whether statements were counted.
    fn counts_statements(&self) -> bool {
        true
    }

    /// Whether any transaction changes rows of a dataset that outlives the run.
    fn writes(&self) -> bool;

    /// Returns the title of a run in lists.
    fn title(&self) -> String {
        self.name().to_owned()
    }

    /// Returns the parameters of each stage, in execution order.
    fn stages(&self) -> Vec<Self>
    where
        Self: Sized + Clone,
    {
        vec![self.clone()]
    }

    /// Returns the parameters for a rerun, with everything that this run determined automatically set
    /// explicitly.
    #[must_use]
    fn repeated(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// Returns the parameters as comparisons see them: without those that only name or print something.
    #[must_use]
    fn compared(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// Returns the properties of a stage that are stored in its record.
    fn facts(&self) -> StageFacts {
        StageFacts::default()
    }

    /// Returns the requested mix of transactions; `None` if all are of one kind.
    fn mix(&self) -> Option<Mix> {
        None
    }

    /// Returns the requested share of updates in percent, also if it is 0 or 100; `None` if the workload has no
    /// such parameter.
    fn update_percent(&self) -> Option<u8> {
        None
    }

    /// Returns the distribution of the accessed keys, if the workload has this parameter.
    fn distribution(&self) -> Option<Distribution> {
        None
    }

    /// Returns the requested state of the caches at the start of a stage.
    fn caches(&self) -> Caches {
        Caches::AsFound
    }

    /// Whether a stage is invalid if its caches could not be emptied.
    fn requires_cold(&self) -> bool {
        self.caches() == Caches::Cold
    }

    /// Whether the ledger counts the rows changed by this operation.
    fn counts_changes_of(&self, _operation: &str) -> bool {
        false
    }

    /// Whether its changes remain in the tables and are counted in the ledger. A run that did not report its changes
    /// would then hide later losses.
    fn adds_changes(&self) -> bool {
        false
    }

    /// Whether the transaction loop of any stage runs in the server. It needs one node and dedicated
    /// sessions.
    fn has_server_loop(&self) -> bool {
        false
    }

    /// Whether sessions are terminated whose transaction did not end in time.
    fn terminates_sessions(&self) -> bool {
        false
    }

    /// Whether it relies on session-level locks and settings from the first statement on.
    fn needs_dedicated_sessions(&self) -> bool {
        false
    }

    /// Whether other programs may change the tables between two runs: the contents before a run are then its baseline.
    fn shares_its_tables(&self) -> bool {
        false
    }

    /// Returns the log of single transactions, if there is one, and whether it has the types of failures.
    fn transaction_log(&self) -> Option<(&TransactionLog, bool)> {
        None
    }

    /// Whether its transactions may change the tables in ways that are not counted. The data cannot be verified then.
    fn has_uncounted_changes(&self) -> bool {
        false
    }

    /// Whether each session ends after a number of transactions, to which skipped ones belong.
    fn limits_each_session(&self) -> bool {
        false
    }

    /// Whether the run remains valid if an access path changes.
    fn tolerates_changed_plans(&self) -> bool {
        false
    }

    /// Returns what is probably a mistake in its statements.
    fn warnings(&self, _protocol: Protocol) -> Vec<String> {
        Vec::new()
    }

    /// Whether a stage must process exactly the planned number of rows.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether a stage without a completed transaction is a valid result.
    fn allows_no_transactions(&self) -> bool {
        false
    }

    /// Whether each stage replaces the table of the previous stage.
    fn replaces_its_table(&self) -> bool {
        false
    }

    /// Returns a description of the replies that are counted as wrong.
    fn wrong_replies(&self) -> &'static str {
        "fewer or more rows than requested"
    }
}

/// The parameters of a dataset.
pub trait DatasetSpec {
    /// Returns its name in the registry, which is the name of the workload that prepares it.
    fn name(&self) -> &'static str;

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] with the option, its value and the allowed values.
    fn validate(&self) -> Result<(), PlanError>;

    /// Returns the parameters that only describe its origin. A rerun accepts a dataset with other values.
    fn provenance(&self) -> &'static [&'static str] {
        &["seed"]
    }

    /// Returns what its preparation executes besides creating and filling tables, as in "executes …".
    fn needs_trust(&self) -> Option<String> {
        None
    }

    /// Whether the tables of an interrupted preparation or load stay until the user drops them.
    fn stays_when_interrupted(&self) -> bool {
        false
    }

    /// Whether it may be stored in a dedicated database.
    fn may_use_dedicated_database(&self) -> bool {
        false
    }

    /// Returns the parameters whose product is the number of rows. A run may use the first tables and rows only
    /// (`Plan::part`).
    fn scale(&self) -> &'static [&'static str] {
        &[]
    }

    /// Adds the parameters implied by the given ones, before they replace those of `self`.
    fn complete(&self, _given: &mut serde_json::Map<String, Value>) {}
}

/// Returns the dataset with the given parameters replacing its own.
///
/// # Errors
/// [`PlanError`] if a parameter is unknown or has another type.
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
        .map_err(|error| PlanError(format!("invalid parameters of dataset \"{name}\": {error}")))?;
    if let Some(all) = all.as_object_mut() {
        for (parameter, value) in given {
            match all.entry(parameter) {
                Entry::Occupied(mut own) => drop(own.insert(value)),
                Entry::Vacant(none) => {
                    return refuse(format!(
                        "dataset \"{name}\" has no parameter \"{}\"",
                        none.key()
                    ));
                }
            }
        }
    }
    serde_json::from_value(all)
        .map_err(|error| PlanError(format!("invalid parameters of dataset \"{name}\": {error}")))
}
