//! Options of `rows`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use riops::plan::{Layout, LoopSide, Order, Parameters, Plan, RowsDataset, RowsRun, UpdateShare};
use riops::run::Prepare;
use riops::units::{Count, Size, Span};
use serde::Serialize;

use super::parsers::{OrDefault, choice, name_of};
use super::run::{CommandOptions, LoopOptions, RunWorkload};
use super::shared::{
    CacheOptions, KeyOptions, PipelineOptions, PrepareFirst, PrepareOptions, PrepareWorkload,
    TargetOptions, given, several,
};
use crate::failure::refuse;

/// The dataset
#[derive(Debug, Clone, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct DatasetOptions {
    /// Number of tables
    #[arg(long, value_name = "N", or_default = RowsDataset::default().tables)]
    tables: Option<u32>,
    /// Rows per table
    #[arg(long, value_name = "N", or_default = RowsDataset::default().rows)]
    rows: Option<Count>,
    /// Layout of rows in blocks; block: one row per block (SLOB, PGIO)
    #[arg(long, value_name = "KIND", value_parser = choice::<Layout>(&["packed", "block"]), or_named = RowsDataset::default().layout)]
    layout: Option<Layout>,
    /// With --layout block: size of each table instead of --rows, in blocks or as 256MB, 8GB
    #[arg(long, value_name = "SIZE", conflicts_with = "rows")]
    #[serde(skip)]
    size: Option<Size>,
    /// Length of a filler column, in characters
    #[arg(long, value_name = "N", or_default = format!("{}, with --layout block {}", RowsDataset::default().filler, riops::plan::BLOCK_FILLER))]
    filler: Option<u32>,
    /// Physical order of rows: scattered, key, hash, or an SQL expression over mykey and scratch that sorts each batch
    #[arg(long, value_name = "ORDER", or_default = RowsDataset::default().order)]
    order: Option<Order>,
    /// Use a primary key instead of a plain index
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    primary_key: Option<bool>,
    /// Tablets per table [default: the server's]
    #[arg(long, value_name = "N", help_heading = "YugabyteDB")]
    tablets: Option<u32>,
    /// Tablets per index, or per table with --primary-key, split at equal key intervals [default: the server's, one]
    #[arg(long, value_name = "N", help_heading = "YugabyteDB")]
    index_tablets: Option<u32>,
}

impl DatasetOptions {
    /// Returns the parameters that were given.
    pub(crate) fn given(&self) -> Result<Parameters> {
        if self.size.is_some() && self.layout != Some(Layout::Block) {
            return refuse("--size requires --layout block; use --rows");
        }
        let mut parameters = given(self);
        if let Some(size) = self.size {
            parameters.insert("rows".to_owned(), size.blocks().into());
        }
        Ok(parameters)
    }
}

/// The dataset of `riops prepare rows`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareRows {
    #[command(flatten)]
    dataset: DatasetOptions,
    /// Rows per load transaction
    #[arg(long, value_name = "N", help_heading = "Dataset", or_default = RowsDataset::default().batch)]
    batch: Option<Count>,
    /// Load without distributed transactions
    #[arg(long, help_heading = "YugabyteDB")]
    non_transactional_writes: bool,
}

impl PrepareWorkload for PrepareRows {
    fn order(&self, options: &PrepareOptions) -> Result<Prepare> {
        let mut requested = self.dataset.given()?;
        let writes = self.non_transactional_writes;
        requested.insert("non_transactional".to_owned(), writes.into());
        if let Some(batch) = self.batch {
            requested.insert("batch".to_owned(), batch.0.into());
        }
        let optional = [("batch", self.batch.is_some())];
        options.order(&RowsDataset::default().into(), requested, &optional)
    }
}

/// The part of each table that a run uses.
#[derive(Debug, Clone, Copy)]
struct WorkingSet {
    rows: u64,
    /// Whether it was given as a size: one row per block.
    is_size: bool,
}

impl FromStr for WorkingSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(rows) = text.parse::<Count>() {
            return Ok(Self { rows: rows.0, is_size: false });
        }
        let size: Size = text.parse().map_err(|_| {
            format!("`{text}` is not a number of rows or a size (examples: 100000, 1e6, 256MB)")
        })?;
        Ok(Self { rows: size.blocks(), is_size: true })
    }
}

