//! Options of the embedded server, its version, and a server that is installed on this machine.

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

/// The PostgreSQL version to download.
pub(super) const EMBEDDED_VERSION: &str = "18.6.0";

/// Returns the directory of a server installed on this machine, the newest one of its place.
pub(super) fn installed() -> Option<String> {
    let newest_in = |parent: &str| {
        std::fs::read_dir(parent)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| parent != "/usr" || path.to_string_lossy().contains("/pgsql-"))
            .filter(|path| path.join("bin/postgres").is_file())
            .max()
    };
    let on_path = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders)
            .find(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file())
    };
    let parents = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr"];
    let folder = parents.into_iter().find_map(newest_in).or_else(on_path);
    folder.map(|folder| folder.display().to_string())
}
