//! The mark of a home directory: proves that riops initialized its data directory. Without this proof, nothing in the
//! directory is overwritten, stopped or removed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{EmbeddedError, Result};
use super::files::{file, write_private};
use super::home::Home;

const FILE: &str = "riops-server.json";
/// Files and directories of a home directory that riops overwrites or removes.
const OWNED: [&str; 6] = ["data", "socket", "state.json", "server.log", "persistent", "leaving"];

/// Identity of a data directory. An inode number is reused, and a copy has the same system identifier: only both
/// together identify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    inode: u64,
    /// The system identifier of the cluster, which `initdb` generates.
    system_identifier: u64,
}

impl Mark {
    /// Reads the identity of the data directory `data`, following a symbolic link.
    fn read_from(data: &Path) -> Result<Self> {
        let inode = fs::metadata(data).map_err(file("stat", data))?.ino();
        let control = data.join("global/pg_control");
        let mut start = [0; 8];
        fs::File::open(&control)
            .and_then(|mut opened| opened.read_exact(&mut start))
            .map_err(file("read", &control))?;
        Ok(Self { inode, system_identifier: u64::from_ne_bytes(start) })
    }
}

/// Contents of a home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contents {
    /// Nothing of a server.
    Nothing,
    /// The data directory that riops initialized here, or none any more.
    Own,
    /// A copy of a data directory that riops initialized elsewhere.
    Copy,
    /// A data directory of a riops that wrote no mark.
    Unmarked,
    /// A file or directory that riops did not create.
    Foreign(PathBuf),
}

/// Determines what a home directory contains.
///
/// # Errors
/// [`EmbeddedError::File`] if the files cannot be read.
pub(super) fn contents(home: &Home) -> Result<Contents> {
    let data = home.data();
    // A dangling link exists, too.
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    let Some(mark) = read(home)? else {
        if home.read_state().is_some() && data.join("PG_VERSION").is_file() {
            return Ok(Contents::Unmarked);
        }
        let foreign = OWNED.iter().map(|name| home.path(name)).find(|path| exists(path));
        return Ok(foreign.map_or(Contents::Nothing, Contents::Foreign));
    };
    if !exists(&data) {
        return Ok(Contents::Own);
    }
    if !data.join("global/pg_control").exists() {
        return Ok(Contents::Foreign(data));
    }
    let actual = Mark::read_from(&data)?;
    Ok(match mark {
        _ if actual == mark => Contents::Own,
        Mark { system_identifier, .. } if system_identifier == actual.system_identifier => {
            Contents::Copy
        }
        _ => Contents::Foreign(data),
    })
}

fn read(home: &Home) -> Result<Option<Mark>> {
    match home.read(FILE) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file("read", &home.path(FILE))(error)),
    }
}

/// Marks `data`, which is or becomes the data directory of the home directory, as created by riops.
pub(super) fn write(home: &Home, data: &Path) -> Result<()> {
    let path = home.path(FILE);
    let json = serde_json::to_vec(&Mark::read_from(data)?)
        .map_err(|error| file("write", &path)(error.into()))?;
    write_private(&path, &json)
}

/// Returns whether riops initialized the data directory, so that the processes on it belong to riops.
///
/// # Errors
/// [`EmbeddedError::File`] if the files cannot be read.
pub(super) fn is_own(home: &Home) -> Result<bool> {
    Ok(contents(home)? == Contents::Own)
}

/// Fails unless riops may use the directory as the home of a server.
///
/// # Errors
/// [`EmbeddedError::Foreign`] if riops would overwrite something that it did not create.
pub(super) fn require_usable(home: &Home) -> Result<()> {
    match contents(home)? {
        Contents::Foreign(path) => Err(EmbeddedError::Foreign(path)),
        _ => Ok(()),
    }
}

/// Returns whether a server of riops is or was here.
///
/// # Errors
/// [`EmbeddedError::Foreign`] for a server that riops did not create or start.
pub(super) fn has_server(home: &Home) -> Result<bool> {
    match contents(home)? {
        Contents::Nothing => Ok(false),
        Contents::Own | Contents::Unmarked => Ok(true),
        Contents::Copy => Err(EmbeddedError::Unbound(home.data())),
        Contents::Foreign(path) => Err(EmbeddedError::Foreign(path)),
    }
}

/// Fails unless the data directory may be removed.
///
/// # Errors
/// [`EmbeddedError::Foreign`] or [`EmbeddedError::Unbound`] if riops did not initialize it in this place.
pub(super) fn require_removable(home: &Home) -> Result<()> {
    let data = home.data();
    match contents(home)? {
        // Removing a link would not remove the data.
        Contents::Own if data.is_symlink() => Err(EmbeddedError::Foreign(data)),
        Contents::Nothing | Contents::Own => Ok(()),
        Contents::Copy | Contents::Unmarked => Err(EmbeddedError::Unbound(data)),
        Contents::Foreign(path) => Err(EmbeddedError::Foreign(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(data: &Path, system_identifier: u64) {
        fs::create_dir_all(data.join("global")).unwrap();
        fs::write(data.join("global/pg_control"), system_identifier.to_ne_bytes()).unwrap();
    }

    #[test]
    fn only_the_marked_data_directory_is_own() {
        let top = tempfile::tempdir().unwrap();
        let home = Home { folder: top.path().to_owned() };
        assert_eq!(contents(&home).unwrap(), Contents::Nothing);
        cluster(&home.data(), 7);
        assert_eq!(contents(&home).unwrap(), Contents::Foreign(home.data()));
        write(&home, &home.data()).unwrap();
        assert_eq!(contents(&home).unwrap(), Contents::Own);
        // Another cluster instead, which may even get its inode.
        fs::remove_dir_all(home.data()).unwrap();
        assert_eq!(contents(&home).unwrap(), Contents::Own);
        cluster(&home.data(), 8);
        assert_eq!(contents(&home).unwrap(), Contents::Foreign(home.data()));
        assert!(require_usable(&home).is_err() && require_removable(&home).is_err());
    }

    #[test]
    fn a_copy_can_be_used_but_not_removed() {
        let top = tempfile::tempdir().unwrap();
        let home = Home { folder: top.path().to_owned() };
        cluster(&home.data(), 7);
        write(&home, &home.data()).unwrap();
        fs::rename(home.data(), top.path().join("original")).unwrap();
        cluster(&home.data(), 7);
        assert_eq!(contents(&home).unwrap(), Contents::Copy);
        assert!(require_usable(&home).is_ok() && has_server(&home).is_err());
        assert!(require_removable(&home).is_err());
        // The original behind a link: its data would remain.
        fs::remove_dir_all(home.data()).unwrap();
        std::os::unix::fs::symlink(top.path().join("original"), home.data()).unwrap();
        assert_eq!(contents(&home).unwrap(), Contents::Own);
        assert!(has_server(&home).unwrap() && require_removable(&home).is_err());
    }

    #[test]
    fn a_directory_with_files_of_others_is_not_used() {
        for name in OWNED {
            let top = tempfile::tempdir().unwrap();
            let home = Home { folder: top.path().to_owned() };
            fs::write(home.path(name), b"mine").unwrap();
            assert_eq!(contents(&home).unwrap(), Contents::Foreign(home.path(name)));
        }
    }
}
