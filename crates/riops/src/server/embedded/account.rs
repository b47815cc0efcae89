//! The operating system user that the server runs as. PostgreSQL refuses to run as root, so root
//! runs it as an unprivileged user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{EmbeddedError, Result};
use super::files::file;

/// An operating system user.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Account {
    /// User name, or `with uid N` if only the user id is known.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Whether it differs from the user of this process.
    pub switched: bool,
}

impl Account {
    /// Returns the user that the server will run as: the user of this process; for root, the user
    /// `named`, otherwise the user who called sudo, `postgres` or `nobody`.
    ///
    /// # Errors
    /// [`EmbeddedError::NoAccount`] if no such user exists or this process cannot switch to it.
    pub fn choose(named: Option<&str>) -> Result<Self> {
        let uid = rustix::process::geteuid();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        if !uid.is_root() {
            return match named {
                Some(name) if find(&passwd, name).is_none_or(|found| found.uid != uid.as_raw()) => {
                    Err(EmbeddedError::NoAccount(format!(
                        "only root can run it as another user (--server-user {name})"
                    )))
                }
                _ => Ok(Self {
                    name: format!("with uid {}", uid.as_raw()),
                    uid: uid.as_raw(),
                    gid: rustix::process::getegid().as_raw(),
                    switched: false,
                }),
            };
        }
        if let Some(name) = named {
            return match find(&passwd, name) {
                Some(account) if account.uid != 0 => Ok(account),
                Some(_) => Err(EmbeddedError::NoAccount(format!("user \"{name}\" has uid 0"))),
                None => Err(EmbeddedError::NoAccount(format!("user \"{name}\" does not exist"))),
            };
        }
        let caller = std::env::var("SUDO_USER").ok();
        caller
            .as_deref()
            .into_iter()
            .chain(["postgres", "nobody"])
            .find_map(|name| find(&passwd, name).filter(|account| account.uid != 0))
            .ok_or_else(|| {
                EmbeddedError::NoAccount(
                    "neither user \"postgres\" nor user \"nobody\" exists, and PostgreSQL refuses to run as root"
                        .to_owned(),
                )
            })
    }

    /// Returns the owner of an existing data directory if this process runs as root; only that user
    /// can start a server on it.
    #[must_use]
    pub fn owner_of(data: &Path) -> Option<Self> {
        let metadata = fs::metadata(data).ok()?;
        let (uid, gid) = (metadata.uid(), metadata.gid());
        let me = rustix::process::geteuid().as_raw();
        (uid != 0 && me == 0).then(|| Self {
            name: format!("with uid {uid}"),
            uid,
            gid,
            switched: true,
        })
    }

    /// Returns the first directory on `path`, itself included, for which this user has no search
    /// permission. Directories that do not exist yet count as accessible.
    #[must_use]
    pub fn first_inaccessible(&self, path: &Path) -> Option<PathBuf> {
        if !self.switched {
            return None;
        }
        let mut folders: Vec<_> = path.ancestors().collect();
        folders.reverse();
        folders
            .into_iter()
            .find(|folder| fs::metadata(folder).is_ok_and(|metadata| !self.may_enter(&metadata)))
            .map(Path::to_owned)
    }

    fn may_enter(&self, metadata: &fs::Metadata) -> bool {
        let shift = if metadata.uid() == self.uid {
            6
        } else if metadata.gid() == self.gid {
            3
        } else {
            0
        };
        (metadata.mode() >> shift) & 1 == 1
    }

    /// Changes the owner of a file or directory to this user, if it is not the user of this process.
    ///
    /// # Errors
    /// [`EmbeddedError::File`] if the owner cannot be changed.
    pub fn take_ownership(&self, path: &Path) -> Result<()> {
        if !self.switched {
            return Ok(());
        }
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(file("change the owner of", path))
    }
}

/// Finds a user by name in the contents of /etc/passwd.
fn find(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { name: name.to_owned(), uid, gid, switched: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_users_by_exact_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresx:x:5:6::/:\npostgres:x:101:104:,,,:/var:/bin/sh\nbad:x:y:z\n";
        let found = find(passwd, "postgres").unwrap();
        assert_eq!((found.uid, found.gid), (101, 104));
        assert_eq!(find(passwd, "nobody"), None);
        assert_eq!(find(passwd, "bad"), None);
    }

    #[test]
    fn finds_the_first_inaccessible_directory() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let other =
            Account { name: "x".to_owned(), uid: 4_000_000, gid: 4_000_000, switched: true };
        assert_eq!(other.first_inaccessible(&top.path().join("new")).as_deref(), Some(top.path()));
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(other.first_inaccessible(&top.path().join("new")), None);
    }
}
