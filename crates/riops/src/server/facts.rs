//! Facts about the target for the record: version, build, settings and data directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::capabilities::optional;
use super::connection::{Connection, ConnectionError};
use crate::record::Flavor;
use crate::units::secret::redacted;

/// Facts about a server, as reported by the server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFacts {
    /// Flavor of the server.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// `server_version`, as sent at connect.
    pub version: String,
    /// Result of `version()`, with compiler and platform.
    pub version_text: String,
    /// Compiler flags, if the role has the privilege to read them.
    pub compiler_flags: Option<String>,
    /// Settings that differ from the built-in defaults, and settings that affect every benchmark;
    /// with their units.
    pub settings: BTreeMap<String, String>,
    /// The defaults of these settings, as far as they have no unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub setting_defaults: BTreeMap<String, String>,
    /// Data directory, if the role has the privilege to read it.
    pub data_directory: Option<PathBuf>,
}

/// Reads the settings that differ from the defaults or affect every benchmark.
const SETTINGS_SQL: &str = include_str!("../../sql/target/settings.sql");

impl ServerFacts {
    /// Queries the server. Facts that it does not have, or that the role has no privilege to read, are omitted.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails.
    pub fn read(connection: &mut Connection) -> Result<Self, ConnectionError> {
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
            && optional(connection.query_value("select pg_jit_available()"))?.flatten().as_deref()
                == Some("f")
        {
            // The library is not installed: no statement is compiled.
            "on (not available)".clone_into(jit);
        }
        let version = connection.server_version();
        Ok(Self {
            flavor: connection.dialect().flavor(),
            version: if version.is_empty() { "unknown" } else { version }.to_owned(),
            version_text,
            compiler_flags,
            settings,
            setting_defaults,
            data_directory,
        })
    }
}
