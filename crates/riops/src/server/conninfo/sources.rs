//! Sources of settings that a connection string omits: the service file, the `PG*` variables and the password file.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ConnInfoError;
use super::server::{Host, Server};
use super::text::Settings;
use super::values::SOCKET_DIRECTORIES;
use crate::host::files::{TEXT_BYTES_MAX, text_limited};

/// Settings and their environment variables.
const VARIABLES: [(&str, &str); 27] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("dbname", "PGDATABASE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("require_auth", "PGREQUIREAUTH"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("gssencmode", "PGGSSENCMODE"),
    ("requirepeer", "PGREQUIREPEER"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// Session settings that libpq takes from the environment.
const SESSION_SETTINGS: [(&str, &str); 3] =
    [("datestyle", "PGDATESTYLE"), ("timezone", "PGTZ"), ("geqo", "PGGEQO")];

/// Variables of libpq that select settings in other places.
const PLACES: [&str; 3] = ["PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR"];

/// Removes what connects riops to servers and stores from the environment of a program that has no part in it: the
/// variables of libpq and all options of riops, which may contain passwords and tokens.
pub fn remove_variables(command: &mut Command) -> &mut Command {
    let of_libpq = VARIABLES.iter().chain(&SESSION_SETTINGS).map(|(_, name)| *name).chain(PLACES);
    let is_own = |name: &OsString| name.as_encoded_bytes().starts_with(b"RIOPS_");
    let own = std::env::vars_os().map(|(name, _)| name).filter(is_own);
    for name in of_libpq.map(OsString::from).chain(own) {
        command.env_remove(name);
    }
    command
}

/// Returns the session settings of the environment. As in libpq, `default` leaves the choice to the server.
pub(super) fn session_settings(
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<(&'static str, String)> {
    let is_set = |value: &String| !value.is_empty() && !value.eq_ignore_ascii_case("default");
    let value = |name| environment(name).filter(is_set);
    SESSION_SETTINGS.iter().filter_map(|(setting, name)| Some((*setting, value(name)?))).collect()
}

/// Adds settings that the connection string omits: first from the service, then from the variables.
pub(super) fn fill_in(
    settings: &mut Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConnInfoError> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let service = settings.remove("service").or_else(|| variable("PGSERVICE"));
    let file = settings.remove("servicefile").map(PathBuf::from);
    if let Some(name) = service.filter(|name| !name.is_empty()) {
        for (setting, value) in service_settings(&name, file, environment)? {
            settings.entry(setting).or_insert(value);
        }
    }
    for (setting, name) in VARIABLES {
        if !settings.contains_key(setting)
            && let Some(value) = variable(name)
        {
            settings.insert(setting.to_owned(), value);
        }
    }
    Ok(())
}

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

/// Returns the settings of a service, from the user's service file or else from the system's.
fn service_settings(
    name: &str,
    named_file: Option<PathBuf>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConnInfoError> {
    let user = named_file
        .or_else(|| environment("PGSERVICEFILE").map(PathBuf::from))
        .or_else(|| home(environment).map(|home| home.join(".pg_service.conf")));
    let system = environment("PGSYSCONFDIR")
        .map_or_else(|| PathBuf::from("/etc/postgresql-common"), PathBuf::from)
        .join("pg_service.conf");
    for path in user.into_iter().chain([system]) {
        let text = match text_limited(&path, TEXT_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                return Err(ConnInfoError::LargeServiceFile { path, reason: error.to_string() });
            }
            Err(_) => continue,
        };
        if let Some(settings) = section(&text, name, &path)? {
            return Ok(settings);
        }
    }
    Err(ConnInfoError::UnknownService(name.to_owned()))
}

/// Returns the section `[name]` of a service file.
fn section(text: &str, name: &str, path: &Path) -> Result<Option<Settings>, ConnInfoError> {
    let mut settings = None;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(found) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if settings.is_some() {
                break;
            }
            settings = (found == name).then(Settings::new);
            continue;
        }
        let Some(settings) = settings.as_mut() else {
            continue;
        };
        match line.split_once('=') {
            Some((key, value)) if key.trim() != "service" => {
                settings.insert(key.trim().to_owned(), value.trim().to_owned());
            }
            // Not shown: the line may contain a password.
            _ => {
                let (path, service) = (path.to_owned(), name.to_owned());
                return Err(ConnInfoError::BadServiceFile { path, service });
            }
        }
    }
    Ok(settings)
}

/// Returns the user's home directory.
pub(super) fn home(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// Returns the name of the user that runs this process, from the environment or /etc/passwd.
pub(super) fn system_user(environment: &dyn Fn(&str) -> Option<String>) -> String {
    environment("USER")
        .or_else(|| environment("LOGNAME"))
        .or_else(operating_system_user)
        .unwrap_or_else(|| "postgres".to_owned())
}

fn operating_system_user() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
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

    /// Returns the password of the first line `host:port:database:user:password` that matches.
    fn find(&self, expected: [&str; 4]) -> Option<String> {
        self.lines.iter().filter(|line| !line.starts_with('#')).find_map(|line| {
            let mut rest = line.as_str();
            for value in expected {
                let (field, wildcard, later) = field(rest)?;
                if !wildcard && field != value {
                    return None;
                }
                rest = later;
            }
            let password = unescaped(rest);
            (!password.is_empty()).then_some(password)
        })
    }
}

/// Returns the text before the next colon, whether it is `*`, and the text after the colon. Colons
/// and backslashes can be escaped with a backslash.
fn field(text: &str) -> Option<(String, bool, &str)> {
    let mut escaped = false;
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => {
                let (field, rest) = text.split_at(position);
                return Some((unescaped(field), field == "*", rest.get(1..)?));
            }
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
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
                "::1:5432:*:*:six",
                "\\:\\:1:5432:*:*:six",
                "*:*:*:nobody:",
            ]
            .map(str::to_owned)
            .into(),
            warning: None,
        };
        let find = |host, port, database, user| file.find([host, port, database, user]);
        assert_eq!(find("db.example", "5432", "shop", "bob").as_deref(), Some("s:cret\\"));
        assert_eq!(find("db.example", "5433", "shop", "bob").as_deref(), Some("other"));
        assert_eq!(find("::1", "5432", "shop", "eve").as_deref(), Some("six"));
        assert_eq!(find("db.example", "5432", "shop", "eve"), None);
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
        let error =
            service_settings("a", Some("/dev/zero".into()), &|_| None).unwrap_err().to_string();
        assert!(error.contains("\"/dev/zero\": longer than the limit of 16 MiB"), "{error}");
    }

    #[test]
    fn reads_a_service_from_its_section() {
        let text = "# comment\n[mydb]\nhost=somehost\nport = 5433\nuser=admin\n\n[other]\nhost=x\n";
        let path = Path::new("pg_service.conf");
        let settings = section(text, "mydb", path).unwrap().unwrap();
        assert_eq!(settings["host"], "somehost");
        assert_eq!(settings["port"], "5433");
        assert_eq!(settings.len(), 3);
        assert_eq!(section(text, "none", path).unwrap(), None);
        let nested = section("[a]\nservice=b\n", "a", path);
        assert!(matches!(nested, Err(ConnInfoError::BadServiceFile { .. })));
    }
}
