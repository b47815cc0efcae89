//! The options of `load`, and of the files that it reads.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use riops::plan::{LoadDataset, LoadRun, Method, Parameters, Plan, Stop};
use riops::run::Prepare;
use riops::units::Count;
use serde_json::Value;

use super::parsers::or_default;
use super::run::{KeepOptions, PictureOptions, RunOptions, RunWorkload};
use super::shared::{
    PrepareOptions, PrepareWorkload, RowSizeOptions, TextOptions, TransactionOptions, given,
};
use super::target::TargetOptions;
use crate::failure::UsageError;

/// What the table of the workloads load and point is
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct LoadTableOptions {
    #[arg(short, long, value_name = "N", help = or_default("Rows of the table; their ids count from 0", LoadDataset::default().rows))]
    pub(crate) rows: Option<Count>,
    #[arg(long, value_name = "NAME", help = or_default("Its name in the schema riops", LoadDataset::default().table_name))]
    table_name: Option<String>,
    #[arg(long, value_name = "N", help = format!("YugabyteDB: tablets of the table [default: {}, as in ysql-bench]", LoadDataset::TABLETS))]
    tablets: Option<u32>,
}

impl LoadTableOptions {
    /// The parameters that were given.
    pub(crate) fn given(&self) -> Parameters {
        given([
            ("rows", self.rows.map(|count| count.0.into())),
            ("table_name", self.table_name.clone().map(Value::from)),
            ("tablets", self.tablets.map(Value::from)),
        ])
    }
}

/// The parameters of the table with those of its texts.
fn given_with_texts(table: &LoadTableOptions, texts: &TextOptions) -> Parameters {
    let mut parameters = table.given();
    parameters.extend(given([("field_length", texts.field_length.map(Value::from))]));
    parameters
}

/// The table of the workloads load and point
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareLoad {
    #[command(flatten)]
    table: LoadTableOptions,
    #[command(flatten)]
    texts: TextOptions,
    #[command(flatten)]
    transactions: TransactionOptions,
    #[command(flatten)]
    prepare: PrepareOptions,
}

impl PrepareWorkload for PrepareLoad {
    fn order(&self) -> Result<Prepare> {
        let mut wanted = given_with_texts(&self.table, &self.texts);
        let non_transactional = self.transactions.non_transactional;
        wanted.insert("non_transactional".to_owned(), non_transactional.into());
        // A table that was loaded by other means is as good.
        let optional =
            [("contents", self.prepare.seed.is_some()), ("non_transactional", non_transactional)];
        self.prepare.order(&LoadDataset::default().into(), wanted, &optional)
    }

    fn options(&self) -> &PrepareOptions {
        &self.prepare
    }
}

/// Parallel loads into a table, by several methods
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunLoad {
    #[arg(
        long,
        value_name = "METHOD,…",
        value_delimiter = ',',
        help_heading = "Work",
        help = or_default("How rows get into the table: insert, copy (copy_mem), copy-binary, copy-file, procedure, unnest; of several (insert,copy) each makes a stage of its own", LoadRun::default().method.as_str())
    )]
    method: Vec<Method>,
    /// Rows of one statement, which is one commit
    #[arg(short, long, visible_alias = "batch", value_name = "N", help_heading = "Work", default_value_t = Count(LoadRun::default().batch_size))]
    batch_size: Count,
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Work",
        help = or_default("With --method copy-file: the folder on the server with the files of riops generate csv", LoadRun::default().dir)
    )]
    dir: Option<String>,
    #[command(flatten)]
    transactions: TransactionOptions,
    /// Drop a table that is there already
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
        let defaults = LoadRun::default();
        let methods = self.method.clone();
        let work = LoadRun {
            method: methods.first().copied().unwrap_or_default(),
            methods: if methods.len() > 1 { methods } else { Vec::new() },
            batch_size: self.batch_size.0,
            dir: self.dir.clone().unwrap_or(defaults.dir),
            non_transactional: self.transactions.non_transactional,
            drop: self.drop,
        };
        let reads_files = work.stages().iter().any(|stage| stage.method == Method::CopyFile);
        if self.dir.is_some() && !reads_files {
            let text = "--dir goes with --method copy-file: the other methods read no files";
            return Err(UsageError(text.to_owned()).into());
        }
        let rows = self.table.rows.map_or(LoadDataset::default().rows, |count| count.0);
        Ok(Plan {
            dataset: given_with_texts(&self.table, &self.texts),
            row_size: self.row_size.show_rowsize,
            ..self.run.common(work.into(), Stop::Rows(rows))?
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

/// CSV files for run load --method copy-file, one for each session
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct GenerateCsv {
    #[arg(short, long, value_name = "N", help = or_default("Rows of all files together; their ids count from 0", LoadDataset::default().rows))]
    pub(crate) rows: Option<Count>,
    /// Files: as many as the load will have sessions [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], short_alias = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,
    #[command(flatten)]
    pub(crate) texts: TextOptions,
    /// Random seed of the texts
    #[arg(long, value_name = "N", default_value_t = LoadDataset::default().seed)]
    pub(crate) seed: u64,
    #[arg(long, value_name = "DIR", help = or_default("The folder to write them to; it must exist", LoadRun::default().dir))]
    pub(crate) dir: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}
