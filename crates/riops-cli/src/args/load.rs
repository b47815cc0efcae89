//! Options of `load`, and of the files that it reads.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use riops::plan::{LoadDataset, LoadRun, Method, Parameters, Plan, Stop};
use riops::run::Prepare;
use riops::units::Count;
use serde::Serialize;

use super::parsers::OrDefault;
use super::run::{CommandOptions, RunOptions, RunWorkload};
use super::shared::{
    PrepareOptions, PrepareWorkload, RowSizeOptions, TargetOptions, TextOptions,
    TransactionOptions, given, several,
};
use crate::failure::refuse;

/// The table of the workloads load and point
#[derive(Debug, Clone, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct LoadTableOptions {
    /// Number of rows; ids start at 0
    #[arg(short, long, value_name = "N", or_default = LoadDataset::default().rows)]
    pub(crate) rows: Option<Count>,
    /// Name of the table in the schema riops
    #[arg(long, value_name = "NAME", or_default = LoadDataset::default().table_name)]
    table_name: Option<String>,
    /// Tablets of the table
    #[arg(long, value_name = "N", help_heading = "YugabyteDB", or_default = format!("{}, as in ysql-bench", LoadDataset::TABLETS))]
    tablets: Option<u32>,
}

/// The tables of the workload point
#[derive(Debug, Clone, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct PointTablesOptions {
    #[command(flatten)]
    #[serde(flatten)]
    table: LoadTableOptions,
    /// Tables that share the rows, as with a table for each tenant
    #[arg(long, value_name = "N", or_default = LoadDataset::default().tables)]
    tables: Option<u32>,
}

/// Returns the given parameters of the table and of its text columns.
fn given_with_texts(table: &impl Serialize, texts: &TextOptions) -> Parameters {
    let mut parameters = given(table);
    parameters.extend(given(texts));
    parameters
}

/// The dataset of `riops prepare load`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareLoad {
    #[command(flatten)]
    table: PointTablesOptions,
    #[command(flatten)]
    texts: TextOptions,
    #[command(flatten)]
    transactions: TransactionOptions,
}

impl PrepareWorkload for PrepareLoad {
    fn order(&self, options: &PrepareOptions) -> Result<Prepare> {
        let mut requested = given_with_texts(&self.table, &self.texts);
        let non_transactional = self.transactions.non_transactional;
        requested.insert("non_transactional".to_owned(), non_transactional.into());
        // A table loaded by other means is accepted.
        let optional = [
            ("contents", options.seed.given().is_some()),
            ("non_transactional", non_transactional),
        ];
        options.order(&LoadDataset::default().into(), requested, &optional)
    }
}

/// Load a table in parallel, by one or several methods
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunLoad {
    #[arg(
        long,
        value_name = "METHOD,…",
        value_delimiter = ',',
        help = "Load method: insert, copy (copy_mem), copy-binary, copy-file, procedure, unnest; a list measures one stage each",
        or_default = LoadRun::default().method
    )]
    method: Vec<Method>,
    /// Rows per statement and commit
    #[arg(short, long, visible_alias = "batch", value_name = "N", or_default = format!("{}; up to {} with copy or copy-binary", LoadRun::default().batch_size, LoadRun::COPY_BATCH))]
    batch_size: Option<Count>,
    /// With --method copy-file: directory on the server with the files of riops generate csv
    #[arg(long, value_name = "DIR", or_default = LoadRun::default().dir)]
    dir: Option<String>,
    #[command(flatten)]
    transactions: TransactionOptions,
    /// Drop an existing table first
    #[arg(long, help_heading = "Dataset")]
    drop: bool,
    #[command(flatten)]
    table: LoadTableOptions,
    #[command(flatten)]
    texts: TextOptions,
    #[command(flatten)]
    row_size: RowSizeOptions,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunLoad {
    fn plan(&self) -> Result<Plan> {
        if self.dir.is_some() && !self.method.contains(&Method::CopyFile) {
            return refuse("--dir requires --method copy-file");
        }
        let rows = self.table.rows.map_or(LoadDataset::default().rows, |count| count.0);
        let plan = self.run.plan(LoadRun::default().into(), Stop::Rows(rows))?;
        let default_batch = LoadRun::default_batch(&self.method, rows, plan.sessions);
        let work = LoadRun {
            method: self.method.first().copied().unwrap_or_default(),
            methods: several(&self.method),
            batch_size: self.batch_size.map_or(default_batch, |count| count.0),
            dir: self.dir.clone().unwrap_or_else(|| LoadRun::default().dir),
            non_transactional: self.transactions.non_transactional,
            drop: self.drop,
        };
        Ok(Plan {
            dataset: given_with_texts(&self.table, &self.texts),
            row_size: self.row_size.show_rowsize,
            work: work.into(),
            ..plan
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.with(&self.target)
    }
}

/// Write CSV files for riops run load --method copy-file, one per session
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct GenerateCsv {
    /// Total rows in all files; ids start at 0
    #[arg(short, long, value_name = "N", or_default = LoadDataset::default().rows)]
    pub(crate) rows: Option<Count>,
    /// Number of files: the number of sessions of the load [default: number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], short_alias = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,
    #[command(flatten)]
    pub(crate) texts: TextOptions,
    /// Random seed of the contents
    #[arg(long, value_name = "N", default_value_t = LoadDataset::default().seed)]
    pub(crate) seed: u64,
    /// Output directory; must exist
    #[arg(long, value_name = "DIR", or_default = LoadRun::default().dir)]
    pub(crate) dir: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}
