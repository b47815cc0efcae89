//! The folder for downloads and homes: writable, open to the server's user, and nobody else's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::account::Account;
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::options::Options;

/// Folders that could hold downloads and homes, best first.
pub(super) fn cache_candidates(options: &Options) -> Vec<PathBuf> {
    if let Some(cache) = &options.cache {
        return vec![cache.clone()];
    }
    let variable =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let uid = rustix::process::geteuid();
    let mut candidates = Vec::new();
    candidates.extend(variable("XDG_CACHE_HOME").map(|path| path.join("riops")));
    candidates.extend(variable("HOME").map(|path| path.join(".cache/riops")));
    if uid.is_root() {
        candidates.push("/var/cache/riops".into());
    }
    candidates.push(format!("/var/tmp/riops-{}", uid.as_raw()).into());
    candidates
}

/// The first candidate that can be written and that the server's user can enter.
pub(super) fn cache(options: &Options, account: &Account) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    let mut candidates = cache_candidates(options);
    for folder in &candidates {
        // Nothing is made below a closed folder: root's own home stays as it was.
        if let Some(closed) = account.first_closed(folder) {
            reasons.push(EmbeddedError::NotTraversable {
                account: account.name.clone(),
                folder: closed,
            });
            continue;
        }
        match usable(folder, account) {
            Ok(()) => return Ok(folder.clone()),
            Err(error) => reasons.push(error),
        }
    }
    match reasons.pop() {
        // A folder that was asked for by name has its own reason.
        Some(reason) if candidates.len() == 1 => Err(reason),
        _ => Err(EmbeddedError::NoPlace(
            candidates
                .drain(..)
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        )),
    }
}

/// Makes `folder` with all its parents, open to the server's user; whether that worked and the
/// folder can be written.
pub(super) fn usable(folder: &Path, account: &Account) -> Result<()> {
    make_folder(folder)?;
    if let Some(closed) = account.first_closed(folder) {
        return Err(EmbeddedError::NotTraversable {
            account: account.name.clone(),
            folder: closed,
        });
    }
    let probe = folder.join(format!(".write-test-{}", std::process::id()));
    fs::write(&probe, b"").map_err(file("write into", folder))?;
    fs::remove_file(&probe).map_err(file("write into", folder))
}

fn make_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return trusted(folder, &[]);
    }
    fs::create_dir_all(folder).map_err(file("make the folder", folder))?;
    set_mode(folder, 0o755)
}

/// Makes sure that nobody else put a folder here: /tmp and /var/tmp are open to all, and what lies
/// in the cache is executed. `others` are users beside root and this one who may own it.
pub(super) fn trusted(folder: &Path, others: &[u32]) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(folder).map_err(file("look at", folder))?;
    let owner = metadata.uid();
    let known =
        owner == 0 || owner == rustix::process::geteuid().as_raw() || others.contains(&owner);
    let below_tmp = folder.starts_with("/tmp") || folder.starts_with("/var/tmp");
    if below_tmp && (metadata.is_symlink() || !metadata.is_dir() || !known) {
        let stranger = std::io::Error::other("somebody else has made it");
        return Err(file("trust", folder)(stranger));
    }
    Ok(())
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(file("set the permissions of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Account {
        Account {
            name: "me".to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            switched: false,
        }
    }

    #[test]
    fn a_cache_that_is_a_file_is_refused_with_its_reason() {
        let top = tempfile::tempdir().unwrap();
        let blocked = top.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let options = Options { cache: Some(blocked.join("cache")), ..Options::default() };
        let error = cache(&options, &me()).unwrap_err().to_string();
        assert!(error.contains("file/cache"), "{error}");
    }
}
