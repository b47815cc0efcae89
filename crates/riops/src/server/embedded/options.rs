//! What the user decided about the embedded server.

use std::path::PathBuf;

/// What the user decided about the embedded server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder with `bin/postgres`, or that `bin` itself; otherwise the downloaded one.
    pub server_dir: Option<PathBuf>,
    /// The home folder of the server.
    pub data: Option<PathBuf>,
    /// The folder for downloads, and for homes where none is given.
    pub cache: Option<PathBuf>,
    /// The user that the server runs as, where riops runs as root.
    pub user: Option<String>,
    /// A fixed port, instead of a free one.
    pub port: Option<u16>,
    /// The address to listen on, instead of 127.0.0.1: several servers make a cluster.
    pub address: Option<String>,
    /// Settings by name, on top of those fit for a benchmark.
    pub settings: Vec<(String, String)>,
}
