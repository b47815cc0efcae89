//! The options of an agent of a fleet.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use riops::units::Span;

use super::parsers::OrDefault;

/// How long an agent waits for the others.
pub(crate) const AGENTS_WITHIN: Span = Span(Duration::from_mins(5));

/// Several clients
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetOptions {
    /// Run the plan together with the other agents of this fleet, which meet in the PostgreSQL store
    #[arg(long, value_name = "NAME")]
    pub(crate) fleet: Option<String>,
    /// Number of agents [default: that of Slurm, MPI or Flux]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) agents: Option<u32>,
    /// Number of this agent, from 0 [default: that of Kubernetes, Slurm, MPI or Flux, otherwise a free one]
    #[arg(long, value_name = "K", requires = "fleet")]
    pub(crate) agent: Option<u32>,
    /// Maximum wait for the other agents
    #[arg(long, value_name = "TIME", requires = "fleet", or_default = AGENTS_WITHIN)]
    pub(crate) agents_within: Option<Span>,
}

/// Number of pods, image, and command
#[derive(Debug, Args)]
pub(crate) struct ManifestOptions {
    /// Number of agents, each in a pod
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) agents: u32,
    /// Name of the Job and of the fleet
    #[arg(long, value_name = "NAME", default_value = "riops")]
    pub(crate) name: String,
    /// Image with riops as its entry point
    #[arg(long, value_name = "IMAGE", default_value = concat!("riops:", env!("CARGO_PKG_VERSION")))]
    pub(crate) image: String,
    /// The command without `riops`, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
