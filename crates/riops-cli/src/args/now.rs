//! Options of `now`.

use anyhow::Result;
use clap::Args;
use riops::plan::Plan;
use riops::plan::now::NowRun;

use super::run::{CommandOptions, LoopOptions, RunOptions, RunWorkload};
use super::target::TargetOptions;

/// Measure reads of the server's clock; needs no dataset
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunNow {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drive: LoopOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunNow {
    fn plan(&self) -> Result<Plan> {
        self.run.looped(&self.drive, NowRun::default().into())
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.with(&self.target)
    }
}
