//! Options of `riops serve`.

use clap::Args;
use riops::serve::ListenAddress;

use super::target::StoreOptions;

/// Address, rights and store
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: ListenAddress,
    /// Token that clients must send [default: none at 127.0.0.1 and ::1, a random one at other addresses]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Allow changes of labels and tags, and the removal of runs
    #[arg(long)]
    pub(crate) allow_edit: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}
