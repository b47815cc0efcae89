//! The table `benchruns` of ybio, read from its database.

use jiff::Timestamp;

use super::error::ImportError;
use super::format::Format;
use super::found::{FoundServer, ImportSource};
use super::imports::Imports;
use super::settings::Settings;
use super::ybio::{self, Row};
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::units::sql::identifier;
use crate::workload::fill;

const BENCHRUNS: &str = include_str!("../../sql/import/benchruns.sql");

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
    let server = FoundServer {
        flavor: connection.dialect().flavor(),
        version: connection.server_version().to_owned(),
        version_text: connection.query_value("select version()")?.unwrap_or_default(),
        address: connection.address().to_owned(),
        database: conninfo.database.clone(),
    };
    let name = "benchruns";
    let mut found = Vec::new();
    let sql = benchruns_sql(&mut connection)?;
    let rows = connection.query(&sql)?;
    for (line, row) in (1..).zip(rows) {
        let json = row.into_iter().next().flatten().unwrap_or_default();
        let run = row_of(&json).and_then(|row| ybio::run(&row, name));
        let run = run.map_err(|reason| ImportError::line(name, line, reason))?;
        found.extend(run.map(|run| super::found::Found { server: server.clone(), ..run }));
    }
    let mut imports = Imports::default();
    let origin = ImportSource { format: Format::Ybio, files: &[], modified: None, now };
    imports.add(found, &origin, settings)?;
    Ok(imports)
}

/// Returns the query for the table that the search path of the role finds.
fn benchruns_sql(connection: &mut Connection) -> Result<String, ConnectionError> {
    let sql = "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                where c.relname = 'benchruns' and c.relkind in ('r', 'p')";
    let found: Vec<String> = connection.query(sql)?.into_iter().flatten().flatten().collect();
    let path = connection.schemas_of_role()?;
    let schema = path.iter().find(|schema| found.contains(schema)).or(path.first());
    Ok(fill(BENCHRUNS, &[("schema", &identifier(schema.map_or("public", String::as_str)))]))
}

/// Returns the values of a row, which has one JSON object of texts.
fn row_of(json: &str) -> Result<Row, String> {
    let values: std::collections::BTreeMap<String, Option<String>> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok(values.into_iter().filter_map(|(column, value)| Some((column, value?))).collect())
}
