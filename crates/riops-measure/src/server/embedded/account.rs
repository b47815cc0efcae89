//! The operating system user that the server runs as. PostgreSQL refuses to run as root, so root
//! runs it as an unprivileged user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
        let refused = |text: String| Err(EmbeddedError::NoAccount(text));
        let is_own = |account: Self| account.uid == uid.as_raw();
        match named {
            Some(name) if !uid.is_root() && !find(&passwd, name).is_some_and(is_own) => {
                refused(format!("only root can run it as another user (--server-user {name})"))
            }
            _ if !uid.is_root() => Ok(Self {
                name: format!("with uid {}", uid.as_raw()),
                uid: uid.as_raw(),
                gid: rustix::process::getegid().as_raw(),
                switched: false,
            }),
            Some(name) => match find(&passwd, name) {
                Some(account) if account.uid != 0 => Ok(account),
                Some(_) => refused(format!("user \"{name}\" has uid 0")),
                None => refused(format!("user \"{name}\" does not exist")),
            },
            None => {
                let caller = std::env::var("SUDO_USER").ok();
                let candidates = caller.as_deref().into_iter().chain(["postgres", "nobody"]);
                let mut accounts = candidates.filter_map(|name| find(&passwd, name));
                let reason = "neither user \"postgres\" nor user \"nobody\" exists, and PostgreSQL refuses to run as root";
                let account = accounts.find(|account| account.uid != 0);
                account.map_or_else(|| refused(reason.to_owned()), Ok)
            }
        }
    }

    /// Returns the owner of an existing data directory if this process runs as root; only that user
    /// can start a server on it.
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

    /// Fails if this user has no search permission for a directory on `path`, itself included. Directories that do not exist
    /// yet count as accessible.
    pub(super) fn require_access(&self, path: &Path) -> Result<()> {
        let mut folders: Vec<_> = path.ancestors().filter(|_| self.switched).collect();
        folders.reverse();
        let is_closed =
            |folder: &&Path| fs::metadata(folder).is_ok_and(|metadata| !self.may_enter(&metadata));
        match folders.into_iter().find(is_closed).map(Path::to_owned) {
            Some(folder) => {
                Err(EmbeddedError::NotTraversable { account: self.name.clone(), folder })
            }
            None => Ok(()),
        }
    }

    fn may_enter(&self, metadata: &fs::Metadata) -> bool {
        let shift = match (metadata.uid() == self.uid, metadata.gid() == self.gid) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
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
        let account = find(passwd, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
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
        let closed = other.require_access(&top.path().join("new"));
        assert!(
            matches!(closed, Err(EmbeddedError::NotTraversable { folder, .. }) if folder == top.path())
        );
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(other.require_access(&top.path().join("new")).is_ok());
    }
}
