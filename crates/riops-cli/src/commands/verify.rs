//! `riops verify`.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::verify;
use riops::dataset::{DatasetError, Entry, Registry};
use riops::host::Interrupt;
use riops::plan::{LoadRun, OltpRun, RowsDataset, RowsRun};
use riops::server::Connection;
use riops::store::{SqliteStore, default_path};
use riops::workload::load::{self, Load};
use riops::workload::oltp::{self, Oltp};
use riops::workload::rows::{self, Rows};

use super::prepare::{load_dataset_of, oltp_dataset_of};
use super::run::Found;
use super::settle::settle_open_runs;
use crate::args::VerifyOptions;
use crate::failure::NOT_VALID;
use crate::target::Target;
use crate::ui::Ui;

/// Checks the data of `rows`.
pub(crate) fn rows(options: &VerifyOptions, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    check(rows::NAME, options, interrupt, ui, &|entry| {
        let dataset: RowsDataset = serde_json::from_value(entry.parameters.clone())
            .map_err(|error| DatasetError::Damaged(error.to_string()))?;
        Ok(Box::new(Rows::new(dataset, RowsRun::default())))
    })
}

/// Checks the table of `load` and `point`, also where its load did not end.
pub(crate) fn load(options: &VerifyOptions, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    check(load::NAME, options, interrupt, ui, &|entry| {
        let dataset = load_dataset_of(entry.parameters.clone())?;
        Ok(Box::new(Load::new(dataset, LoadRun::default())))
    })
}

/// Checks sysbench's tables.
pub(crate) fn oltp(options: &VerifyOptions, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    check(oltp::NAME, options, interrupt, ui, &|entry| {
        let dataset = oltp_dataset_of(entry.parameters.clone())?;
        Ok(Box::new(Oltp::new(dataset, OltpRun::default())))
    })
}

/// Checks the data, prints each check, and says by the exit code whether all of them held.
fn check(
    name: &'static str,
    options: &VerifyOptions,
    interrupt: &Interrupt,
    ui: Ui,
    workload_on: &dyn Fn(&Entry) -> Found,
) -> Result<ExitCode> {
    let target = Target::open(&options.target, interrupt, ui)?;
    target.announce(ui);
    target.require_own_sessions(interrupt)?;
    let mut control = Connection::open(&target.conninfo, interrupt)?;
    let mut registry = Registry::new(&mut control, name);
    // Nobody may change the rows between the count and the sum.
    registry.lock(true)?;
    let entry = registry.entry()?.ok_or_else(|| DatasetError::Missing {
        workload: name,
        target: target.conninfo.to_string(),
    })?;
    let workload = workload_on(&entry)?;
    registry.require(&workload.table_names(), workload.is_adopted())?;
    let path = options.store.store.clone().unwrap_or_else(default_path);
    let store = path.exists().then(|| SqliteStore::open(&path)).transpose()?;
    settle_open_runs(&mut registry, &entry, store.as_ref())?;
    let checks = verify(&mut registry, workload.as_ref(), &entry)?;
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
