//! `riops cleanup`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use riops::dataset::{cleanup, sysbench};
use riops::report;
use riops::run::RunError;

use crate::args::Cleanup;
use crate::target::Target;
use crate::ui::Ui;

/// Drops the dataset and prints what was dropped.
pub(crate) fn run(command: &Cleanup, ui: Ui) -> Result<ExitCode> {
    let (name, options) = command.named();
    let target = Target::open(options, ui)?;
    let dropped = cleanup(name, &target.server(), ui.interrupt, &mut |text| ui.notice(text))
        .map_err(RunError::from)?;
    let schema = match command {
        Cleanup::Oltp(options) => options.schema.as_deref(),
        _ => None,
    };
    let remaining = match schema {
        Some(schema) => sysbench::foreign_tables(&target.server(), schema, ui.interrupt)
            .map_err(RunError::from)?,
        None => Vec::new(),
    };
    target.close()?;
    for database in &dropped.foreign_databases {
        ui.notice(&format!(
            "database \"{database}\" was not dropped: it does not have the comment of riops"
        ));
    }
    crate::ui::print(&report::dropped_text(name, &dropped))?;
    if !remaining.is_empty() {
        bail!(
            "riops did not create these tables and did not drop them: {}; drop them with the tool that created them",
            remaining.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}
