//! `riops verify`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::{Access, Needs};
use riops::report;
use riops::run::{History, NoHistory, verify};

use crate::args::Verify;
use crate::failure::NOT_VALID;
use crate::stored;
use crate::target::Target;
use crate::ui::Ui;

/// Checks the data and prints each check. The exit code is [`NOT_VALID`] if a check failed or something cannot be
/// verified.
pub(crate) fn run(command: &Verify, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let store = stored::open_if_present(&options.store, ui)?;
    let target = Target::open(&options.target, ui)?;
    let history: &dyn History = store.as_ref().map_or(&NoHistory, |store| store);
    let access = Access { dataset: name, needs: Needs::Read, schema: None };
    let checks = verify(name, &target.server(), ui.interrupt, history, &mut |text| ui.notice(text))
        .map_err(|error| target.with_grants(error, access))?;
    target.close()?;
    crate::ui::print(&crate::ui::wrapped(&report::checks_text(&checks)))?;
    let all_passed = checks.iter().all(|check| check.held && !check.unknown);
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}
