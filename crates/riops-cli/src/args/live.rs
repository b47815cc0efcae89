//! Options for the live figures of a run.

use std::path::PathBuf;

use clap::Args;
use riops::serve::ListenAddress;

/// Live figures of a run
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Live figures")]
pub(crate) struct LiveOptions {
    /// Serve the figures of the run as Prometheus metrics at this address; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// With --metrics-listen: token that clients must send, required if other machines can connect
    #[arg(long, value_name = "TOKEN")]
    pub(crate) metrics_token: Option<String>,
    /// Read the token of --metrics-token from a file, which takes precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_token_file: Option<PathBuf>,
    /// Print each interval as a line of JSON on standard error, instead of the progress
    #[arg(long)]
    pub(crate) interval_json: bool,
}
