//! The options of `rows`.

use anyhow::Result;
use clap::Args;
use riops::plan::{Layout, LoopSide, Order, Parameters, Plan, RowsDataset, RowsRun, UpdateShare};
use riops::run::Prepare;
use riops::units::{Count, Size, Span};
use serde_json::{Value, to_value};

use super::parsers::{choice, or_default, or_named};
use super::run::{KeepOptions, LoopOptions, PictureOptions, RunOptions, RunWorkload};
use super::shared::{
    CacheOptions, KeyOptions, PipelineOptions, PrepareFirst, PrepareOptions, PrepareWorkload, given,
};
use super::target::TargetOptions;
use crate::failure::UsageError;

/// What the dataset is
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct DatasetOptions {
    #[arg(long, value_name = "N", help = or_default("Tables", RowsDataset::default().tables))]
    tables: Option<u32>,
    #[arg(long, value_name = "N", help = or_default("Rows of each table", RowsDataset::default().rows))]
    rows: Option<Count>,
    #[arg(
        long,
        value_name = "KIND",
        value_parser = choice::<Layout>(&["packed", "block"]),
        help = or_named("How rows fill blocks: block puts one into each (SLOB, PGIO)", RowsDataset::default().layout)
    )]
    layout: Option<Layout>,
    /// With --layout block: the size of each table instead of its rows, in blocks or as 256M, 8G
    #[arg(long, value_name = "SIZE", conflicts_with = "rows")]
    size: Option<Size>,
    #[arg(
        long,
        value_name = "N",
        help = format!(
            "Characters of a column that only makes rows larger [default: {}, with --layout block {}]",
            RowsDataset::default().filler,
            riops::plan::BLOCK_FILLER
        )
    )]
    filler: Option<u32>,
    #[arg(
        long,
        value_name = "ORDER",
        help = or_default("Where rows are in the table: scattered, key, hash, or an SQL expression over mykey and scratch by which each batch is sorted", RowsDataset::default().order)
    )]
    order: Option<Order>,
    /// Make the key the primary key instead of an index beside the table
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    primary_key: Option<bool>,
    /// YugabyteDB: tablets of each table [default: the server's]
    #[arg(long, value_name = "N")]
    tablets: Option<u32>,
    /// YugabyteDB: tablets of each index, or of each table with a primary key, split at equal steps of the
    /// key [default: the server's, one]
    #[arg(long, value_name = "N")]
    index_tablets: Option<u32>,
}

impl DatasetOptions {
    /// The parameters that were given.
    fn given(&self) -> Result<Parameters> {
        if self.size.is_some() && self.layout != Some(Layout::Block) {
            return Err(UsageError(
                "--size goes with --layout block, where each row has a block: use --rows"
                    .to_owned(),
            )
            .into());
        }
        let rows = self.rows.map(|count| count.0).or(self.size.map(Size::blocks));
        Ok(given([
            ("tables", self.tables.map(Value::from)),
            ("rows", rows.map(Value::from)),
            ("layout", self.layout.map(to_value).transpose()?),
            ("filler", self.filler.map(Value::from)),
            ("order", self.order.as_ref().map(to_value).transpose()?),
            ("primary_key", self.primary_key.map(Value::from)),
            ("tablets", self.tablets.map(Value::from)),
            ("index_tablets", self.index_tablets.map(Value::from)),
        ]))
    }
}

/// Tables whose rows are scattered behind an index
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareRows {
    #[command(flatten)]
    dataset: DatasetOptions,
    #[arg(
        long,
        value_name = "N",
        help_heading = "Dataset",
        help = or_default("Rows of one load transaction", RowsDataset::default().batch)
    )]
    batch: Option<Count>,
    /// YugabyteDB: load without distributed transactions
    #[arg(long, help_heading = "Dataset")]
    non_transactional_writes: bool,
    #[command(flatten)]
    prepare: PrepareOptions,
}

impl PrepareWorkload for PrepareRows {
    fn order(&self) -> Result<Prepare> {
        let mut wanted = self.dataset.given()?;
        let writes = self.non_transactional_writes;
        wanted.insert("non_transactional".to_owned(), writes.into());
        if let Some(batch) = self.batch {
            wanted.insert("batch".to_owned(), batch.0.into());
        }
        let optional = [("batch", self.batch.is_some())];
        self.prepare.order(&RowsDataset::default().into(), wanted, &optional)
    }

