//! Options of `riops warm`.

use anyhow::Result;
use clap::{Args, Subcommand};
use riops::plan::{DatasetPlan, LoadDataset, OltpDataset, Parameters, RowsDataset};

use super::load::LoadTableOptions;
use super::oltp::OltpOptions;
use super::rows::DatasetOptions;
use super::shared::given;
use super::target::TargetOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum Warm {
    /// Read the tables of the workload rows, or the first ones
    Rows(WarmOf<DatasetOptions>),
    /// Read the table of the workloads load and point
    #[command(visible_alias = "point")]
    Load(WarmOf<LoadTableOptions>),
    /// Read the tables of the workload oltp, or the first ones
    Oltp(WarmOf<OltpOptions>),
}

#[derive(Debug, Args)]
pub(crate) struct WarmOf<D: Args> {
    #[command(flatten)]
    dataset: D,
    #[command(flatten)]
    target: TargetOptions,
}

impl Warm {
    /// The dataset with all its parameters, and those that were given.
    pub(crate) fn dataset(&self) -> Result<(DatasetPlan, Parameters)> {
        let (defaults, given): (DatasetPlan, Parameters) = match self {
            Self::Rows(options) => (RowsDataset::default().into(), options.dataset.given()?),
            Self::Load(options) => (LoadDataset::default().into(), given(&options.dataset)),
            Self::Oltp(options) => (OltpDataset::default().into(), options.dataset.given()),
        };
        Ok((defaults.with(&given)?, given))
    }

    pub(crate) fn target(&self) -> &TargetOptions {
        match self {
            Self::Rows(options) => &options.target,
            Self::Load(options) => &options.target,
            Self::Oltp(options) => &options.target,
        }
    }
}
