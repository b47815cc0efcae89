//! `riops verify`.

use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;
use riops::report;
use riops::run::{History, NoHistory, verify};
use riops::store::{SqliteStore, default_path};

use crate::args::Verify;
use crate::failure::NOT_VALID;
use crate::target::Target;
use crate::ui::Ui;

/// Checks the data and prints each check. The exit code is [`NOT_VALID`] if a check failed.
pub(crate) fn run(command: &Verify, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let path = options.store.store.clone().unwrap_or_else(default_path);
    let store = path.exists().then(|| SqliteStore::open(&path)).transpose()?;
    let target = Target::open(&options.target, interrupt, ui)?;
    target.announce(ui);
    let history: &dyn History = store.as_ref().map_or(&NoHistory, |store| store);
    let checks = verify(name, &target.server(), interrupt, history)?;
    target.close()?;
    crate::ui::print(&crate::ui::wrapped(&report::checks_text(&checks)))?;
    let all_passed = checks.iter().all(|check| check.held);
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}
