//! The options of `point`.

use anyhow::Result;
use clap::Args;
use riops::plan::{Plan, PointOperations, PointRun};

use super::load::LoadTableOptions;
use super::run::{KeepOptions, LoopOptions, PictureOptions, RunOptions, RunWorkload};
use super::shared::{
    CacheOptions, KeyOptions, PipelineOptions, PrepareFirst, RowSizeOptions, TransactionOptions,
};
use super::target::TargetOptions;

/// One row at a time by its primary key, on the table of load
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunPoint {
    /// Which statements: select, update, or mixed:SELECT%/UPDATE% (mixed:90/10)
    #[arg(long, value_name = "OP", help_heading = "Work", default_value_t = PointOperations::default())]
    op: PointOperations,
    #[command(flatten)]
    keys: KeyOptions,
    /// Characters of each text that an update writes [default: those of the table]
    #[arg(short, long, visible_alias = "fields-length", value_name = "N", help_heading = "Work")]
    field_length: Option<u32>,
    #[command(flatten)]
    caches: CacheOptions,
    #[command(flatten)]
    transactions: TransactionOptions,
    #[command(flatten)]
    row_size: RowSizeOptions,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drive: LoopOptions,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    table: LoadTableOptions,
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
            dataset: self.table.given(),
            prepare: self.prepare.policy(),
            row_size: self.row_size.show_rowsize,
            ..self.run.looped(&self.drive, work.into())?
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
