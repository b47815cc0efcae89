//! The cache directory for downloads and home directories. It must be writable, accessible to the
//! server's user, and not owned by any other user.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::account::Account;
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::options::Options;
use crate::host::user_folders::{is_trusted, temporary_folder, user_folders};

/// Returns the candidates for the cache directory, in order of preference.
pub(super) fn cache_candidates(options: &Options) -> Vec<PathBuf> {
    if let Some(cache) = &options.cache {
        return vec![cache.clone()];
    }
    let of_root = rustix::process::geteuid().is_root().then(|| "/var/cache/riops".into());
    let own = user_folders("XDG_CACHE_HOME", ".cache").into_iter();
    own.chain(of_root).chain([temporary_folder()]).collect()
}

/// Returns the first candidate that is writable and accessible to the server's user.
pub(super) fn cache(options: &Options, account: &Account) -> Result<PathBuf> {
    let ensure_usable = |folder: &Path| {
        if options.cache.is_none() && folder.exists() && !is_trusted(folder) {
            let cause =
                std::io::Error::other("it belongs to another user, or others can write to it");
            return Err(file("use directory", folder)(cause));
        }
        // Checked before anything is created, so that root's home directory remains unchanged.
        account.require_access(folder)?;
        ensure_usable(folder, account)
    };
    let candidates = cache_candidates(options);
    for folder in &candidates {
        match ensure_usable(folder) {
            Ok(()) => return Ok(folder.clone()),
            // The user specified the directory: report its own error.
            Err(error) if candidates.len() == 1 => return Err(error),
            Err(_) => {}
        }
    }
    let tried: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    Err(EmbeddedError::NoCacheDir(tried.join(", ")))
}

/// Creates `folder` and its parents if necessary. Fails if it is not accessible to the server's user
/// or not writable.
pub(super) fn ensure_usable(folder: &Path, account: &Account) -> Result<()> {
    create_folder(folder, account)?;
    account.require_access(folder)?;
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| file("write to", folder)(error.into()))
}

fn create_folder(folder: &Path, account: &Account) -> Result<()> {
    if folder.is_dir() {
        return check_owner(folder, &[]);
    }
    // Another user who runs the server must reach its files.
    let mode = if account.switched { 0o755 } else { 0o700 };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(folder)
        .map_err(file("create directory", folder))?;
    set_mode(folder, mode)
}

/// Fails if another user created the directory. Anyone can create files in /tmp and /var/tmp, and
/// riops executes programs from the cache. `others` are the ids of users, besides root and the
/// current user, that may own the directory.
pub(super) fn check_owner(folder: &Path, others: &[u32]) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(folder).map_err(file("stat", folder))?;
    let owner = metadata.uid();
    let known =
        owner == 0 || owner == rustix::process::geteuid().as_raw() || others.contains(&owner);
    let below_tmp = folder.starts_with("/tmp") || folder.starts_with("/var/tmp");
    if below_tmp && (metadata.is_symlink() || !metadata.is_dir() || !known) {
        let cause = std::io::Error::other("it is not a directory, or it belongs to another user");
        return Err(file("use directory", folder)(cause));
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

    #[test]
    fn directories_that_others_own_or_can_write_to_are_not_trusted() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("riops");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o755).unwrap();
        assert!(is_trusted(&folder));
        std::os::unix::fs::symlink(&folder, top.path().join("link")).unwrap();
        assert!(is_trusted(&top.path().join("link")) && !is_trusted(&top.path().join("none")));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(top.path().join("link"), Some(65_534), None).unwrap();
            assert!(!is_trusted(&top.path().join("link")));
            std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
            assert!(!is_trusted(&folder));
            std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
        }
        set_mode(&folder, 0o777).unwrap();
        assert!(!is_trusted(&folder));
    }

    fn current_user() -> Account {
        Account {
            name: "me".to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            switched: false,
        }
    }

    #[test]
    fn rejects_a_cache_path_below_a_file() {
        let top = tempfile::tempdir().unwrap();
        let blocked = top.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let options = Options { cache: Some(blocked.join("cache")), ..Options::default() };
        let error = cache(&options, &current_user()).unwrap_err().to_string();
        assert!(error.contains("file/cache"), "{error}");
    }
}
