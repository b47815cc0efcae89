//! The parameters of the workload `rows`: of its dataset, and of a run on it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{PlanError, at_least_one, refuse, require_first};
use super::keys::Distribution;
use super::policy::{Caches, Protocol, Schedule};
use super::spec::{Common, DatasetSpec, Spec, StageFacts};

/// The workload's name, and that of its dataset.
const NAME: &str = "rows";

/// The order in which rows are inserted, which is where they lie in a heap table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Order {
    /// A pseudo-random permutation of all keys: neighbours in the index are strangers in the
    /// table.
    Scattered,
    /// In the order of the keys.
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
            "" => refuse("--order must not be empty: scattered, key, hash, or an SQL expression over mykey and scratch".to_owned()),
            expression => Ok(Self::Sql(expression.to_owned())),
        }
    }
}

impl TryFrom<String> for Order {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

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

impl From<Order> for String {
    fn from(order: Order) -> Self {
        order.to_string()
    }
}

/// How rows fill the blocks of a heap table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// As many rows to a block as fit.
    #[default]
    Packed,
    /// One row to a block, so that one row read is one block read: SLOB's layout.
    Block,
}

impl Layout {
    /// As it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Block => "block",
        }
    }
}

/// What `prepare rows` makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsDataset {
    /// Tables.
    pub tables: u32,
    /// Rows of each table; the keys are 1…rows.
    pub rows: u64,
    /// Rows of one load transaction.
    pub batch: u64,
    /// Characters of the column that makes rows larger.
    pub filler: u32,
    /// Where the rows lie.
    pub order: Order,
    /// How they fill the blocks.
    #[serde(default)]
    pub layout: Layout,
    /// Whether the key is the primary key, instead of an index beside the table.
    pub primary_key: bool,
    /// Tablets of the table, where the server has such; 0 leaves it to the server.
    #[serde(default)]
    pub tablets: u32,
    /// Tablets of the index, split at equal distances of the key; 0 leaves it to the server.
    #[serde(default)]
    pub index_tablets: u32,
    /// Whether rows are loaded without transactions, where the server can do that.
    #[serde(default)]
    pub non_transactional: bool,
    /// From which the contents are derived.
    pub seed: u64,
}

/// With a fill factor of 10 % a block of 8 kB takes a second row unless the first has more than 396
/// bytes: two rows have to leave 90 % of it free. The rest of a row has about 60 bytes.
const BLOCK_FILLER_MIN: u32 = 400;
/// What makes a row fill its block in the layout `block`, as in PGIO.
pub const BLOCK_FILLER: u32 = 1024;
/// Tablets of one table, far more than a cluster takes.
const TABLETS_MAX: u32 = 10_000;
/// A row has to fit into one page of 8 kB, uncompressed.
const FILLER_MAX: u32 = 8_000;
/// As many as the four digits of a table's name can count.
const TABLES_MAX: u32 = 9_999;
/// Keys are `bigint`; a tenth of its range leaves room for every sum and product made of them.
const ROWS_MAX: u64 = 1_000_000_000_000_000;

impl Default for RowsDataset {
    fn default() -> Self {
        Self {
            tables: 1,
            rows: 1_000_000,
            batch: 10_000,
            filler: 1,
            order: Order::Scattered,
            layout: Layout::Packed,
            primary_key: false,
            tablets: 0,
            index_tablets: 0,
            non_transactional: false,
            seed: 0,
        }
    }
}

impl RowsDataset {
    /// Checks what can be checked without a target.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    pub fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--tables", u64::from(self.tables))?;
        at_least_one("--rows", self.rows)?;
        at_least_one("--batch", self.batch)?;
        at_least_one("--filler", u64::from(self.filler))?;
        if self.tables > TABLES_MAX {
            return refuse(format!("--tables {} is more than {TABLES_MAX}", self.tables));
        }
        if self.rows > ROWS_MAX {
            return refuse(format!("--rows {} is more than {ROWS_MAX}", self.rows));
        }
        if self.filler > FILLER_MAX {
            return refuse(format!(
                "--filler {} is more than {FILLER_MAX}: a row has to fit into one page",
                self.filler
            ));
        }
        if self.layout == Layout::Block && self.filler < BLOCK_FILLER_MIN {
            return refuse(format!(
                "--filler {} is less than {BLOCK_FILLER_MIN}: with --layout block a second row would fit into the block",
                self.filler
            ));
        }
        for (option, tablets) in
            [("--tablets", self.tablets), ("--index-tablets", self.index_tablets)]
        {
            if tablets > TABLETS_MAX || u64::from(tablets) > self.rows {
                return refuse(format!(
                    "{option} {tablets} is more than {TABLETS_MAX}, or than there are rows"
                ));
            }
        }
        Ok(())
    }
}

/// Of what `--update-percent` is a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateShare {
    /// Of the rows: ybio's way.
    #[default]
    Rows,
    /// Of the transactions: PGIO's way.
    Transactions,
}

