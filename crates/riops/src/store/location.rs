//! Where a store is: a file, or a PostgreSQL database.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::host::user_folders::{can_hold_files, is_trusted, temporary_folder, user_folders};
use crate::server::ConnInfo;
use crate::server::conninfo::{ConnInfoError, Host, is_mistyped_url};

/// Where a store is.
#[derive(Debug, Clone)]
pub enum StoreLocation {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgresql(Box<ConnInfo>),
}

impl StoreLocation {
    /// Parses a URL `postgresql://…` or a `key=value` string as a PostgreSQL database, and any other text as the
    /// path of a file. Settings that are missing come from `environment`, as in [`ConnInfo::parse`].
    ///
    /// # Errors
    /// [`ConnInfoError`] if a setting is invalid or unsupported. It shows no password.
    pub fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnInfoError> {
        if is_postgresql(text) {
            return ConnInfo::parse(text, environment).map(Box::new).map(Self::Postgresql);
        }
        // A path with such characters starts with a slash or a dot.
        let folder = Path::new(text).parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_path = text.starts_with(['/', '.', '~']) || folder.is_some_and(Path::is_dir);
        if text.contains(":/")
            || !is_path && (is_mistyped_url(text) || text.to_lowercase().contains("password"))
        {
            return Err(ConnInfoError::MistypedUrl);
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for StoreLocation {
    /// Writes the path of the file, or the URL of the database without its password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Postgresql(conninfo) => formatter.write_str(&url(conninfo)),
        }
    }
}

/// Returns whether a text is a connection string. A path with an equals sign can be written as `./a=b`.
fn is_postgresql(text: &str) -> bool {
    let text = text.trim_start();
    let is_setting = |name: &str| {
        let name = name.trim_end();
        !name.is_empty()
            && name.chars().all(|character| character.is_ascii_lowercase() || character == '_')
    };
    text.starts_with("postgresql://")
        || text.starts_with("postgres://")
        || text.split_once('=').is_some_and(|(name, _)| is_setting(name))
}

/// Returns the URL of a database without its password.
pub(super) fn url(conninfo: &ConnInfo) -> String {
    let encoded = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let plain = |text: &str| {
        let is_plain = text
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character));
        if is_plain { text.to_owned() } else { encoded(text) }
    };
    let folder = conninfo.servers.iter().find_map(|server| match &server.host {
        Host::Unix(folder) => Some((folder, server.port)),
        Host::Tcp(_) => None,
    });
    let (user, database) = (plain(&conninfo.user), plain(&conninfo.database));
    if let Some((folder, port)) = folder {
        let host = folder.display();
        return format!("postgresql://{user}@/{database}?host={host}&port={port}");
    }
    let servers: Vec<_> = conninfo.servers.iter().map(ToString::to_string).collect();
    format!("postgresql://{user}@{}/{database}", servers.join(","))
}

/// Returns the default path of the store: in the data directory of the user, or in `/var/tmp` if it cannot be written. A
/// store that exists stays the default when its directory becomes read-only.
pub fn default_path() -> PathBuf {
    path_in(&user_folders("XDG_DATA_HOME", ".local/share"), &temporary_folder())
}

fn path_in(own: &[PathBuf], temporary: &Path) -> PathBuf {
    let store = |folder: &Path| folder.join("runs.sqlite");
    let usable = own.iter().find(|folder| store(folder).exists() || can_hold_files(folder));
    let is_usable = !temporary.exists() || is_trusted(temporary);
    // If none is usable, the error names the preferred one.
    let otherwise = own.first().filter(|_| !is_usable).map_or(temporary, PathBuf::as_path);
    store(usable.map_or(otherwise, PathBuf::as_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_in_a_temporary_folder_if_no_other_can_hold_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (blocked, own) = (file.join("riops"), top.path().join("data/riops"));
        let temporary = top.path().join("tmp");
        let folder_of = |own: &[PathBuf]| path_in(own, &temporary).parent().unwrap().to_owned();
        assert_eq!(folder_of(&[blocked.clone(), own.clone()]), own);
        assert_eq!(
            (folder_of(std::slice::from_ref(&blocked)), folder_of(&[])),
            (temporary.clone(), temporary.clone())
        );
        // Another user may have created it.
        std::fs::create_dir(&temporary).unwrap();
        std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(folder_of(std::slice::from_ref(&blocked)), blocked);
    }

    #[test]
    fn a_mistyped_url_is_no_file() {
        for text in [
            "postgres:/u:s3cret@h/x",
            "u:s3cret@h",
            "u/s3cret@h",
            "Postgresql://u:s3cret@h/x",
            "h?password=s3cret",
            "postgres//u:s3cret@h/db",
            "Server=h;Password=s3cret",
        ] {
            let error = StoreLocation::parse(text, |_| None).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        for text in ["a@b.sqlite", "./u:p@h", "/tmp/u:p@h", "results.sqlite"] {
            assert!(matches!(StoreLocation::parse(text, |_| None), Ok(StoreLocation::File(_))));
        }
    }

    fn parsed(text: &str) -> String {
        StoreLocation::parse(text, |_| None).unwrap().to_string()
    }

    #[test]
    fn a_url_or_a_setting_selects_postgresql_and_anything_else_is_a_file() {
        assert_eq!(
            parsed("postgresql://me:secret@db.example:5433/results"),
            "postgresql://me@db.example:5433/results"
        );
        assert_eq!(
            parsed("host=/tmp port=1 user=me password=secret dbname=a/b"),
            "postgresql://me@/a%2Fb?host=/tmp&port=1"
        );
        for path in ["runs.sqlite", "/data/batch=10.sqlite", "./batch=10.sqlite", "Size=1"] {
            assert!(matches!(
                StoreLocation::parse(path, |_| None),
                Ok(StoreLocation::File(file)) if file.as_os_str() == path
            ));
        }
    }

    #[test]
    fn the_location_can_be_parsed_again() {
        for text in ["postgresql://me@h:1,[::1]:2/db", "host=/tmp port=7 user=x dbname=y"] {
            assert_eq!(parsed(&parsed(text)), parsed(text), "{text}");
        }
    }

    #[test]
    fn an_invalid_connection_string_does_not_show_its_password() {
        let error = StoreLocation::parse("host=h password=se cret", |_| None).unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
    }
}
