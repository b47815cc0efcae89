//! Sources of settings that a connection string omits: the service file and the `PG*` variables.

use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ConnInfoError;
use super::parameters::{PARAMETERS, Use};
use super::text::Settings;
use crate::host::files::{TEXT_BYTES_MAX, text_limited};
use crate::host::user_name;

/// Session settings that libpq takes from the environment.
const SESSION_SETTINGS: [(&str, &str); 3] =
    [("datestyle", "PGDATESTYLE"), ("timezone", "PGTZ"), ("geqo", "PGGEQO")];

/// Removes what connects riops to servers and stores from the environment of a program that has no part in it: the
/// variables of libpq and all options of riops, which may contain passwords and tokens.
pub fn remove_variables(command: &mut Command) -> &mut Command {
    let of_parameters = PARAMETERS.iter().filter_map(|parameter| parameter.variable);
    let of_sessions = SESSION_SETTINGS.iter().map(|(_, name)| *name);
    let of_libpq = of_parameters.chain(of_sessions).chain(["PGSYSCONFDIR"]);
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

/// Adds settings that the connection string omits: first from the service, then from the variables. Returns the names of the
/// settings that come from variables.
pub(super) fn fill_in(
    settings: &mut Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<&'static str>, ConnInfoError> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let service = settings.remove("service").or_else(|| variable("PGSERVICE"));
    let file = settings.remove("servicefile").filter(|file| !file.is_empty()).map(PathBuf::from);
    if let Some(name) = service.filter(|name| !name.is_empty()) {
        for (setting, value) in service_settings(&name, file, environment)? {
            settings.entry(setting).or_insert(value);
        }
    }
    let mut from_variables = Vec::new();
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.usage != Use::Service) {
        if let Entry::Vacant(place) = settings.entry(parameter.name.to_owned())
            && let Some(value) = parameter.variable.and_then(variable)
        {
            place.insert(value);
            from_variables.push(parameter.name);
        }
    }
    // An old variable that libpq still reads, after all others.
    if variable("PGREQUIRESSL").is_some_and(|value| value.starts_with('1')) {
        settings.entry("sslmode".to_owned()).or_insert_with(|| "require".to_owned());
    }
    Ok(from_variables)
}

/// Returns the settings of a service, from the user's service file or else from the system's. A file that is named must exist.
fn service_settings(
    name: &str,
    named_file: Option<PathBuf>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConnInfoError> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let named = named_file.or_else(|| variable("PGSERVICEFILE").map(PathBuf::from));
    let is_named = named.is_some();
    let user = named.or_else(|| home(environment).map(|home| home.join(".pg_service.conf")));
    let system = variable("PGSYSCONFDIR")
        .map_or_else(|| PathBuf::from("/etc/postgresql-common"), PathBuf::from)
        .join("pg_service.conf");
    for (path, is_named) in user.map(|path| (path, is_named)).into_iter().chain([(system, false)]) {
        let text = match text_limited(&path, TEXT_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if is_named || error.kind() == ErrorKind::FileTooLarge => {
                return Err(ConnInfoError::ServiceFile { path, reason: error.to_string() });
            }
            Err(_) => continue,
        };
        if let Some(settings) = section(&text, name, &path)? {
            return Ok(settings);
        }
    }
    Err(ConnInfoError::UnknownService(name.to_owned()))
}

/// Returns the section `[name]` of a service file. As in libpq, its first value of a parameter counts, and a line is
/// `key=value` without white space around the key and without another service.
fn section(text: &str, name: &str, path: &Path) -> Result<Option<Settings>, ConnInfoError> {
    let mut settings = None;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(start) = line.strip_prefix('[') {
            if settings.is_some() {
                break;
            }
            let is_found = start.strip_prefix(name).is_some_and(|rest| rest.starts_with(']'));
            settings = is_found.then(Settings::new);
            continue;
        }
        let Some(settings) = settings.as_mut() else {
            continue;
        };
        let is_known = |key: &str| {
            let known = PARAMETERS.iter().find(|parameter| parameter.name == key);
            known.is_some_and(|parameter| parameter.usage != Use::Service)
        };
        match line.split_once('=') {
            Some((key, value)) if is_known(key) => {
                settings.entry(key.to_owned()).or_insert_with(|| value.to_owned());
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

/// Returns the name of the user that runs this process. As in libpq, the operating system decides; the environment only counts
/// if `/etc/passwd` does not contain the user.
pub(super) fn system_user(environment: &dyn Fn(&str) -> Option<String>) -> String {
    user_name(rustix::process::geteuid().as_raw())
        .or_else(|| environment("USER"))
        .or_else(|| environment("LOGNAME"))
        .unwrap_or_else(|| "postgres".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_not_used() {
        let error =
            service_settings("a", Some("/dev/zero".into()), &|_| None).unwrap_err().to_string();
        assert!(error.contains("\"/dev/zero\": longer than the limit of 16 MiB"), "{error}");
    }

    #[test]
    fn reads_a_service_from_its_section() {
        let text = "# comment\n[mydb]x\n host=somehost \nport=5433\nuser=admin\nuser=other\ndbname= d\n\n[other]\nhost=x\n[mydb]\nport=1\n";
        let path = Path::new("pg_service.conf");
        let settings = section(text, "mydb", path).unwrap().unwrap();
        assert_eq!(settings["host"], "somehost");
        assert_eq!(settings["port"], "5433");
        // The first value of a key counts.
        assert_eq!((settings["user"].as_str(), settings["dbname"].as_str()), ("admin", " d"));
        assert_eq!(settings.len(), 4);
        assert_eq!(section(text, "none", path).unwrap(), None);
        for line in ["service=b", "servicefile=/f", "port = 1", "colour=blue", "host"] {
            let wrong = section(&format!("[a]\n{line}\n"), "a", path);
            assert!(matches!(wrong, Err(ConnInfoError::BadServiceFile { .. })), "{line}");
        }
    }

    #[test]
    fn a_service_file_that_is_named_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pg_service.conf"), "[a]\nport=1\n").unwrap();
        let folder = folder.path().to_str().unwrap().to_owned();
        let variables = |file: Option<&str>| {
            let (folder, file) = (folder.clone(), file.map(str::to_owned));
            move |name: &str| match name {
                "PGSYSCONFDIR" => Some(folder.clone()),
                "PGSERVICEFILE" => file.clone(),
                _ => None,
            }
        };
        assert!(service_settings("a", None, &variables(None)).is_ok());
        let error = service_settings("a", None, &variables(Some("/nonexistent"))).unwrap_err();
        assert!(error.to_string().contains("\"/nonexistent\""), "{error}");
    }
}
