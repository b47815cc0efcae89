//! The directories of a server: its home directory and its socket directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::account::Account;
use super::binaries::Binaries;
use super::cache::{cache, cache_candidates, check_owner, ensure_usable, set_mode};
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::home::Home;
use super::mark;
use super::options::Options;
use crate::host::user_folders::is_trusted;

/// Maximum length of a socket path. With the terminating zero the limit is 108 bytes on Linux and
/// 104 on other systems.
const SOCKET_BYTES_MAX: usize = 103;
/// Length of a slash and the longest file name in a socket directory, `.s.PGSQL.65535.lock`.
const SOCKET_NAME_BYTES: usize = 20;

/// Returns the home directory of the server specified by `options`. Creates it if it does not exist.
pub(super) fn home(options: &Options, binaries: &Binaries, account: &Account) -> Result<Home> {
    let folder = match &options.data {
        Some(folder) => absolute(folder)?,
        None => cache(options, account)?.join("server").join(&binaries.home_name),
    };
    ensure_usable(&folder, account)?;
    Ok(Home { folder })
}

/// Returns the home directory of the server specified by `options`, if it contains a server.
///
/// # Errors
/// [`EmbeddedError::Foreign`] or [`EmbeddedError::Unbound`] if riops did not create the server in it.
pub(super) fn existing_home(options: &Options) -> Result<Option<Home>> {
    let account = Account::choose(options.user.as_deref())?;
    if let Some(folder) = &options.data {
        let home = Home { folder: absolute(folder)? };
        return Ok(mark::has_server(&home)?.then_some(home));
    }
    let name = Binaries::home_name_of(options)?;
    let mut homes: Vec<Home> = cache_candidates(options)
        .into_iter()
        .filter(|cache| options.cache.is_some() || is_trusted(cache))
        .filter(|cache| account.require_access(cache).is_ok())
        .map(|cache| Home { folder: cache.join("server").join(&name) })
        .filter_map(|home| {
            mark::has_server(&home).map(|has_server| has_server.then_some(home)).transpose()
        })
        .collect::<Result<_>>()?;
    // If several exist, prefer the one with a running server.
    let running = homes.iter().position(|home| home.running().is_some());
    Ok((!homes.is_empty()).then(|| homes.swap_remove(running.unwrap_or(0))))
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(file("resolve", folder))
}

/// Returns the directory for the server's socket, accessible only to the server's user. It is in the
/// home directory, or in /tmp if that path would be too long.
pub(super) fn socket_folder(home: &Home, account: &Account) -> Result<PathBuf> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut folder = home.path("socket");
    if folder.as_os_str().len() + SOCKET_NAME_BYTES > SOCKET_BYTES_MAX {
        let mut hasher = DefaultHasher::new();
        home.folder.hash(&mut hasher);
        folder = PathBuf::from(format!("/tmp/riops-{}-{:016x}", account.uid, hasher.finish()));
    }
    if folder.as_os_str().len() + SOCKET_NAME_BYTES > SOCKET_BYTES_MAX {
        return Err(EmbeddedError::SocketPath(folder));
    }
    if let Err(error) = fs::create_dir(&folder)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(file("create directory", &folder)(error));
    }
    check_owner(&folder, &[account.uid])?;
    set_mode(&folder, 0o700)?;
    account.take_ownership(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn current_user() -> Account {
        Account {
            name: "me".to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            switched: false,
        }
    }

    #[test]
    fn uses_a_short_socket_path_for_a_long_home_path() {
        let top = tempfile::tempdir().unwrap();
        let shallow = Home { folder: top.path().to_owned() };
        assert_eq!(socket_folder(&shallow, &current_user()).unwrap(), top.path().join("socket"));
        let deep = Home { folder: top.path().join("x".repeat(120)) };
        let folder = socket_folder(&deep, &current_user()).unwrap();
        assert!(folder.as_os_str().len() + SOCKET_NAME_BYTES <= SOCKET_BYTES_MAX);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir(folder).unwrap();
    }
}
