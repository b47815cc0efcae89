//! Properties of a workload, for the layers that treat all workloads the same way.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{PlanError, refuse};
use super::keys::Distribution;
use super::pgbench::TransactionLog;
use super::policy::{Caches, ErrorPolicy, LatencyLimit, OnError, Protocol, Schedule, Share, Stop};
use super::threshold::Part;

/// The settings that all workloads share, so that a workload can reject those it does not support.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields of the plan under the same names")]
pub struct Common<'a> {
    pub protocol: Protocol,
    pub schedule: &'a Schedule,
    pub stop: Stop,
    pub share: Option<Share>,
    pub max_duration_s: Option<f64>,
    pub pipeline: u32,
    pub reconnect_every: Option<u64>,
    pub latency_limit: Option<LatencyLimit>,
    pub rebalance: bool,
    pub keep_samples: bool,
    pub warmup_s: f64,
    pub errors: ErrorPolicy,
    pub abort_on_threshold: bool,
    pub settings: &'a BTreeMap<String, String>,
    /// Parameters given for the dataset, by their names in the registry.
    pub dataset: &'a serde_json::Map<String, Value>,
}

impl Common<'_> {
    /// Fails if there are settings, which apply only to sessions that riops opens for its transactions.
    pub(super) fn refuse_settings(&self, workload: &str) -> Result<(), PlanError> {
        require!(self.settings.is_empty(), "--setting is not supported by {workload}");
        Ok(())
    }

    /// Fails if an option is set that applies only to workloads that repeat a transaction.
    pub(super) fn refuse_repetition_options(&self, workload: &str) -> Result<(), PlanError> {
        let set = [
            ("--rate", *self.schedule != Schedule::Closed),
            ("--warmup", self.warmup_s != 0.0),
            ("--max-duration", self.max_duration_s.is_some()),
            ("--pipeline", self.pipeline != 1),
            ("--reconnect", self.reconnect_every.is_some()),
            ("--latency-limit", self.latency_limit.is_some()),
            ("--on-error", self.errors.on_error != OnError::Stop),
            ("--abort-on-threshold", self.abort_on_threshold),
        ];
        for (option, is_set) in set {
            require!(
                !is_set,
                "{option} is not supported by {workload}, which does not repeat a transaction"
            );
        }
        Ok(())
    }
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

/// Properties of the work of a run, or of one of its stages, for generic code. A workload sets the properties that
/// differ from the default.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property")]
pub struct Traits {
    /// Name of the workload on the command line and in the record.
    pub name: &'static str,
    /// Name of its dataset in the registry; `None` if it needs no prepared dataset.
    pub dataset: Option<&'static str>,
    /// Whether it is the results of another tool, which `riops run` cannot execute.
    pub is_imported: bool,
    /// Whether the main result counts transactions and not rows.
    pub counts_transactions: bool,
    /// Whether rows were not counted.
    pub has_no_rows: bool,
    /// Whether statements were not counted.
    pub has_no_statements: bool,
    /// Whether any transaction changes rows of a dataset that outlives the run.
    pub writes: bool,
    /// Whether its changes remain in the tables and are counted in the ledger. A run that did not report its changes
    /// would then hide later losses.
    pub adds_changes: bool,
    /// Whether the ledger counts the rows changed by an operation; absent: for no operation.
    pub counts_rows_of: Option<fn(&str) -> bool>,
    /// Whether its transactions may change the tables in ways that are not counted. The data cannot be verified then.
    pub has_uncounted_changes: bool,
    /// Whether other programs may change the tables between two runs: the contents before a run are then its baseline.
    pub shares_its_tables: bool,
    /// Whether each stage replaces the table of the previous stage.
    pub replaces_its_table: bool,
    /// Whether a stage must process exactly the planned number of rows.
    pub is_exact: bool,
    /// Whether a stage without a completed transaction is a valid result.
    pub accepts_no_transactions: bool,
    /// Whether all messages of the server are shown while it runs, as pgbench does.
    pub shows_messages: bool,
    /// Whether the run remains valid if an access path changes.
    pub tolerates_changed_plans: bool,
    /// Description of the replies that are counted as wrong; absent: fewer or more rows than requested.
    pub wrong_replies: Option<&'static str>,
    /// Rows per read, or per statement of a load.
    pub batch: Option<u64>,
    /// Rows per update.
    pub update_batch: Option<u64>,
    /// Load method.
    pub method: Option<&'static str>,
    /// Whether reads are index-only.
    pub index_only: bool,
    /// The requested mix of transactions; `None` if all are of one kind.
    pub mix: Option<Mix>,
    /// The requested share of updates in percent, also if it is 0 or 100; `None` if the workload has no such parameter.
    pub update_percent: Option<u8>,
    /// The distribution of the accessed keys, if the workload has this parameter.
    pub distribution: Option<Distribution>,
    /// The requested state of the caches at the start of a stage.
    pub caches: Caches,
    /// Whether it empties the caches itself, and is invalid if it could not.
    pub empties_caches: bool,
    /// Whether the transaction loop of any stage runs in the server. It needs one node and dedicated sessions.
    pub has_server_loop: bool,
    /// Whether it relies on session-level locks and settings from the first statement on.
    pub needs_dedicated_sessions: bool,
    /// Whether each of several stages replaces the table of the one before.
    pub has_several_stages: bool,
    /// Whether several clients cannot share its work.
    pub is_undivided: bool,
    /// Whether sessions are terminated whose transaction did not end in time.
    pub terminates_sessions: bool,
    /// Whether each session ends after a number of transactions, to which skipped ones belong.
    pub limits_each_session: bool,
    /// The log of single transactions, if there is one.
    pub transaction_log: Option<TransactionLog>,
    /// Whether the log has the types of failures.
    pub logs_failure_types: bool,
    /// Whether its generator can write a transaction again with new random values.
    pub can_redraw: bool,
}

