//! Who the server runs as: PostgreSQL refuses root, so root lends it an unprivileged user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{EmbeddedError, Result};
use super::files::file;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// Whether it is another one than this process's own.
    pub switched: bool,
}

impl Account {
    /// The user that the server will run as: this process's own, or for root the one that was
    /// named, the one who called sudo, `postgres`, or `nobody`.
    ///
    /// # Errors
    /// [`EmbeddedError::NoAccount`]
    pub fn choose(named: Option<&str>) -> Result<Self> {
        let uid = rustix::process::geteuid();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        if !uid.is_root() {
            return match named {
                Some(name) if find(&passwd, name).is_none_or(|found| found.uid != uid.as_raw()) => {
                    Err(EmbeddedError::NoAccount(format!(
                        "only root can run the server as another user ({name})"
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
                Some(_) => Err(EmbeddedError::NoAccount(format!("{name} is root"))),
                None => Err(EmbeddedError::NoAccount(format!("there is no user {name}"))),
            };
        }
        let caller = std::env::var("SUDO_USER").ok();
        caller
            .as_deref()
            .into_iter()
            .chain(["postgres", "nobody"])
            .find_map(|name| find(&passwd, name).filter(|account| account.uid != 0))
            .ok_or_else(|| {
                EmbeddedError::NoAccount("there is neither a user postgres nor nobody".to_owned())
            })
    }

    /// The owner of existing data, who alone can start a server on them.
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

    /// The first folder on the way to `path` (itself included) that this user may not enter;
    /// folders that do not exist yet count as open.
    #[must_use]
    pub fn first_closed(&self, path: &Path) -> Option<PathBuf> {
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

    /// Gives a file or folder to this user, where it is not the process's own.
    ///
    /// # Errors
    /// [`EmbeddedError::File`]
    pub fn own(&self, path: &Path) -> Result<()> {
        if !self.switched {
            return Ok(());
        }
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(file("give to the server's user", path))
    }
}

/// Finds a user by name in the text of /etc/passwd.
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
    fn users_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresx:x:5:6::/:\npostgres:x:101:104:,,,:/var:/bin/sh\nbad:x:y:z\n";
        let found = find(passwd, "postgres").unwrap();
        assert_eq!((found.uid, found.gid), (101, 104));
        assert_eq!(find(passwd, "nobody"), None);
        assert_eq!(find(passwd, "bad"), None);
    }

    #[test]
    fn a_folder_closed_to_others_is_found() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let stranger =
            Account { name: "x".to_owned(), uid: 4_000_000, gid: 4_000_000, switched: true };
        assert_eq!(stranger.first_closed(&top.path().join("new")).as_deref(), Some(top.path()));
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(stranger.first_closed(&top.path().join("new")), None);
    }
}
