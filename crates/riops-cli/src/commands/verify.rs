//! `riops verify rows`.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use riops::plan::{RowsDataset, RowsRun};
use riops::store::{SqliteStore, default_path};
use riops::target::{Connection, Interrupt};
use riops::workload::Workload;
use riops::workload::dataset::{DatasetError, Registry, State};
use riops::workload::rows::{NAME, Rows};
use riops::workload::verify::verify;

use super::settle::settle_open_runs;
use crate::args::VerifyRows;
use crate::failure::NOT_VALID;
use crate::target::Target;
use crate::ui::Ui;

/// Checks the data, prints each check, and says by the exit code whether all of them held.
pub(crate) fn rows(options: &VerifyRows, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let target = Target::open(&options.target, interrupt, ui)?;
    target.announce(ui);
    target.require_own_sessions(interrupt)?;
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    let mut registry = Registry::new(&mut control, NAME);
    // Nobody may change the rows between the count and the sum.
    registry.lock(true)?;
    let entry = registry.entry()?.ok_or_else(|| DatasetError::Missing {
        workload: NAME,
        target: target.conninfo.to_string(),
    })?;
    if entry.state != State::Complete {
        return Err(DatasetError::Incomplete(NAME).into());
    }
    let dataset: RowsDataset = serde_json::from_value(entry.parameters.clone())
        .map_err(|error| DatasetError::Damaged(error.to_string()))?;
    let workload = Rows::new(dataset, RowsRun::default());
    registry.require(&workload.table_names())?;
    let path = options.store.store.clone().unwrap_or_else(default_path);
    let store = path.exists().then(|| SqliteStore::open(&path)).transpose()?;
    settle_open_runs(&mut registry, &entry, store.as_ref())?;
    let checks = verify(&mut registry, &workload, &entry)?;
    let mut text = String::new();
    for check in &checks {
        let verdict = if check.held { "ok    " } else { "WRONG " };
        let _ = writeln!(
            text,
            "{verdict} {}: expected {}, found {}",
            check.name, check.expected, check.found
        );
    }
    drop(control);
    target.close()?;
    crate::ui::print(&text)?;
    let all_held = checks.iter().all(|check| check.held);
    Ok(if all_held { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}
