//! The parameters of the workload `rows`: of its dataset and of its runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::error::{PlanError, at_least_one, at_most, refuse, require_first};
use super::keys::Distribution;
use super::policy::{Caches, Protocol, Schedule};
use super::spec::{Common, DatasetSpec, DatasetTraits, Mix, Spec, Traits, each_stage};

/// Name of the workload and of its dataset.
const NAME: &str = "rows";
/// Minimum staleness of follower reads, in milliseconds: twice the default of the maximum clock skew.
const FOLLOWER_READS_MS_MIN: u64 = 1_000;

/// The insert order of rows, which is their physical order in a heap table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// A pseudo-random permutation of all keys: neighbors in the index are far apart in the table.
    Scattered,
    /// By key.
    Key,
    /// By the hash of the key, within each batch.
    Hash,
    /// By any SQL expression over `mykey` and `scratch`, within each batch.
    Sql(String),
}

impl FromStr for Order {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        match text.trim() {
            "scattered" => Ok(Self::Scattered),
            "key" => Ok(Self::Key),
            "hash" => Ok(Self::Hash),
            "" => refuse(
                "--order must not be empty: scattered, key, hash, or an SQL expression over mykey and scratch",
            ),
            expression => Ok(Self::Sql(expression.to_owned())),
        }
    }
}

text_in_json!(Order);

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Scattered => "scattered",
            Self::Key => "key",
            Self::Hash => "hash",
            Self::Sql(expression) => expression,
        })
    }
}

/// The number of rows per block of a heap table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// As many rows per block as fit.
    #[default]
    Packed,
    /// One row per block, so that one row read is one block read, as in SLOB.
    Block,
}

names!(Layout { Packed: "packed", Block: "block" });

/// The parameters of the dataset of `prepare rows`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
pub struct RowsDataset {
    /// Number of tables.
    #[default = 1]
    pub tables: u32,
    /// Rows per table. The keys are 1 to `rows`.
    #[default = 1_000_000]
    pub rows: u64,
    /// Rows per transaction of the load.
    #[default = 10_000]
    pub batch: u64,
    /// Length of the filler column, in characters.
    #[default = 1]
    pub filler: u32,
    /// Physical order of the rows.
    #[default(Order::Scattered)]
    pub order: Order,
    /// Rows per block.
    #[serde(default)]
    pub layout: Layout,
    /// Whether the key is the primary key instead of a secondary index.
    pub primary_key: bool,
    /// Tablets of each table, if the server has tablets; 0: the default of the server.
    #[serde(default)]
    pub tablets: u32,
    /// Tablets of the index, split at equal steps of the key; 0: the default of the server.
    #[serde(default)]
    pub index_tablets: u32,
    /// Whether rows are loaded without transactions, if the server supports it.
    #[serde(default)]
    pub non_transactional: bool,
    /// Random seed of the contents.
    pub seed: u64,
}

/// With a fill factor of 10 % a block of 8 kB accepts a second row unless the first is longer than 396
/// bytes: two rows must leave 90 % of it free. A row without its filler has about 60 bytes.
const BLOCK_FILLER_MIN: u32 = 400;
/// Default length of the filler in the layout `block`, as in PGIO: a row then fills its block.
pub const BLOCK_FILLER: u32 = 1024;
/// Maximum number of tablets of a table, far more than a cluster supports.
const TABLETS_MAX: u32 = 10_000;
/// A row must fit into one page of 8 kB, uncompressed.
const FILLER_MAX: u32 = 8_000;
/// The name of a table has four digits.
const TABLES_MAX: u32 = 9_999;
/// Keys are `bigint`. A limit far below its maximum leaves room for sums and products of keys.
const ROWS_MAX: u64 = 1_000_000_000_000_000;

/// The unit that `--update-percent` refers to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateShare {
    /// Percentage of the rows, as in ybio.
    #[default]
    Rows,
    /// Percentage of the transactions, as in PGIO.
    Transactions,
}

/// Where the transaction loop of a session runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopSide {
    /// In the client: riops sends each transaction.
    #[default]
    Client,
    /// In the server: a procedure that each session calls once.
    Server,
}

