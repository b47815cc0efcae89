//! Options for the live figures of a run.

use clap::Args;
use riops::serve::ListenAddress;

/// Live figures of a run
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Live figures")]
pub(crate) struct LiveOptions {
    /// Serve the figures of the run as Prometheus metrics at this address; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// With --metrics-listen: token that clients must send, required unless the address is 127.0.0.1 or ::1
    #[arg(long, value_name = "TOKEN")]
    pub(crate) metrics_token: Option<String>,
    /// Print each interval as a line of JSON on standard error, instead of the progress
    #[arg(long)]
    pub(crate) interval_json: bool,
}
