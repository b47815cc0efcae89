//! The server's programs: downloaded, or installed on this machine and named by the user.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::account::Account;
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::installed::{EMBEDDED_VERSION, installed};
use super::options::Options;
use crate::host::Interrupt;

/// Where the programs are, and what they are.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    /// The folder with `postgres` and `initdb`.
    pub(super) bin: PathBuf,
    /// `postgres (PostgreSQL) 18.6`, as it says itself.
    pub(super) version: String,
    home_name: String,
}

impl Binaries {
    /// Finds what `options` name, or the downloaded server, which is downloaded now where it is
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
        if let Some(folder) = account.first_closed(&bin) {
            return Err(EmbeddedError::NotTraversable { account: account.name.clone(), folder });
        }
        let version = version_of(&bin)?;
        Ok(Self { home_name: home_name(options, &version), bin, version })
    }

    /// The name of the home folder: data of different engines are never mixed.
    pub(super) fn home_name(&self) -> &str {
        &self.home_name
    }

    /// The same without looking for a download.
    pub(super) fn home_name_of(options: &Options) -> Result<String> {
        let version = match &options.server_dir {
            Some(folder) => version_of(&bin_folder(folder)?)?,
            None => format!("PostgreSQL {EMBEDDED_VERSION}"),
        };
        Ok(home_name(options, &version))
    }

    /// Whether the extension can be preloaded: distributions ship it apart.
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

/// `18` of `postgres (PostgreSQL) 18.6 (Debian 18.6-1)`.
fn major(version: &str) -> &str {
    version
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .map_or("unknown", |word| word.split(['.', 'b', 'r', 'd']).next().unwrap_or(word))
}

fn version_of(bin: &Path) -> Result<String> {
    let program = bin.join("postgres");
    let output = Command::new(&program).arg("--version").output().map_err(file("run", &program))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && text.contains("PostgreSQL") {
        return Ok(text);
    }
    Err(EmbeddedError::Program {
        program: "postgres --version",
        cause: output.status.to_string(),
        log: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Takes the folder above `bin` as well as `bin` itself.
fn bin_folder(folder: &Path) -> Result<PathBuf> {
    let folder = std::path::absolute(folder).map_err(file("find", folder))?;
    [folder.join("bin"), folder.clone()]
        .into_iter()
        .find(|bin| bin.join("postgres").is_file() && bin.join("initdb").is_file())
        .ok_or_else(|| {
            EmbeddedError::NoServer(format!(
                "{} holds no PostgreSQL server (no bin/postgres and bin/initdb); found on this machine: {}",
                folder.display(),
                installed().first().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
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
    // A cache that is only readable still has its use.
    let name = super::download::FOLDER;
    let present = super::cache::cache_candidates(options)
        .into_iter()
        .map(|cache| cache.join(name))
        .find(|folder| {
            folder.join("bin/postgres").is_file() && account.first_closed(folder).is_none()
        });
    if let Some(folder) = present {
        return Ok(folder);
    }
    let cache = super::cache::cache(options, account)?;
    super::download::fetch(&cache, interrupt, notify)
}

#[cfg(not(feature = "embedded"))]
fn downloaded(_: &Options, _: &Account, _: &Interrupt, _: &dyn Fn(&str)) -> Result<PathBuf> {
    let hint = installed().first().map_or_else(
        || "none is installed here".to_owned(),
        |path| format!("try {}", path.display()),
    );
    Err(EmbeddedError::NoServer(format!(
        "this riops was built without the feature `embedded` and downloads no server; name an installed one with --server-dir ({hint}), or a running one with --database"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_found_in_what_servers_say() {
        assert_eq!(major("postgres (PostgreSQL) 18.6"), "18");
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), "15");
        assert_eq!(major("postgres (PostgreSQL) 19devel"), "19");
    }

    #[test]
    fn a_folder_without_a_server_is_named() {
        let error = bin_folder(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent holds no PostgreSQL server"), "{error}");
    }
}