    fn options(&self) -> &PrepareOptions {
        &self.prepare
    }
}

/// Random row reads and writes per second (RIOPS)
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunRows {
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        help_heading = "Work",
        help = or_default("Rows that one read touches; of several (1,10,100) each makes a stage of its own", RowsRun::default().batch)
    )]
    pub(crate) batch: Vec<Count>,
    #[arg(
        long = "loop",
        value_name = "SIDE,…",
        value_delimiter = ',',
        help_heading = "Work",
        value_parser = choice::<LoopSide>(&["client", "server"]),
        help = or_named("Where the transaction loop runs: client sends each transaction, server makes one call a session to a procedure that repeats them; of both (client,server) each makes a stage of its own", RowsRun::default().loop_side)
    )]
    loop_sides: Vec<LoopSide>,
    /// Percent of the rows that are updated instead of read, 0 to 100
    #[arg(long, value_name = "PERCENT", help_heading = "Work", default_value_t = RowsRun::default().update_percent, value_parser = clap::value_parser!(u8).range(0..=100))]
    update_percent: u8,
    #[arg(
        long,
        value_name = "OF",
        help_heading = "Work",
        value_parser = choice::<UpdateShare>(&["rows", "transactions"]),
        help = or_named("What --update-percent is a share of", UpdateShare::default())
    )]
    update_share: Option<UpdateShare>,
    /// Rows that one update touches [default: as --batch]
    #[arg(long, value_name = "N", help_heading = "Work")]
    update_batch: Option<Count>,
    /// Stay in the index: range scans instead of row reads
    #[arg(long, help_heading = "Work")]
    index_only: bool,
    /// Let each session use one table only
    #[arg(long, help_heading = "Work")]
    table_per_session: bool,
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    caches: CacheOptions,
    /// YugabyteDB: let followers answer reads, with data as old as this
    #[arg(long, value_name = "TIME", help_heading = "Work")]
    follower_reads: Option<Span>,
    /// YugabyteDB: update without distributed transactions
    #[arg(long, help_heading = "Work")]
    non_transactional_writes: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) drive: LoopOptions,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    dataset: DatasetOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunRows {
    fn work(&self) -> RowsRun {
        let defaults = RowsRun::default();
        let batches: Vec<u64> = self.batch.iter().map(|count| count.0).collect();
        // Several are a study; one is only the value itself.
        let several = |batches: &Vec<u64>| batches.len() > 1;
        RowsRun {
            batch: batches.first().copied().unwrap_or(defaults.batch),
            batches: Some(batches).filter(several).unwrap_or_default(),
            update_percent: self.update_percent,
            update_share: self.update_share.unwrap_or_default(),
            update_batch: self.update_batch.map(|count| count.0),
            index_only: self.index_only,
            // A loop in the server has one table, and what it is compared with has the same.
            table_per_session: self.table_per_session
                || self.loop_sides.contains(&LoopSide::Server),
            distribution: self.keys.distribution,
            loop_side: self.loop_sides.first().copied().unwrap_or_default(),
            loop_sides: Some(self.loop_sides.clone())
                .filter(|sides| sides.len() > 1)
                .unwrap_or_default(),
            caches: self.caches.caches(),
            follower_reads_ms: self
                .follower_reads
                .map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)),
            non_transactional: self.non_transactional_writes,
        }
    }

    /// Whether no stage is repeated by the client.
    fn in_server_only(&self) -> bool {
        !self.loop_sides.is_empty() && !self.loop_sides.contains(&LoopSide::Client)
    }
}

impl RunWorkload for RunRows {
    fn plan(&self) -> Result<Plan> {
        let plan = self.run.looped(&self.drive, self.work().into())?;
        let in_server = self.in_server_only();
        if in_server && self.run.workers.is_some() {
            return Err(UsageError(
                "--workers goes with --loop client: in the server each session drives itself"
                    .to_owned(),
            )
            .into());
        }
        Ok(Plan {
            workers: if in_server { plan.sessions } else { plan.workers },
            pipeline: self.pipeline.pipeline,
            dataset: self.dataset.given()?,
            prepare: self.prepare.policy(),
            ..plan
        })
    }

    fn keep(&self) -> &KeepOptions {
        &self.run.keep
    }

    fn picture(&self) -> Option<&PictureOptions> {
        Some(&self.run.picture)
    }

    fn target(&self) -> &TargetOptions {
        &self.target
    }
}
