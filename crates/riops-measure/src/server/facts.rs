//! Facts about the target for the record: version, build, settings and data directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::capabilities::optional;
use super::connection::{Connection, ConnectionError};
use riops_model::record::diagnosis::ServerFacts;
use riops_model::units::secret::redacted;

/// Reads the settings that differ from the defaults or affect every benchmark.
const SETTINGS_SQL: &str = include_str!("../../sql/target/settings.sql");

/// The size of the library of the JIT compiler; NULL if the file does not exist.
const JIT_FILE: &str = "select (pg_stat_file(setting || '/' || current_setting('jit_provider') || '.so', true)).size \
     from pg_config where name = 'PKGLIBDIR'";

/// Returns whether the library of the JIT compiler is installed; true if this is unknown.
fn has_jit_library(connection: &mut Connection) -> Result<bool, ConnectionError> {
    if optional(connection.query_value(JIT_FILE))?.flatten().is_some() {
        return Ok(true);
    }
    // If the file exists, this loads it into the server process, which takes 20 to 80 ms.
    let answer = optional(connection.query_value("select pg_jit_available()"))?.flatten();
    Ok(answer.as_deref() != Some("f"))
}

/// Queries the server. Facts that it does not have, or that the role has no privilege to read, are omitted.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn server_facts(connection: &mut Connection) -> Result<ServerFacts, ConnectionError> {
    let mut value = |sql| optional(connection.query_value(sql)).map(Option::flatten);
    let version_text = value("select version()")?.unwrap_or_default();
    let compiler_flags = value("select setting from pg_config where name = 'CFLAGS'")?;
    let data_directory = value("show data_directory")?.map(PathBuf::from);
    let (mut settings, mut setting_defaults) = (BTreeMap::new(), BTreeMap::new());
    for row in optional(connection.query(SETTINGS_SQL))?.unwrap_or_default() {
        if let [Some(name), Some(value), default @ ..] = row.as_slice() {
            settings.insert(name.clone(), redacted(value));
            if let [Some(default)] = default {
                setting_defaults.insert(name.clone(), default.clone());
            }
        }
    }
    if let Some(jit) = settings.get_mut("jit").filter(|jit| *jit == "on")
        && !has_jit_library(connection)?
    {
        // No statement is compiled.
        "on (not available)".clone_into(jit);
    }
    let version = connection.server_version();
    Ok(ServerFacts {
        flavor: connection.dialect().flavor(),
        version: if version.is_empty() { "unknown" } else { version }.to_owned(),
        version_text,
        compiler_flags,
        settings,
        setting_defaults,
        data_directory,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use riops_testkit::{FakeServer, PORT, Reply, Request};

    use super::*;
    use crate::host::Interrupt;
    use crate::server::ConnInfo;

    /// Returns the setting `jit` of a server that answers these two queries so, and whether it had to load the library.
    fn jit(file: Option<&str>, available: &'static str) -> (String, bool) {
        let row = |values: &[Option<&str>]| {
            let bytes = values.iter().map(|value| value.map(|value| value.as_bytes().to_vec()));
            Reply::Row(bytes.collect())
        };
        let size = row(&[file]);
        let queries = Arc::new(Mutex::new(String::new()));
        let noted = Arc::clone(&queries);
        let server = FakeServer::start(move |_, request| {
            let Request::Query(sql) = request else {
                return Reply::Done;
            };
            noted.lock().unwrap().push_str(sql);
            match sql {
                sql if sql.contains("pg_settings") => row(&[Some("jit"), Some("on"), Some("on")]),
                sql if sql.contains("pg_stat_file") => size.clone(),
                sql if sql.contains("pg_jit_available") => row(&[Some(available)]),
                _ => Reply::Done,
            }
        })
        .unwrap();
        let target = ConnInfo::unix(server.folder(), PORT, "riops", "test");
        let mut connection = Connection::open(&target, &Interrupt::new()).unwrap();
        let facts = server_facts(&mut connection).unwrap();
        let queries = queries.lock().unwrap();
        (facts.settings["jit"].clone(), queries.contains("pg_jit_available"))
    }

    #[test]
    fn the_library_of_the_jit_compiler_is_not_loaded_to_find_out_whether_it_exists() {
        assert_eq!(jit(Some("312456"), "t"), ("on".to_owned(), false));
        assert_eq!(jit(None, "f"), ("on (not available)".to_owned(), true));
        assert_eq!(jit(None, "t"), ("on".to_owned(), true), "no privilege to see the file");
    }
}
