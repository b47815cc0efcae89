//! The server, and the run store.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Args;
use riops::server::conninfo::ConnInfoError;
use riops::store::{StoreLocation, default_path};

use super::parsers::parse_pair;

/// The server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetOptions {
    /// Connection URL, key=value string or database name, as in libpq [default: the PG* variables if
    /// one of PGHOST, PGHOSTADDR, PGPORT, PGDATABASE, PGUSER and PGSERVICE is set, otherwise the embedded server]
    #[arg(short, long, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) embedded: EmbeddedOptions,
}

/// The embedded server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Embedded server")]
pub(crate) struct EmbeddedOptions {
    /// Use the PostgreSQL installed in this directory (the parent of bin/postgres) instead of the downloaded one
    #[arg(long, value_name = "DIR")]
    pub(crate) server_dir: Option<PathBuf>,
    /// Directory of the server's data, socket and log
    #[arg(long, value_name = "DIR")]
    pub(crate) server_data: Option<PathBuf>,
    /// User that runs the server if riops runs as root
    #[arg(long, value_name = "NAME")]
    pub(crate) server_user: Option<String>,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) server_port: Option<u16>,
    /// Set a configuration parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) server_set: Vec<(String, String)>,
    /// Directory of downloads, and of servers without --server-data
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

impl EmbeddedOptions {
    /// Whether any of these options selects a server.
    pub(crate) fn selects_a_server(&self) -> bool {
        self.server_dir.is_some()
            || self.server_data.is_some()
            || self.server_user.is_some()
            || self.server_port.is_some()
            || !self.server_set.is_empty()
    }
}

/// The run store
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// SQLite file, or connection URL of a PostgreSQL database, with the stored runs [default: ~/.local/share/riops/runs.sqlite]
    #[arg(long, value_name = "FILE|URL")]
    // Not parsed by clap, whose errors show the value: it may contain a password.
    store: Option<OsString>,
}

impl StoreOptions {
    /// The file or URL that was given.
    pub(crate) fn given(&self) -> Option<&OsStr> {
        self.store.as_deref()
    }

    /// The store that was given, otherwise the default file.
    ///
    /// # Errors
    /// If the URL is invalid.
    pub(crate) fn location(&self) -> Result<StoreLocation, ConnInfoError> {
        let Some(given) = &self.store else {
            return Ok(StoreLocation::File(default_path()));
        };
        match given.to_str() {
            Some(text) => StoreLocation::parse(text, |name| std::env::var(name).ok()),
            None => Ok(StoreLocation::File(PathBuf::from(given))),
        }
    }
}
