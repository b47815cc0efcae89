//! `riops cleanup`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::cleanup;
use riops::host::Interrupt;
use riops::report;
use riops::run::RunError;

use crate::args::Cleanup;
use crate::target::Target;
use crate::ui::Ui;

/// Drops the dataset and prints what was dropped.
pub(crate) fn run(command: &Cleanup, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let target = Target::open(options, interrupt, ui)?;
    target.announce(ui);
    let dropped = cleanup(name, &target.server(), interrupt, &mut |text| ui.notice(text))
        .map_err(RunError::from)?;
    target.close()?;
    for database in &dropped.foreign_databases {
        ui.notice(&format!(
            "database \"{database}\" was not dropped: it does not have the comment of riops"
        ));
    }
    crate::ui::print(&report::dropped_text(name, &dropped))?;
    Ok(ExitCode::SUCCESS)
}