/// Random row reads and writes per second (RIOPS)
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunRows {
    /// Rows per read; a list (1,10,100) measures one stage each
    #[arg(long, value_name = "N,…", value_delimiter = ',', or_default = RowsRun::default().batch)]
    pub(crate) batch: Vec<Count>,
    /// Where the transaction loop runs; server: in a procedure, one call per session; client,server: one stage each
    #[arg(long = "loop", value_name = "SIDE,…", value_delimiter = ',', value_parser = choice::<LoopSide>(&["client", "server"]), or_named = RowsRun::default().loop_side)]
    loop_sides: Vec<LoopSide>,
    /// Percentage of rows that are updated, 0 to 100
    #[arg(long, value_name = "PERCENT", default_value_t = RowsRun::default().update_percent, value_parser = clap::value_parser!(u8).range(0..=100))]
    update_percent: u8,
    /// Unit of --update-percent
    #[arg(long, value_name = "OF", default_value = name_of(UpdateShare::default()), value_parser = choice::<UpdateShare>(&["rows", "transactions"]))]
    update_share: UpdateShare,
    /// Rows per update [default: as --batch]
    #[arg(long, value_name = "N")]
    update_batch: Option<Count>,
    /// Index-only range scans instead of row reads
    #[arg(long)]
    index_only: bool,
    /// Use one table per session
    #[arg(long)]
    table_per_session: bool,
    /// Use only the first N rows of each table; with --layout block also a size such as 256MB [default: all rows]
    #[arg(long, value_name = "ROWS|SIZE")]
    working_set: Option<WorkingSet>,
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    caches: CacheOptions,
    /// Read from followers, with this maximum staleness
    #[arg(long, value_name = "TIME", help_heading = "YugabyteDB")]
    follower_reads: Option<Span>,
    /// Update without distributed transactions
    #[arg(long, help_heading = "YugabyteDB")]
    non_transactional_writes: bool,
    /// Write the table of the sessions to FILE, as PGIO does
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with = "repeat")]
    session_detail: Option<PathBuf>,
    #[command(flatten)]
    run: LoopOptions,
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
        let batches: Vec<u64> = self.batch.iter().map(|count| count.0).collect();
        RowsRun {
            batch: batches.first().copied().unwrap_or(RowsRun::default().batch),
            batches: several(&batches),
            update_percent: self.update_percent,
            update_share: self.update_share,
            update_batch: self.update_batch.map(|count| count.0),
            index_only: self.index_only,
            // A server loop uses one table, and so do the client loops that it is compared with.
            table_per_session: self.table_per_session
                || self.loop_sides.contains(&LoopSide::Server),
            distribution: self.keys.distribution,
            loop_side: self.loop_sides.first().copied().unwrap_or_default(),
            loop_sides: several(&self.loop_sides),
            caches: self.caches.caches(),
            follower_reads_ms: self
                .follower_reads
                .map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)),
            non_transactional: self.non_transactional_writes,
            working_set: self.working_set.map(|set| set.rows),
        }
    }
}

impl RunWorkload for RunRows {
    fn plan(&self) -> Result<Plan> {
        let is_size = self.working_set.is_some_and(|set| set.is_size);
        if is_size && self.dataset.layout != Some(Layout::Block) {
            let text = "--working-set with a size requires --layout block; use a number of rows";
            return refuse(text);
        }
        let plan = self.run.plan(self.work().into())?;
        // All stages.
        let in_server = !self.loop_sides.is_empty() && !self.loop_sides.contains(&LoopSide::Client);
        if in_server && self.run.common.workers.is_some() {
            return refuse("--workers requires --loop client");
        }
        Ok(Plan {
            workers: if in_server { plan.sessions } else { plan.workers },
            pipeline: self.pipeline.pipeline,
            dataset: self.dataset.given()?,
            prepare: self.prepare.policy(),
            ..plan
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        CommandOptions {
            session_detail: self.session_detail.as_deref(),
            ..self.run.common.with(&self.target)
        }
    }
}
