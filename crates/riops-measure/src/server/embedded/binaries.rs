//! Location and version of the server programs: downloaded, or installed on this machine and
//! specified by the user.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::account::Account;
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::options::{EMBEDDED_VERSION, Options, installed};
use crate::host::Interrupt;
#[cfg(feature = "embedded")]
use crate::host::user_folders::is_trusted;
use crate::server::conninfo::remove_variables;

/// Location and version of the server programs.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    /// The directory that contains `postgres` and `initdb`.
    pub(super) bin: PathBuf,
    /// Output of `postgres --version`: `postgres (PostgreSQL) 18.6`.
    pub(super) version: String,
    /// Name of the home directory. It differs by server, so that no server starts on the data of another one.
    pub(super) home_name: String,
}

impl Binaries {
    /// Finds the server specified by `options`, otherwise the downloaded one. Downloads it if it is
    /// missing.
    pub(super) fn find(
        options: &Options,
        account: &Account,
        interrupt: &Interrupt,
        notify: &dyn Fn(&str),
    ) -> Result<Self> {
        let bin = match &options.server_dir {
            Some(folder) => bin_folder(folder)?,
            None => downloaded(options, account, interrupt, notify)?.join("bin"),
        };
        account.require_access(&bin)?;
        let version = version_of(&bin)?;
        Ok(Self { home_name: home_name(options, &version), bin, version })
    }

    /// Returns the name of the home directory without checking that the downloaded server exists.
    pub(super) fn home_name_of(options: &Options) -> Result<String> {
        let version = match &options.server_dir {
            Some(folder) => version_of(&bin_folder(folder)?)?,
            None => format!("PostgreSQL {EMBEDDED_VERSION}"),
        };
        Ok(home_name(options, &version))
    }

    /// Returns whether the library of an extension is installed. Distributions may package it
    /// separately.
    pub(super) fn has_library(&self, name: &str) -> bool {
        let library = format!("{name}.so");
        let top = self.bin.parent().unwrap_or(&self.bin);
        ["lib", "lib/postgresql", "lib64", "lib64/pgsql"]
            .iter()
            .any(|folder| top.join(folder).join(&library).exists())
    }
}

fn home_name(options: &Options, version: &str) -> String {
    let kind = if options.server_dir.is_some() { "installed" } else { "embedded" };
    format!("{kind}-{}", major(version))
}

/// Returns the major version: `18` for `postgres (PostgreSQL) 18.6 (Debian 18.6-1)`.
fn major(version: &str) -> &str {
    version
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .map_or("unknown", |word| word.split(['.', 'b', 'r', 'd']).next().unwrap_or(word))
}

fn version_of(bin: &Path) -> Result<String> {
    let program = bin.join("postgres");
    let mut version = Command::new(&program);
    let output = remove_variables(version.arg("--version")).output();
    let output = output.map_err(file("run", &program))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && text.contains("PostgreSQL") {
        return Ok(text);
    }
    let log = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let cause = output.status.to_string();
    Err(EmbeddedError::Program { program: "postgres --version", cause, log })
}

/// Returns the `bin` directory. Accepts its parent directory as well as `bin` itself.
fn bin_folder(folder: &Path) -> Result<PathBuf> {
    let folder = std::path::absolute(folder).map_err(file("resolve", folder))?;
    [folder.join("bin"), folder.clone()]
        .into_iter()
        .find(|bin| bin.join("postgres").is_file() && bin.join("initdb").is_file())
        .ok_or_else(|| {
            EmbeddedError::NoServer(format!(
                "no PostgreSQL server in \"{}\": bin/postgres or bin/initdb is missing; installed on this machine: {}",
                folder.display(),
                installed().unwrap_or_else(|| "none".to_owned())
            ))
        })
}

#[cfg(feature = "embedded")]
fn downloaded(
    options: &Options,
    account: &Account,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<PathBuf> {
    // A read-only cache is sufficient if it contains the server.
    let name = super::download::FOLDER;
    let present = super::cache::cache_candidates(options)
        .into_iter()
        .filter(|cache| options.cache.is_some() || is_trusted(cache))
        .map(|cache| cache.join(name))
        .filter(|folder| options.cache.is_some() || is_trusted(folder))
        .find(|folder| {
            folder.join("bin/postgres").is_file() && account.require_access(folder).is_ok()
        });
    if let Some(folder) = present {
        return Ok(folder);
    }
    let cache = super::cache::cache(options, account)?;
    super::download::fetch(&cache, interrupt, notify)
}

#[cfg(not(feature = "embedded"))]
fn downloaded(_: &Options, _: &Account, _: &Interrupt, _: &dyn Fn(&str)) -> Result<PathBuf> {
    let hint = installed().map_or_else(
        || "none found on this machine".to_owned(),
        |path| format!("for example {path}"),
    );
    Err(EmbeddedError::NoServer(format!(
        "cannot download PostgreSQL: riops was built without the feature `embedded`; specify an installed server with --server-dir ({hint}) or a running server with --database"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_major_version() {
        assert_eq!(major("postgres (PostgreSQL) 18.6"), "18");
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), "15");
        assert_eq!(major("postgres (PostgreSQL) 19devel"), "19");
    }

    #[test]
    fn rejects_a_directory_without_a_server() {
        let error = bin_folder(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("no PostgreSQL server in \"/nonexistent\""), "{error}");
    }
}