/// Who repeats the transactions of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopSide {
    /// riops sends each of them.
    #[default]
    Client,
    /// A procedure in the server, which each session calls once.
    Server,
}

impl LoopSide {
    /// As it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What the sessions of `run rows` do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowsRun {
    /// Rows that one read touches.
    pub batch: u64,
    /// The batch sizes of a study, each a stage of its own; empty: only `batch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<u64>,
    /// Percent of the rows, or of the transactions, that are updated instead of read.
    pub update_percent: u8,
    /// Of which of the two.
    #[serde(default)]
    pub update_share: UpdateShare,
    /// Rows that one update touches; absent: as many as a read.
    pub update_batch: Option<u64>,
    /// Whether reads stay in the index.
    pub index_only: bool,
    /// Whether each session keeps to one table, instead of choosing one for each transaction.
    pub table_per_session: bool,
    /// Which keys are touched.
    pub distribution: Distribution,
    /// Who repeats the transactions.
    #[serde(default, rename = "loop")]
    pub loop_side: LoopSide,
    /// The sides of a comparison, each a stage of its own; empty: only `loop_side`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loop_sides: Vec<LoopSide>,
    /// In which state the caches are at each stage's start.
    #[serde(default)]
    pub caches: Caches,
    /// Reads may be answered by followers, with data this old, in milliseconds (YugabyteDB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follower_reads_ms: Option<u64>,
    /// Updates are made without a distributed transaction (YugabyteDB).
    #[serde(default)]
    pub non_transactional: bool,
}

impl Default for RowsRun {
    fn default() -> Self {
        Self {
            batch: 1000,
            batches: Vec::new(),
            update_percent: 0,
            update_share: UpdateShare::Rows,
            update_batch: None,
            index_only: false,
            table_per_session: false,
            distribution: Distribution::Uniform,
            loop_side: LoopSide::Client,
            loop_sides: Vec::new(),
            caches: Caches::AsFound,
            follower_reads_ms: None,
            non_transactional: false,
        }
    }
}

/// Stages of one run: more is a sweep.
const STAGES_MAX: usize = 100;

impl RowsRun {
    fn validate_alone(&self) -> Result<(), PlanError> {
        require_first("batch", &self.batch, &self.batches)?;
        require_first("loop", &self.loop_side, &self.loop_sides)?;
        for stage in self.stages() {
            at_least_one("--batch", stage.batch)?;
        }
        at_least_one("--update-batch", self.update_batch())?;
        if self.update_percent > 100 {
            return refuse(format!("--update-percent {} is more than 100", self.update_percent));
        }
        if self.stages().len() > STAGES_MAX {
            return refuse(format!(
                "--batch and --loop make {} stages, and {STAGES_MAX} are the most",
                self.stages().len()
            ));
        }
        if self.has_server_loop() && self.distribution != Distribution::Uniform {
            return refuse(format!(
                "--distribution {} goes with --loop client only: the server-side loop draws its keys uniformly",
                self.distribution
            ));
        }
        if self.follower_reads_ms.is_some() && self.has_server_loop() {
            return refuse(
                "--follower-reads goes with --loop client only: the server-side loop needs a temporary view, which a read-only session cannot make".to_owned(),
            );
        }
        if self.follower_reads_ms.is_some() && self.updates() {
            return refuse(
                "--follower-reads goes with reads only: followers take no updates".to_owned(),
            );
        }
        Ok(())
    }

    /// Checks the run against the dataset that it will find.
    ///
    /// # Errors
    /// [`PlanError`] where a batch is larger than a table.
    pub fn validate_for(&self, dataset: &RowsDataset) -> Result<(), PlanError> {
        for stage in self.stages() {
            let batches = [
                ("--batch", stage.batch, stage.reads()),
                ("--update-batch", stage.update_batch(), stage.updates()),
            ];
            for (option, batch, used) in batches {
                if used && batch > dataset.rows {
                    return refuse(format!(
                        "{option} {batch} is more than the {} rows of each table: use a smaller batch, or prepare more rows",
                        dataset.rows
                    ));
                }
            }
        }
        Ok(())
    }

    /// What each stage does, in the order in which they are run.
    #[must_use]
    pub fn stages(&self) -> Vec<Self> {
        let batches = if self.batches.is_empty() { vec![self.batch] } else { self.batches.clone() };
        let sides =
            if self.loop_sides.is_empty() { vec![self.loop_side] } else { self.loop_sides.clone() };
        let stage = |batch: u64, loop_side: LoopSide| Self {
            batch,
            batches: Vec::new(),
            loop_side,
            loop_sides: Vec::new(),
            ..self.clone()
        };
        batches
            .iter()
            .flat_map(|&batch| sides.iter().map(move |&side| (batch, side)))
            .map(|(batch, side)| stage(batch, side))
            .collect()
    }

    /// Rows that one update touches.
    #[must_use]
    pub fn update_batch(&self) -> u64 {
        self.update_batch.unwrap_or(self.batch)
    }

