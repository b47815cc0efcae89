//! `riops report`: kept runs as a page.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use riops::report;
use riops::store::{Record, SqliteStore, StoreError, default_path};

use crate::args::Report;
use crate::ui::Ui;

/// Writes the page of the runs that were named.
pub(crate) fn write(options: &Report, ui: Ui) -> Result<ExitCode> {
    let path = options.store.store.clone().unwrap_or_else(default_path);
    if !path.exists() {
        return Err(StoreError::Empty(path).into());
    }
    let store = SqliteStore::open(&path)?;
    let records: Vec<Record> =
        options.runs.iter().map(|run| store.find(run)).collect::<Result<_, _>>()?;
    let page = report::html(&records)?;
    if options.file == Path::new("-") {
        crate::ui::print(&page)?;
    } else {
        std::fs::write(&options.file, page)
            .with_context(|| format!("cannot write {}", options.file.display()))?;
        ui.notice(&format!("written: {}", options.file.display()));
    }
    Ok(ExitCode::SUCCESS)
}
