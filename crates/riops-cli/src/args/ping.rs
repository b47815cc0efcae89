//! Options of `ping`.

use anyhow::Result;
use clap::Args;
use riops::plan::Plan;
use riops::plan::ping::{PingRun, PingStatement};

use super::parsers::{choice, name_of};
use super::run::{CommandOptions, LoopOptions, RunWorkload};
use super::shared::{PipelineOptions, TargetOptions};

/// Measure round trips to a server or pooler; needs no dataset
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunPing {
    /// What to send: select 1, an empty query, or only a Sync message
    #[arg(long, value_name = "KIND", default_value = name_of(PingStatement::default()), value_parser = choice::<PingStatement>(&["select1", "empty", "sync"]))]
    statement: PingStatement,
    #[command(flatten)]
    run: LoopOptions,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunPing {
    fn plan(&self) -> Result<Plan> {
        let work = PingRun { statement: self.statement };
        Ok(Plan { pipeline: self.pipeline.pipeline, ..self.run.plan(work.into())? })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.common.with(&self.target)
    }
}
