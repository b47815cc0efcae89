//! Options of `point`.

use anyhow::Result;
use clap::Args;
use riops::plan::{Plan, PointOperations, PointRun};

use super::load::PointTablesOptions;
use super::run::{CommandOptions, LoopOptions, RunWorkload};
use super::shared::{
    CacheOptions, KeyOptions, PipelineOptions, PrepareFirst, RowSizeOptions, TargetOptions,
    TransactionOptions, given,
};

/// Select and update single rows by primary key, in the table of load
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunPoint {
    /// Statements: select, update, or mixed:SELECT%/UPDATE% (mixed:90/10)
    #[arg(long, value_name = "OP", default_value_t = PointOperations::default())]
    op: PointOperations,
    #[command(flatten)]
    keys: KeyOptions,
    /// Length of the text columns that an update writes, in characters [default: as in the table]
    #[arg(short, long, visible_alias = "fields-length", value_name = "N")]
    field_length: Option<u32>,
    #[command(flatten)]
    caches: CacheOptions,
    #[command(flatten)]
    transactions: TransactionOptions,
    #[command(flatten)]
    row_size: RowSizeOptions,
    #[command(flatten)]
    run: LoopOptions,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    table: PointTablesOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunPoint {
    fn plan(&self) -> Result<Plan> {
        let work = PointRun {
            op: self.op,
            distribution: self.keys.distribution,
            field_length: self.field_length,
            caches: self.caches.caches(),
            non_transactional: self.transactions.non_transactional,
        };
        Ok(Plan {
            pipeline: self.pipeline.pipeline,
            dataset: given(&self.table),
            prepare: self.prepare.policy(),
            row_size: self.row_size.show_rowsize,
            ..self.run.plan(work.into())?
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.common.with(&self.target)
    }
}
