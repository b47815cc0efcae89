//! `riops report`: writes stored runs as an HTML page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::host::Interrupt;
use riops::record::Record;
use riops::report;

use crate::args::Report;
use crate::stored;
use crate::ui::Ui;

/// Writes the page of the specified runs to a file or to standard output.
pub(crate) fn write(options: &Report, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, interrupt, ui)?;
    let records: Vec<Record> =
        options.runs.iter().map(|run| store.find(run)).collect::<Result<_, _>>()?;
    let page = report::html(&records)?;
    let file = options.file.clone().unwrap_or_else(|| default_file(&records));
    if file == Path::new("-") {
        crate::ui::print(&page)?;
    } else {
        std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
        ui.notice(&format!("wrote {}", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a file name with the last 8 characters of the first run's id, as shown by `runs list`.
fn default_file(records: &[Record]) -> PathBuf {
    let id = records.first().map(|record| record.id.to_string()).unwrap_or_default();
    let short = id.get(id.len().saturating_sub(8)..).unwrap_or(&id);
    let more = if records.len() > 1 { "-and-more" } else { "" };
    PathBuf::from(format!("riops-{short}{more}.html"))
}