    /// Whether any transaction reads.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.update_percent < 100
    }

    /// Whether any transaction updates.
    #[must_use]
    pub fn updates(&self) -> bool {
        self.update_percent > 0
    }

    /// Whether the loop of any stage runs in the server.
    #[must_use]
    pub fn has_server_loop(&self) -> bool {
        self.stages().iter().any(|stage| stage.loop_side == LoopSide::Server)
    }
}

impl DatasetSpec for RowsDataset {
    fn name(&self) -> &'static str {
        NAME
    }

    fn validate(&self) -> Result<(), PlanError> {
        Self::validate(self)
    }

    fn complete(&self, given: &mut serde_json::Map<String, Value>) {
        // A row without a filler of its own does not fill its block.
        let block = given.get("layout").is_some_and(|layout| layout == Layout::Block.as_str());
        if block && self.layout == Layout::Packed {
            given.entry("filler").or_insert_with(|| BLOCK_FILLER.into());
        }
    }
}

impl Spec for RowsRun {
    fn name(&self) -> &'static str {
        NAME
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        self.validate_alone()?;
        if !Self::has_server_loop(self) {
            return Ok(());
        }
        // All of these are decided for each transaction, and the client sends none.
        let client_only = [
            ("--rebalance", common.rebalance),
            ("--graph", common.keep_samples),
            ("--rate", common.schedule != Schedule::Closed),
            ("--latency-limit", common.latency_limit.is_some()),
            ("--pipeline", common.pipeline > 1),
            ("--reconnect", common.reconnect_every.is_some()),
            ("--protocol extended", common.protocol == Protocol::Extended),
        ];
        match client_only.iter().find(|(_, used)| *used) {
            Some((option, _)) => refuse(format!(
                "{option} goes with --loop client only: the server-side loop is one call a session"
            )),
            None => Ok(()),
        }
    }

    fn dataset(&self) -> Option<&'static str> {
        Some(NAME)
    }

    fn stages(&self) -> Vec<Self> {
        Self::stages(self)
    }

    fn facts(&self) -> StageFacts {
        StageFacts {
            batch: Some(self.batch),
            update_batch: self.updates().then(|| self.update_batch()),
            in_server: self.loop_side == LoopSide::Server,
            index_only: self.index_only,
            ..StageFacts::default()
        }
    }

    fn caches(&self) -> Caches {
        self.caches
    }

    fn writes(&self) -> bool {
        self.updates()
    }

    fn counts_changes_of(&self, operation: &str) -> bool {
        // An update that stays in the index leaves no trace in the rows.
        operation == "update" && !self.index_only
    }

    fn has_server_loop(&self) -> bool {
        Self::has_server_loop(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_no_known_word_is_an_expression() {
        assert_eq!("key".parse(), Ok(Order::Key));
        assert_eq!("mykey % 7".parse(), Ok(Order::Sql("mykey % 7".to_owned())));
        assert!("  ".parse::<Order>().is_err());
    }

    #[test]
    fn a_batch_larger_than_the_table_is_refused_only_where_it_is_used() {
        let dataset = RowsDataset { rows: 10, ..RowsDataset::default() };
        let read = RowsRun { batch: 11, update_batch: Some(5), ..RowsRun::default() };
        assert!(read.validate_for(&dataset).is_err());
        let update = RowsRun { update_percent: 100, ..read.clone() };
        assert_eq!(update.validate_for(&dataset), Ok(()));
        let study = RowsRun { batch: 1, batches: vec![1, 10, 11], ..read };
        assert!(study.validate_for(&dataset).is_err());
    }

    #[test]
    fn a_study_has_a_stage_for_each_batch_and_side() {
        let study = RowsRun {
            batches: vec![1, 100],
            loop_sides: vec![LoopSide::Client, LoopSide::Server],
            ..RowsRun::default()
        };
        let stages: Vec<_> =
            study.stages().iter().map(|each| (each.update_batch(), each.loop_side)).collect();
        let (client, server) = (LoopSide::Client, LoopSide::Server);
        assert_eq!(stages, [(1, client), (1, server), (100, client), (100, server)]);
        assert!(study.stages().iter().all(|stage| stage.stages().len() == 1));
        assert!(study.has_server_loop() && !RowsRun::default().has_server_loop());
    }

    #[test]
    fn the_server_side_loop_draws_uniformly() {
        let run = RowsRun { loop_side: LoopSide::Server, ..RowsRun::default() };
        assert_eq!(run.validate_alone(), Ok(()));
        let skewed = RowsRun { distribution: Distribution::Zipfian { theta: 0.9 }, ..run };
        assert!(skewed.validate_alone().unwrap_err().to_string().contains("--loop client"));
    }

    #[test]
    fn in_the_layout_block_a_row_has_to_fill_its_block() {
        let block = RowsDataset { layout: Layout::Block, filler: 399, ..RowsDataset::default() };
        assert!(block.validate().unwrap_err().to_string().contains("--layout block"));
        assert_eq!(RowsDataset { filler: BLOCK_FILLER, ..block }.validate(), Ok(()));
    }
}
