//! `riops cleanup`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::database::{drop_leftovers, lock};
use riops::dataset::{DatasetError, Registry};
use riops::host::Interrupt;
use riops::server::Connection;
use riops::workload::cbc::{NAME, session_sql};

use crate::args::TargetOptions;
use crate::target::Target;
use crate::ui::Ui;

/// Drops what `cbc` has made: its database, and its table in the schema `riops`.
pub(crate) fn cbc(options: &TargetOptions, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let target = Target::open(options, interrupt, ui)?;
    target.announce(ui);
    target.require_own_sessions(interrupt)?;
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    control.execute(&session_sql())?;
    lock(&mut control)?;
    // One of somebody else's does not keep the table in the schema from being dropped.
    let dropped = drop_leftovers(&mut control);
    let mut registry = Registry::new(&mut control, NAME);
    registry.lock(true)?;
    let tables = registry.drop_dataset()?;
    registry.drop_registry_if_empty()?;
    drop(control);
    target.close()?;
    let database = match dropped {
        Err(DatasetError::ForeignDatabase(name)) if !tables.is_empty() => {
            ui.notice(&format!("the database {name} was not made by riops, and stays"));
            false
        }
        other => other?,
    };
    crate::ui::print(match (database, tables.is_empty()) {
        (false, true) => "there was nothing of the workload cbc: nothing dropped\n",
        (true, true) => "dropped the database riops_cbc\n",
        (false, false) => "dropped 1 table\n",
        (true, false) => "dropped the database riops_cbc and 1 table\n",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Drops the dataset and says what was dropped.
pub(crate) fn cleanup(
    workload: &'static str,
    options: &TargetOptions,
    interrupt: &Interrupt,
    ui: Ui,
) -> Result<ExitCode> {
    let target = Target::open(options, interrupt, ui)?;
    target.announce(ui);
    target.require_own_sessions(interrupt)?;
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    let mut registry = Registry::new(&mut control, workload);
    registry.lock(true)?;
    let adopted = registry.entry()?.and_then(|entry| {
        let of_others = entry.parameters.get("adopted") == Some(&true.into());
        of_others.then(|| {
            entry.parameters.get("schema").and_then(|name| name.as_str()).map(str::to_owned)
        })?
    });
    let dropped = registry.drop_dataset()?;
    registry.drop_registry_if_empty()?;
    drop(control);
    target.close()?;
    if let Some(schema) = adopted {
        return crate::ui::print(&format!(
            "forgot the tables in schema {schema}: riops has not made them, and they stay as they are\n"
        ))
        .map(|()| ExitCode::SUCCESS);
    }
    crate::ui::print(&match dropped.len() {
        0 => format!("there was no dataset for the workload {workload}: nothing dropped\n"),
        1 => "dropped 1 table\n".to_owned(),
        count => format!("dropped {count} tables\n"),
    })?;
    Ok(ExitCode::SUCCESS)
}
