//! Options of `ping`.

use anyhow::Result;
use clap::Args;
use riops::plan::Plan;
use riops::plan::ping::{PingRun, PingStatement};

use super::parsers::{choice, or_named};
use super::run::{GraphOptions, LoopOptions, ResultOptions, RunOptions, RunWorkload};
use super::shared::PipelineOptions;
use super::target::TargetOptions;

/// Measure round trips to a server or pooler; needs no dataset
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunPing {
    #[arg(
        long,
        value_name = "KIND",
        help_heading = "Workload",
        value_parser = choice::<PingStatement>(&["select1", "empty", "sync"]),
        help = or_named("What to send: select 1, an empty query, or only a Sync message", PingStatement::default())
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

    fn result_options(&self) -> &ResultOptions {
        &self.run.keep
    }

    fn graph_options(&self) -> Option<&GraphOptions> {
        Some(&self.run.graph_options)
    }

    fn target(&self) -> &TargetOptions {
        &self.target
    }
}
