//! PostgreSQL servers: the version to download, and the servers installed on this machine.

use std::path::PathBuf;

/// The PostgreSQL version to download.
pub(super) const EMBEDDED_VERSION: &str = "18.6.0";

/// Returns the directories of the servers installed on this machine, newest first.
pub(super) fn installed() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let parents = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr"];
    for parent in parents {
        let Ok(entries) = std::fs::read_dir(parent) else {
            continue;
        };
        let mut folders: Vec<_> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| parent != "/usr" || path.to_string_lossy().contains("/pgsql-"))
            .filter(|path| path.join("bin/postgres").is_file())
            .collect();
        folders.sort();
        folders.reverse();
        found.extend(folders);
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(
        std::env::split_paths(&on_path)
            .filter(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file()),
    );
    found
}
