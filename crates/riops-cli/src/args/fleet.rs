//! The options of an agent of a fleet.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use riops::fleet::Manifest;
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
    /// Number of agents [default: from Slurm, MPI or Flux]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) agents: Option<u32>,
    /// Number of this agent, starting at 0 [default: from Kubernetes, Slurm, MPI or Flux, otherwise a free number]
    #[arg(long, value_name = "K", requires = "fleet")]
    pub(crate) agent: Option<u32>,
    /// Maximum wait for the other agents
    #[arg(long, value_name = "TIME", requires = "fleet", or_default = AGENTS_WITHIN)]
    pub(crate) agents_within: Option<Span>,
    /// Keep the time series and the histogram of each agent
    #[arg(long, requires = "fleet")]
    pub(crate) keep_agents: bool,
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
    /// Image with riops as its entry point, in a registry that the machines reach
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// Run the command on a schedule: a `CronJob` with these five fields, such as "0 2 * * *"
    #[arg(long, value_name = "CRON")]
    pub(crate) schedule: Option<String>,
    /// Namespace of all objects [default: the namespace of kubectl]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Secret with the addresses `database` and `store`
    #[arg(long, value_name = "NAME", default_value = "riops")]
    pub(crate) secret: String,
    /// Secret with which the image is pulled
    #[arg(long, value_name = "NAME")]
    pub(crate) pull_secret: Option<String>,
    /// Processors that each pod requests
    #[arg(long, value_name = "QUANTITY", default_value = "2")]
    pub(crate) cpu: String,
    /// Memory that each pod requests, and its limit
    #[arg(long, value_name = "QUANTITY", default_value = "512Mi")]
    pub(crate) memory: String,
    /// Label of the machines on which the pods run; repeatable
    #[arg(long, value_name = "LABEL=VALUE")]
    pub(crate) node_selector: Vec<String>,
    /// Time limit of the Job, also if the image cannot be pulled
    #[arg(long, value_name = "TIME", default_value = "6h")]
    pub(crate) deadline: Span,
    /// The command without `riops`, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl ManifestOptions {
    /// Returns the manifest without the command.
    pub(crate) fn manifest(&self) -> Manifest {
        let Self { agents, name, image, schedule, namespace, secret, .. } = self;
        Manifest {
            agents: *agents,
            name: name.clone(),
            image: image.clone(),
            schedule: schedule.clone(),
            namespace: namespace.clone(),
            secret: secret.clone(),
            pull_secret: self.pull_secret.clone(),
            cpu: self.cpu.clone(),
            memory: self.memory.clone(),
            node_selector: self.node_selector.clone(),
            deadline: self.deadline,
        }
    }
}
