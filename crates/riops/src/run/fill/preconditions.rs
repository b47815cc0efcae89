//! Preconditions of a load: the server can read the files, and no loaded table would be lost.

use super::super::error::RunError;
use super::super::find::plan_of;
use crate::dataset::{DatasetError, Registry, State};
use crate::plan::{LoadDataset, LoadRun};
use crate::server::{Connection, ConnectionError, Server};
use crate::units::count;
use crate::units::sql::literal;
use crate::workload::fill;
use crate::workload::load::{FILE_RIGHTS, NAME};

/// Fails if a table exists that must not be dropped.
pub(super) fn require_no_loaded_table(
    registry: &mut Registry<'_>,
    work: &LoadRun,
    dataset: &LoadDataset,
) -> Result<(), RunError> {
    let name = &dataset.table_name;
    let full = format!("riops.{name}");
    if registry.owns(&full)? == Some(false) {
        return Err(DatasetError::Foreign(full).into());
    }
    let Some(entry) = registry.entry()? else {
        return Ok(());
    };
    let found = plan_of(NAME, &entry)?;
    let Some(found) = found.get::<LoadDataset>() else {
        return Ok(());
    };
    let table = &found.table_name;
    let has_rows = registry.owns(&format!("riops.{table}"))? == Some(true)
        && registry
            .connection()
            .query_value(&format!("select 1 from riops.{table} limit 1"))?
            .is_some();
    if work.drop || !has_rows {
        return Ok(());
    }
    let contents = match entry.state {
        State::Complete => format!("contains {} rows", count(found.rows)),
        State::Loading => "contains rows of an interrupted load".to_owned(),
    };
    Err(RunError::Precondition(format!(
        "table \"riops.{table}\" already {contents}, and loading the same ids would fail with duplicate keys: drop it with --drop or `riops cleanup load`, or check it with `riops verify load`"
    )))
}

/// Fails if the server cannot read the files.
pub(super) fn require_files(
    control: &mut Connection,
    files: &[String],
    server: &Server,
) -> Result<(), RunError> {
    if files.is_empty() {
        return Ok(());
    }
    let is_allowed = control.query_value(&fill(FILE_RIGHTS, &[]))?;
    if is_allowed.as_deref() != Some("t") {
        let role = control.query_value("select quote_ident(current_user)")?.unwrap_or_default();
        return Err(RunError::Precondition(format!(
            "role {role} lacks the privilege to read files on the server, which --method copy-file requires: have a superuser run: GRANT pg_read_server_files TO {role}"
        )));
    }
    files.iter().try_for_each(|file| require_file(control, file, server))
}

/// Fails if the server cannot read the file. The privilege to read files does not include the functions
/// that check for their existence, so this copies the file into a table with one column, which stops at the
/// first line.
fn require_file(control: &mut Connection, file: &str, server: &Server) -> Result<(), RunError> {
    // On YugabyteDB, the table of the previous file remains after the rollback.
    control.execute("create temporary table if not exists riops_first_line (line text)")?;
    control.execute("begin")?;
    let copy = format!("copy pg_temp.riops_first_line from {} with (format csv)", literal(file));
    let read = control.execute(&copy);
    control.execute("rollback")?;
    match read {
        Err(ConnectionError::Server(error)) => match error.sqlstate.as_str() {
            // Extra data after the last expected column: a file with rows.
            "22P04" => Ok(()),
            "58P01" => Err(missing_file(file, server)),
            "42501" => Err(RunError::Precondition(format!(
                "the server cannot read file \"{file}\": grant its operating-system user read permission on the file and search permission on its directories (chmod): {}",
                error.message
            ))),
            _ => Err(ConnectionError::Server(error).into()),
        },
        // An empty file, if there are more sessions than rows.
        other => Ok(other?),
    }
}

pub(super) fn missing_file(file: &str, server: &Server) -> RunError {
    let place = if server.conninfo.is_local() { "" } else { " on the server host" };
    RunError::Precondition(format!(
        "file \"{file}\" does not exist on the server: write it{place} with riops generate csv, with the same --rows, --sessions and --field-length, and set its directory with --dir"
    ))
}
