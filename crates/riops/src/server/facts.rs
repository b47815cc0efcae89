//! What the record keeps of the target: version, build, settings, where its data lie.

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;

use serde::Serialize;

use super::connection::{Connection, ConnectionError};
use super::flavor::Flavor;

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFacts {
    /// Which relative of PostgreSQL.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// `server_version`, as sent at connect.
    pub version: String,
    /// `version()`: with compiler and platform.
    pub version_text: String,
    /// Compiler flags, where the role may see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiler_flags: Option<String>,
    /// Settings that differ from the built-in defaults, and those that every benchmark is read
    /// by; with their units.
    pub settings: BTreeMap<String, String>,
    /// The data folder, where the role may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_directory: Option<PathBuf>,
}

/// Settings by which every figure is read, whether somebody changed them or not.
const SETTINGS_SQL: &str = include_str!("../../../../sql/target/settings.sql");

impl ServerFacts {
    /// Asks the server. What the role may not see is left out.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection breaks or `version()` cannot be asked.
    pub fn read(connection: &mut Connection) -> Result<Self, ConnectionError> {
        let version =
            connection.greeting().parameter("server_version").unwrap_or("unknown").to_owned();
        let version_text = connection.query_value("select version()")?.unwrap_or_default();
        let compiler_flags = optional(
            connection.query_value("select setting from pg_config where name = 'CFLAGS'"),
        )?;
        let data_directory =
            optional(connection.query_value("show data_directory"))?.map(PathBuf::from);
        let settings = connection
            .query(SETTINGS_SQL)?
            .into_iter()
            .filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(name), Some(value)]) => Some((name, value)),
                _ => None,
            })
            .collect();
        Ok(Self {
            flavor: Flavor::from_server_version(&version),
            version,
            version_text,
            compiler_flags,
            settings,
            data_directory,
        })
    }
}

/// Whether the server itself runs on this machine, by the address at which it was reached in the
/// end: a proxy in between has another.
///
/// # Errors
/// [`ConnectionError`]
pub fn is_on_this_machine(connection: &mut Connection) -> Result<bool, ConnectionError> {
    let address = optional(connection.query_value("select host(inet_server_addr())"))?;
    Ok(match address.and_then(|text| text.parse::<IpAddr>().ok()) {
        // A socket of this machine.
        None => true,
        // Only an address of this machine can be bound to.
        Some(address) => address.is_loopback() || UdpSocket::bind((address, 0)).is_ok(),
    })
}

/// An error of the server (no permission, no such view) means: not known.
fn optional(
    answer: Result<Option<String>, ConnectionError>,
) -> Result<Option<String>, ConnectionError> {
    match answer {
        Err(ConnectionError::Server(_)) => Ok(None),
        other => other,
    }
}
