//! The table `benchruns` of ybio, read from its database.

use jiff::Timestamp;

use super::error::ImportError;
use super::format::Format;
use super::found::{FoundServer, Origin};
use super::imports::Imports;
use super::settings::Settings;
use super::ybio::{self, Row};
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection};

const BENCHRUNS: &str = include_str!("../../../../sql/import/benchruns.sql");

/// Returns the runs of the table `benchruns` in the search path of a database. `now` is the time of the import.
///
/// # Errors
/// [`ImportError::Database`] if the table cannot be read, [`ImportError::Line`] with the number of the row.
pub fn ybio_runs(
    conninfo: &ConnInfo,
    settings: &Settings,
    now: Timestamp,
    interrupt: &Interrupt,
) -> Result<Imports, ImportError> {
    let mut connection = Connection::open(conninfo, interrupt)?;
    let version =
        connection.session_info().parameter("server_version").unwrap_or_default().to_owned();
    let server = FoundServer {
        version,
        version_text: connection.query_value("select version()")?.unwrap_or_default(),
        address: connection.address().to_owned(),
        database: conninfo.database.clone(),
    };
    let name = "benchruns";
    let mut found = Vec::new();
    for (line, row) in (1..).zip(connection.query(BENCHRUNS)?) {
        let json = row.into_iter().next().flatten().unwrap_or_default();
        let run = row_of(&json).and_then(|row| ybio::run(&row, name));
        let run = run.map_err(|reason| ImportError::line(name, line, reason))?;
        found.extend(run.map(|run| super::found::Found { server: server.clone(), ..run }));
    }
    let mut imports = Imports::default();
    let origin = Origin { format: Format::Ybio, files: &[], modified: None, now };
    imports.add(found, &origin, settings)?;
    Ok(imports)
}

/// Returns the values of a row, which has one JSON object of texts.
fn row_of(json: &str) -> Result<Row, String> {
    let values: std::collections::BTreeMap<String, Option<String>> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok(values.into_iter().filter_map(|(column, value)| Some((column, value?))).collect())
}
