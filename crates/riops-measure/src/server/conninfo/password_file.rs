//! The password file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::server::{Host, Server};
use super::values::SOCKET_DIRECTORIES;
use crate::host::files::{TEXT_BYTES_MAX, text_limited};

/// Adds the passwords of the password file to the servers. As in libpq, a socket in the default directory has the host name
/// `localhost` there. Returns a warning if the file is ignored.
pub(super) fn add_passwords(
    path: &Path,
    servers: &mut [Server],
    database: &str,
    user: &str,
) -> Option<String> {
    let file = PasswordFile::read(path);
    for server in servers {
        let is_default =
            |folder: &Path| SOCKET_DIRECTORIES.iter().any(|known| Path::new(known) == folder);
        let host = match &server.host {
            Host::Unix(folder) if is_default(folder) => "localhost".to_owned(),
            Host::Unix(folder) => folder.display().to_string(),
            Host::Tcp(name) => name.clone(),
        };
        server.password = file.find([&host, &server.port.to_string(), database, user]);
    }
    file.warning
}

/// The lines of a password file. A file that other users can read is ignored with a warning, as in
/// libpq.
struct PasswordFile {
    lines: Vec<String>,
    warning: Option<String>,
}

impl PasswordFile {
    fn read(path: &Path) -> Self {
        let nothing = |warning| Self { lines: Vec::new(), warning };
        let Ok(metadata) = fs::metadata(path) else {
            return nothing(None);
        };
        let shown = path.display();
        if !metadata.is_file() {
            return nothing(Some(format!(
                "password file \"{shown}\" is ignored: it is not a plain file"
            )));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return nothing(Some(format!(
                "password file \"{shown}\" is ignored because other users can access it; run: chmod 600 {shown}"
            )));
        }
        match text_limited(path, TEXT_BYTES_MAX) {
            Ok(text) => Self { lines: text.lines().map(str::to_owned).collect(), warning: None },
            Err(error) => nothing(Some(format!("cannot read password file \"{shown}\": {error}"))),
        }
    }

    /// Returns the password of the first line `host:port:database:user:password` that matches, even if it is empty there.
    fn find(&self, expected: [&str; 4]) -> Option<String> {
        let password = self.lines.iter().filter(|line| !line.starts_with('#')).find_map(|line| {
            let line = line.trim_end_matches(['\r', '\n']);
            expected.iter().try_fold(line, |rest, value| after_match(rest, value)).map(unescaped)
        });
        password.filter(|password| !password.is_empty())
    }
}

/// Returns the text after the colon of the next field if the field is `*` or this value. Like libpq, it compares character by
/// character: the colons of an IPv6 address need no backslash.
fn after_match<'a>(text: &'a str, value: &str) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix("*:") {
        return Some(rest);
    }
    let mut characters = text.chars();
    for expected in value.chars() {
        let next = match characters.next()? {
            '\\' => characters.next()?,
            other => other,
        };
        if next != expected {
            return None;
        }
    }
    characters.as_str().strip_prefix(':')
}

/// Returns a password up to the next colon. A backslash stands for the character after it.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(characters.next().unwrap_or('\\')),
            ':' => break,
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_the_password_of_the_first_matching_line() {
        let file = PasswordFile {
            lines: [
                "# a comment:*:*:*:no",
                "db.example:5432:shop:bob:s\\:cret\\\\",
                "db.example:*:*:bob:other",
                "::1:5432:bench:u:six",
                "\\:\\:1:5433:*:*:escaped",
                "1:*:*:*:short",
                "*:*:*:nobody:",
                "*:*:*:nobody:later",
                "\\*:1:\\d:*:star\\",
            ]
            .map(str::to_owned)
            .into(),
            warning: None,
        };
        let find = |host, port, database, user| file.find([host, port, database, user]);
        assert_eq!(find("db.example", "5432", "shop", "bob").as_deref(), Some("s:cret\\"));
        assert_eq!(find("db.example", "5433", "shop", "bob").as_deref(), Some("other"));
        assert_eq!(find("::1", "5432", "bench", "u").as_deref(), Some("six"));
        assert_eq!(find("::1", "5433", "shop", "eve").as_deref(), Some("escaped"));
        assert_eq!(find("1", "5433", "shop", "eve").as_deref(), Some("short"));
        assert_eq!(find("db.example", "5432", "shop", "eve"), None);
        assert_eq!(find("*", "1", "d", "eve").as_deref(), Some("star\\"));
        // The first line that matches counts, even without a password.
        assert_eq!(find("x", "1", "y", "nobody"), None);
    }

    #[test]
    fn ignores_a_password_file_that_other_users_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::write(&path, "*:*:*:*:secret\n").unwrap();
        for (mode, used) in [(0o600, true), (0o640, false), (0o604, false), (0o400, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let file = PasswordFile::read(&path);
            assert_eq!(file.find(["h", "1", "d", "u"]).is_some(), used, "{mode:o}");
            assert_eq!(file.warning.is_none(), used);
        }
        let none = PasswordFile::read(&folder.path().join("none"));
        assert!(none.warning.is_none() && none.lines.is_empty());
    }

    #[test]
    fn a_file_without_an_end_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let warning = PasswordFile::read(&path).warning.unwrap();
        assert!(warning.contains("limit of 16 MiB"), "{warning}");
    }
}