impl Traits {
    /// Whether the ledger counts the rows changed by this operation.
    pub fn counts_changes_of(&self, operation: &str) -> bool {
        self.counts_rows_of.is_some_and(|counts_rows| counts_rows(operation))
    }

    /// Whether a stage is invalid if its caches could not be emptied.
    pub fn requires_cold(&self) -> bool {
        self.empties_caches || self.caches == Caches::Cold
    }
}

/// The parameters of a workload's run.
pub trait Spec {
    /// Returns what generic code needs to know about these parameters.
    fn traits(&self) -> Traits;

    /// Returns what it does on this machine besides measuring, as in "executes shell commands".
    fn needs_trust(&self) -> Option<String> {
        None
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] with the option, its value and the allowed values.
    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError>;

    /// Returns the number of the script that a threshold judges, from 1.
    ///
    /// # Errors
    /// [`PlanError`] if the script or its command does not exist.
    fn script_of(&self, _part: &Part) -> Result<usize, PlanError> {
        refuse("thresholds of scripts and commands require run script")
    }

    /// Returns the title of a run in lists.
    fn title(&self) -> String {
        self.traits().name.to_owned()
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
    fn repeated(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// Returns the parameters as comparisons see them: without those that only name or print something.
    fn compared(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// Returns what is probably a mistake in its statements.
    fn warnings(&self, _protocol: Protocol) -> Vec<String> {
        Vec::new()
    }
}

/// Properties of a dataset for generic code. A dataset sets the properties that differ from the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatasetTraits {
    /// Its name in the registry, which is the name of the workload that prepares it.
    pub name: &'static str,
    /// The parameters that only describe its origin. A rerun accepts a dataset with other values.
    pub provenance: &'static [&'static str],
    /// The parameters whose product is the number of rows. A run may use the first tables and rows only (`Plan::part`).
    pub scale: &'static [&'static str],
    /// Whether the tables of an interrupted preparation or load stay until the user drops them.
    pub stays_when_interrupted: bool,
    /// Whether it may be stored in a dedicated database.
    pub may_use_dedicated_database: bool,
}

/// The parameters of a dataset.
pub trait DatasetSpec {
    /// Returns what generic code needs to know about the dataset.
    fn traits(&self) -> DatasetTraits;

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// [`PlanError`] with the option, its value and the allowed values.
    fn validate(&self) -> Result<(), PlanError>;

    /// Returns what its preparation executes besides creating and filling tables, as in "executes …".
    fn needs_trust(&self) -> Option<String> {
        None
    }

    /// Adds the parameters that the given ones imply, before the given ones replace the parameters of `self`.
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
    let name = dataset.traits().name;
    let invalid = |error| PlanError(format!("invalid parameters of dataset \"{name}\": {error}"));
    let mut given = given.clone();
    dataset.complete(&mut given);
    let mut all = serde_json::to_value(dataset).map_err(invalid)?;
    for (parameter, value) in given {
        let own = all.get_mut(&parameter);
        *own.ok_or_else(|| {
            PlanError(format!("dataset \"{name}\" has no parameter \"{parameter}\""))
        })? = value;
    }
    serde_json::from_value(all).map_err(invalid)
}

/// Returns the values of a parameter in the stages of a run: its only value, unless there are several.
pub(super) fn each_stage<T: Clone>(only: T, several: &[T]) -> Vec<T> {
    if several.is_empty() { vec![only] } else { several.to_vec() }
}
