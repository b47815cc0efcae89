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
    /// Send the figures of each interval to this address with Prometheus's remote write
    #[arg(long, value_name = "URL")]
    pub(crate) metrics_push: Option<String>,
    /// Read the bearer token for --metrics-push from a file
    #[arg(long, value_name = "FILE", requires = "metrics_push")]
    pub(crate) metrics_push_token_file: Option<PathBuf>,
    /// Print each interval as a line of JSON on standard error, instead of the progress
    #[arg(long)]
    pub(crate) interval_json: bool,
}
