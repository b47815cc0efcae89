//! Options of `riops gallery`.

use std::path::PathBuf;

use clap::Args;

use super::runs::FilterOptions;
use super::target::StoreOptions;

/// Which runs, and the folder
#[derive(Debug, Args)]
pub(crate) struct GalleryOptions {
    /// Folder of the site: a new or an empty one, or a gallery, which is replaced
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterOptions,
    /// Add a comparison of two labels, tags or runs (repeatable)
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(crate) compare: Vec<String>,
    /// Title of the index
    #[arg(long, value_name = "TEXT", default_value = "riops")]
    pub(crate) title: String,
    /// Publish the names and addresses of hosts, which are host-1, host-2, … otherwise
    #[arg(long)]
    pub(crate) with_hosts: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}
