//! Which server, and where runs are stored.

use std::path::PathBuf;

use clap::Args;

use super::parsers::parse_pair;

/// Which database
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetOptions {
    /// URL, key=value connection string or name of a database, as libpq takes them; else the PG*
    /// variables where PGHOST, PGSERVICE or PGDATABASE is set; else the embedded server
    #[arg(short, long, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) embedded: EmbeddedOptions,
}

/// Which embedded server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Embedded server")]
pub(crate) struct EmbeddedOptions {
    /// Use this installed PostgreSQL instead of the downloaded one (the folder above bin/postgres)
    #[arg(long, value_name = "DIR")]
    pub(crate) server_dir: Option<PathBuf>,
    /// Keep the server's data, socket and log here
    #[arg(long, value_name = "DIR")]
    pub(crate) server_data: Option<PathBuf>,
    /// Run the server as this user, where riops runs as root
    #[arg(long, value_name = "NAME")]
    pub(crate) server_user: Option<String>,
    /// Listen on this port of 127.0.0.1 instead of a free one
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) server_port: Option<u16>,
    /// Change a setting of the server (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) server_set: Vec<(String, String)>,
    /// Keep downloads, and servers without a folder of their own, here
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

impl EmbeddedOptions {
    /// Whether any of them decides about a server.
    pub(crate) fn names_a_server(&self) -> bool {
        self.server_dir.is_some()
            || self.server_data.is_some()
            || self.server_user.is_some()
            || self.server_port.is_some()
            || !self.server_set.is_empty()
    }
}

/// Where runs are stored
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// The file that runs are stored in [default: riops/runs.sqlite in the user's data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}
