//! Options of `riops serve`.

use std::path::PathBuf;

use clap::Args;
use riops::serve::ListenAddress;

use super::target::StoreOptions;

/// Address, rights and store
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: ListenAddress,
    /// Token that clients must send [default: a random one with --allow-edit or if other machines can connect, otherwise
    /// none]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Read the token from a file, which takes precedence over --token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Allow changes of labels and tags, and the removal of runs; requires the token
    #[arg(long)]
    pub(crate) allow_edit: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}
