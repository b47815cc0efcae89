//! `riops runs export`.

use std::process::ExitCode;

use anyhow::Result;
use riops::record::Record;
use riops::report::export::export;
use riops::store::{Store, StoreError, all_runs};

use crate::args::Export;
use crate::stored;
use crate::ui::Ui;

/// Writes the selected runs to a file or to standard output.
pub(crate) fn run(options: &Export, ui: Ui) -> Result<ExitCode> {
    let format = options.format()?;
    let store = stored::open_existing(&options.store, ui)?;
    let records = if options.all { all_runs(&store)? } else { selected(&store, &options.runs)? };
    crate::file::write(&options.file, &export(&records, format)?, ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the selected runs, each once.
fn selected(store: &Store, runs: &[String]) -> Result<Vec<Record>, StoreError> {
    let mut records: Vec<Record> = Vec::new();
    for run in runs {
        for record in store.select(run)? {
            if records.iter().all(|known| known.id != record.id) {
                records.push(record);
            }
        }
    }
    Ok(records)
}