names!(LoopSide { Client: "client", Server: "server" });

/// The parameters of `run rows`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
pub struct RowsRun {
    /// Rows per read.
    #[default = 1000]
    pub batch: u64,
    /// Batch sizes to compare, one stage for each; empty: only `batch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<u64>,
    /// Percentage of rows or transactions that are updated instead of read.
    pub update_percent: u8,
    /// Unit of `update_percent`.
    #[serde(default)]
    pub update_share: UpdateShare,
    /// Rows per update; absent: as many as per read.
    pub update_batch: Option<u64>,
    /// Whether reads are index-only.
    pub index_only: bool,
    /// Whether each session uses one table instead of choosing one for each transaction.
    pub table_per_session: bool,
    /// Distribution of the keys.
    pub distribution: Distribution,
    /// Where the transaction loop runs.
    #[serde(default, rename = "loop")]
    pub loop_side: LoopSide,
    /// Loop sides to compare, one stage for each; empty: only `loop_side`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loop_sides: Vec<LoopSide>,
    /// State of the caches at the start of each stage.
    #[serde(default)]
    pub caches: Caches,
    /// Maximum staleness of follower reads, in milliseconds; absent: reads from the leader (YugabyteDB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follower_reads_ms: Option<u64>,
    /// Whether updates run without a distributed transaction (YugabyteDB).
    #[serde(default)]
    pub non_transactional: bool,
    /// Number of rows of each table that are used, with the keys from 1 to this number; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set: Option<u64>,
}

/// Maximum number of stages of a run. Larger studies are sweeps.
const STAGES_MAX: usize = 100;

impl RowsRun {
    /// Checks the run against its dataset.
    ///
    /// # Errors
    /// [`PlanError`] if the working set is larger than a table, or a batch larger than the working set.
    pub fn validate_for(&self, dataset: &RowsDataset) -> Result<(), PlanError> {
        let rows = self.part_of(dataset).rows;
        require!(
            rows <= dataset.rows,
            "--working-set {rows} exceeds the {} rows of each table: use a smaller working set or prepare more rows",
            dataset.rows
        );
        let limit = match self.working_set {
            Some(_) => format!("--working-set {rows}"),
            None => {
                format!("the {rows} rows of each table: use a smaller batch or prepare more rows")
            }
        };
        for stage in self.stages() {
            let batches = [
                ("--batch", stage.batch, stage.reads()),
                ("--update-batch", stage.update_batch(), stage.updates()),
            ];
            for (option, batch, is_used) in batches {
                require!(!is_used || batch <= rows, "{option} {batch} exceeds {limit}");
            }
        }
        Ok(())
    }

    /// Returns the part of the dataset that is used: the working set of each table.
    pub fn part_of(&self, dataset: &RowsDataset) -> RowsDataset {
        RowsDataset { rows: self.working_set.unwrap_or(dataset.rows), ..dataset.clone() }
    }

    /// Returns the rows per update.
    pub fn update_batch(&self) -> u64 {
        self.update_batch.unwrap_or(self.batch)
    }

    /// Whether any transaction is a read.
    pub fn reads(&self) -> bool {
        self.update_percent < 100
    }

    /// Whether any transaction is an update.
    pub fn updates(&self) -> bool {
        self.update_percent > 0
    }

    /// Whether the transaction loop of any stage runs in the server.
    pub fn has_server_loop(&self) -> bool {
        self.stages().iter().any(|stage| stage.loop_side == LoopSide::Server)
    }
}

impl DatasetSpec for RowsDataset {
    fn traits(&self) -> DatasetTraits {
        DatasetTraits {
            name: NAME,
            provenance: &["seed"],
            scale: &["tables", "rows"],
            ..DatasetTraits::default()
        }
    }

    fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--tables", self.tables)?;
        at_least_one("--rows", self.rows)?;
        at_least_one("--batch", self.batch)?;
        at_least_one("--filler", self.filler)?;
        at_most("--tables", self.tables, TABLES_MAX, "")?;
        at_most("--rows", self.rows, ROWS_MAX, "")?;
        at_most("--filler", self.filler, FILLER_MAX, ": a row must fit into one page")?;
        require!(
            self.layout == Layout::Packed || self.filler >= BLOCK_FILLER_MIN,
            "--filler must be at least {BLOCK_FILLER_MIN} with --layout block, not {}: a second row would fit into the block",
            self.filler
        );
        for (option, tablets) in
            [("--tablets", self.tablets), ("--index-tablets", self.index_tablets)]
        {
            require!(
                tablets <= TABLETS_MAX && u64::from(tablets) <= self.rows,
                "{option} {tablets} exceeds the maximum of {TABLETS_MAX} or the number of rows"
            );
        }
        Ok(())
    }

    fn needs_trust(&self) -> Option<String> {
        match &self.order {
            Order::Sql(expression) => Some(format!("executes the SQL expression {expression}")),
            Order::Scattered | Order::Key | Order::Hash => None,
        }
    }

    fn complete(&self, given: &mut serde_json::Map<String, Value>) {
        // Without an explicit filler, a row would not fill its block.
        let block = given.get("layout").is_some_and(|layout| layout == Layout::Block.as_str());
        if block && self.layout == Layout::Packed {
            given.entry("filler").or_insert_with(|| BLOCK_FILLER.into());
        }
    }
}

