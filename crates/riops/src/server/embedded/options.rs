//! Options of the embedded server.

use std::path::PathBuf;

/// Options of the embedded server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directory that contains `bin/postgres`, or that `bin` directory itself; default: the
    /// downloaded server.
    pub server_dir: Option<PathBuf>,
    /// Home directory of the server; default: a subdirectory of the cache directory.
    pub data: Option<PathBuf>,
    /// Cache directory for downloads and default home directories.
    pub cache: Option<PathBuf>,
    /// User that the server runs as if riops runs as root.
    pub user: Option<String>,
    /// TCP port; default: any free port.
    pub port: Option<u16>,
    /// Address to listen on; default: 127.0.0.1. Servers on several addresses form a cluster.
    pub address: Option<String>,
    /// Names and values of settings, in addition to the defaults for benchmarks.
    pub settings: Vec<(String, String)>,
}
