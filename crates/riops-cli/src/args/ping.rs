//! The options of `ping`.

use anyhow::Result;
use clap::Args;
use riops::plan::Plan;
use riops::plan::ping::{PingRun, PingStatement};

use super::parsers::{choice, or_named};
use super::run::{KeepOptions, LoopOptions, PictureOptions, RunOptions, RunWorkload};
use super::shared::PipelineOptions;
use super::target::TargetOptions;

/// Round trips to a server, pooler or network path; needs no dataset
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunPing {
    #[arg(
        long,
        value_name = "WHAT",
        help_heading = "Work",
        value_parser = choice::<PingStatement>(&["select1", "empty", "sync"]),
        help = or_named("What makes a round trip: select 1, an empty query, or a lone Sync", PingStatement::default())
    )]
    statement: Option<PingStatement>,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drive: LoopOptions,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunPing {
    fn plan(&self) -> Result<Plan> {
        let work = PingRun { statement: self.statement.unwrap_or_default() };
        Ok(Plan { pipeline: self.pipeline.pipeline, ..self.run.looped(&self.drive, work.into())? })
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
