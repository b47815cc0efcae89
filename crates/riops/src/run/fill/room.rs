//! What may stand in the way of a load: files that the server cannot read, a table that is filled.

use super::super::error::RunError;
use super::super::find::plan_of;
use crate::dataset::{DatasetError, Registry, State};
use crate::plan::{LoadDataset, LoadRun};
use crate::server::{Connection, ConnectionError, Server};
use crate::units::count;
use crate::workload::load::{LoadTable, NAME};

/// Fails where a table that must not be lost is in the way.
pub(super) fn require_room(
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
    let what = match entry.state {
        State::Complete => format!("holds {} rows", count(found.rows)),
        State::Loading => "holds what an interrupted load has left".to_owned(),
    };
    Err(RunError::Precondition(format!(
        "the table riops.{table} {what}, and a load of the same ids would only find duplicate keys: drop it first, with --drop or with riops cleanup load (riops verify load tells what is there)"
    )))
}

/// Fails where the server cannot read the files.
pub(super) fn require_files(
    control: &mut Connection,
    files: &[String],
    server: &Server,
) -> Result<(), RunError> {
    if files.is_empty() {
        return Ok(());
    }
    let may = control.query_value(&LoadTable::file_rights_sql())?;
    if may.as_deref() != Some("t") {
        let role = control.query_value("select quote_ident(current_user)")?.unwrap_or_default();
        return Err(RunError::Precondition(format!(
            "the role {role} may not read files of the server, as --method copy-file does: a superuser can allow it with: grant pg_read_server_files to {role}"
        )));
    }
    files.iter().try_for_each(|file| require_file(control, file, server))
}

/// Not every role that may read a file may ask whether it is there. So the server is asked to read it
/// into a table of one column: it gives up at the first line, or at once where there is no file.
fn require_file(control: &mut Connection, file: &str, server: &Server) -> Result<(), RunError> {
    let sql = format!(
        "begin; create temporary table riops_first_line (line text) on commit drop;
         copy riops_first_line from '{}' with (format csv)",
        file.replace('\'', "''")
    );
    let read = control.execute(&sql);
    control.execute("rollback")?;
    match read {
        Err(ConnectionError::Server(error)) => match error.sqlstate.as_str() {
            // More columns than one: a file of rows.
            "22P04" => Ok(()),
            "58P01" => Err(missing_file(file, server)),
            "42501" => Err(RunError::Precondition(format!(
                "the server cannot read {file}: let its user read the file, and go through the folders above it (chmod): {}",
                error.message
            ))),
            _ => Err(ConnectionError::Server(error).into()),
        },
        // A file without a line, where there are more sessions than rows.
        other => Ok(other?),
    }
}

pub(super) fn missing_file(file: &str, server: &Server) -> RunError {
    let place = if server.conninfo.is_local() { "" } else { " on the server's machine" };
    RunError::Precondition(format!(
        "the server has no file {file}: write it{place} with riops generate csv, with the same --rows, --sessions and --field-length, and name its folder with --dir"
    ))
}