impl Spec for RowsRun {
    fn traits(&self) -> Traits {
        // An index-only update leaves no trace in the rows.
        let is_counted = self.updates() && !self.index_only;
        Traits {
            name: NAME,
            dataset: Some(NAME),
            writes: self.updates(),
            adds_changes: is_counted,
            counts_rows_of: is_counted.then_some(|operation| operation == "update"),
            batch: Some(self.batch),
            update_batch: self.updates().then(|| self.update_batch()),
            index_only: self.index_only,
            mix: (self.reads() && self.updates()).then(|| Mix {
                operation: "update",
                percent: self.update_percent,
                of_rows: self.update_share == UpdateShare::Rows,
                rows_each: (self.update_batch(), self.batch),
            }),
            update_percent: Some(self.update_percent),
            distribution: Some(self.distribution),
            caches: self.caches,
            has_server_loop: self.has_server_loop(),
            ..Traits::default()
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        require_first("batch", &self.batch, &self.batches)?;
        require_first("loop", &self.loop_side, &self.loop_sides)?;
        let stages = self.stages();
        for stage in &stages {
            at_least_one("--batch", stage.batch)?;
        }
        at_least_one("--update-batch", self.update_batch())?;
        at_least_one("--working-set", self.working_set.unwrap_or(1))?;
        at_most("--update-percent", self.update_percent, 100u8, "")?;
        require!(
            stages.len() <= STAGES_MAX,
            "--batch and --loop give {} stages, which exceeds the maximum of {STAGES_MAX}",
            stages.len()
        );
        require!(
            !self.has_server_loop() || self.distribution == Distribution::Uniform,
            "--distribution {} requires --loop client: the server-side loop only supports uniformly distributed keys",
            self.distribution
        );
        if let Some(staleness) = self.follower_reads_ms {
            require!(
                staleness >= FOLLOWER_READS_MS_MIN,
                "--follower-reads must be at least 1s: YugabyteDB refuses a staleness below twice the maximum clock skew of its nodes (max_clock_skew_usec, 500 ms)"
            );
            require!(
                !self.has_server_loop(),
                "--follower-reads requires --loop client: the server-side loop creates a temporary view, which a read-only session cannot do"
            );
            require!(
                !self.updates(),
                "--follower-reads requires --update-percent 0: followers do not accept updates"
            );
        }
        if !self.has_server_loop() {
            return Ok(());
        }
        // All of these apply to single transactions, which the client does not send.
        let client_only = [
            ("--rebalance", common.rebalance),
            ("--graph", common.keep_samples),
            ("--rate", *common.schedule != Schedule::Closed),
            ("--latency-limit", common.latency_limit.is_some()),
            ("--pipeline", common.pipeline > 1),
            ("--reconnect", common.reconnect_every.is_some()),
            ("--protocol extended", common.protocol == Protocol::Extended),
        ];
        for (option, is_used) in client_only {
            require!(
                !is_used,
                "{option} requires --loop client: the server-side loop is a single call per session"
            );
        }
        Ok(())
    }

    fn stages(&self) -> Vec<Self> {
        let sides = each_stage(self.loop_side, &self.loop_sides);
        let stages_of = |&batch: &u64| {
            sides.iter().map(move |&loop_side| Self {
                batch,
                batches: Vec::new(),
                loop_side,
                loop_sides: Vec::new(),
                ..self.clone()
            })
        };
        each_stage(self.batch, &self.batches).iter().flat_map(stages_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_order_is_an_sql_expression() {
        assert_eq!("key".parse(), Ok(Order::Key));
        assert_eq!("mykey % 7".parse(), Ok(Order::Sql("mykey % 7".to_owned())));
        assert!("  ".parse::<Order>().is_err());
    }

    #[test]
    fn rejects_a_batch_larger_than_the_table_only_if_it_is_used() {
        let dataset = RowsDataset { rows: 10, ..RowsDataset::default() };
        let read = RowsRun { batch: 11, update_batch: Some(5), ..RowsRun::default() };
        assert!(read.validate_for(&dataset).is_err());
        let update = RowsRun { update_percent: 100, ..read.clone() };
        assert_eq!(update.validate_for(&dataset), Ok(()));
        let study = RowsRun { batch: 1, batches: vec![1, 10, 11], ..read };
        assert!(study.validate_for(&dataset).is_err());
    }

    #[test]
    fn only_a_run_with_reads_and_updates_has_a_mix() {
        let run = |update_percent| RowsRun { update_percent, batch: 100, ..RowsRun::default() };
        assert_eq!((run(0).traits().mix, run(100).traits().mix), (None, None));
        let rows = RowsRun { update_batch: Some(7), ..run(20) };
        let mix = Mix { operation: "update", percent: 20, of_rows: true, rows_each: (7, 100) };
        assert_eq!(rows.traits().mix, Some(mix));
        let share = RowsRun { update_share: UpdateShare::Transactions, ..rows };
        assert_eq!(share.traits().mix, Some(Mix { of_rows: false, ..mix }));
    }

    #[test]
    fn runs_one_stage_for_each_batch_size_and_loop_side() {
        let study = RowsRun {
            batches: vec![1, 100],
            loop_sides: vec![LoopSide::Client, LoopSide::Server],
            ..RowsRun::default()
        };
        let stages: Vec<_> =
            study.stages().iter().map(|stage| (stage.update_batch(), stage.loop_side)).collect();
        let (client, server) = (LoopSide::Client, LoopSide::Server);
        assert_eq!(stages, [(1, client), (1, server), (100, client), (100, server)]);
        assert!(study.stages().iter().all(|stage| stage.stages().len() == 1));
        assert!(study.has_server_loop() && !RowsRun::default().has_server_loop());
    }

    #[test]
    fn the_server_side_loop_requires_a_uniform_distribution() {
        let validated = |run: &RowsRun| {
            crate::plan::Plan { work: run.clone().into(), ..crate::plan::Plan::default() }
                .validate()
        };
        let run = RowsRun { loop_side: LoopSide::Server, ..RowsRun::default() };
        assert_eq!(validated(&run), Ok(()));
        let skewed = RowsRun { distribution: Distribution::Zipfian { theta: 0.9 }, ..run };
        assert!(validated(&skewed).unwrap_err().to_string().contains("--loop client"));
    }

    #[test]
    fn the_block_layout_requires_rows_that_fill_a_block() {
        let block = RowsDataset { layout: Layout::Block, filler: 399, ..RowsDataset::default() };
        assert!(block.validate().unwrap_err().to_string().contains("--layout block"));
        assert_eq!(RowsDataset { filler: BLOCK_FILLER, ..block }.validate(), Ok(()));
    }
}
