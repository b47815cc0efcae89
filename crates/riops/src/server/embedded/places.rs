//! The folders of a server: its home, and where its socket fits.

use std::fs;
use std::path::{Path, PathBuf};

use super::account::Account;
use super::binaries::Binaries;
use super::cache::{cache, cache_candidates, set_mode, trusted, usable};
use super::error::{EmbeddedError, Result};
use super::files::file;
use super::home::Home;
use super::options::Options;

/// The longest address of a socket: 108 bytes with the closing zero on Linux, 104 elsewhere.
const SOCKET_BYTES_MAX: usize = 103;
/// The longest name in a socket's folder: `.s.PGSQL.65535.lock`.
const SOCKET_NAME_BYTES: usize = 20;

/// The home of the server that `options` mean, made where it does not exist yet.
pub(super) fn home(options: &Options, binaries: &Binaries, account: &Account) -> Result<Home> {
    let folder = match &options.data {
        Some(folder) => absolute(folder)?,
        None => cache(options, account)?.join("server").join(binaries.home_name()),
    };
    usable(&folder, account)?;
    Ok(Home { folder })
}

/// The home of the server that `options` mean, where it exists.
pub(super) fn existing_home(options: &Options, account: &Account) -> Result<Option<Home>> {
    if let Some(folder) = &options.data {
        let folder = absolute(folder)?;
        return Ok(folder.is_dir().then_some(Home { folder }));
    }
    let name = Binaries::home_name_of(options)?;
    let mut homes: Vec<Home> = cache_candidates(options)
        .into_iter()
        .filter(|cache| account.first_closed(cache).is_none())
        .map(|cache| Home { folder: cache.join("server").join(&name) })
        .filter(|home| home.folder.is_dir())
        .collect();
    // Where there are several, the one that runs is meant.
    let running = homes.iter().position(|home| home.running().is_some());
    Ok((!homes.is_empty()).then(|| homes.swap_remove(running.unwrap_or(0))))
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(file("find", folder))
}

/// The folder for the server's socket, closed to all but its user: in the home, or where that is
/// too deep, in the folder for temporary files.
pub(super) fn socket_folder(home: &Home, account: &Account) -> Result<PathBuf> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut folder = home.path("socket");
    if folder.as_os_str().len() + SOCKET_NAME_BYTES > SOCKET_BYTES_MAX {
        let mut hasher = DefaultHasher::new();
        home.folder().hash(&mut hasher);
        folder = PathBuf::from(format!("/tmp/riops-{}-{:016x}", account.uid, hasher.finish()));
    }
    if folder.as_os_str().len() + SOCKET_NAME_BYTES > SOCKET_BYTES_MAX {
        return Err(EmbeddedError::SocketPath(folder));
    }
    if let Err(error) = fs::create_dir(&folder)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(file("make the folder", &folder)(error));
    }
    trusted(&folder, &[account.uid])?;
    set_mode(&folder, 0o700)?;
    account.own(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
    fn a_deep_home_gets_a_short_socket() {
        let top = tempfile::tempdir().unwrap();
        let shallow = Home { folder: top.path().to_owned() };
        assert_eq!(socket_folder(&shallow, &me()).unwrap(), top.path().join("socket"));
        let deep = Home { folder: top.path().join("x".repeat(120)) };
        let folder = socket_folder(&deep, &me()).unwrap();
        assert!(folder.as_os_str().len() + SOCKET_NAME_BYTES <= SOCKET_BYTES_MAX);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir(folder).unwrap();
    }
}
