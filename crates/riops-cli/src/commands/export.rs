//! `riops runs export`.

use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;
use riops::record::Record;
use riops::report::export::export;

use crate::args::Export;
use crate::stored;
use crate::ui::Ui;

/// Writes the selected runs to a file or to standard output.
pub(crate) fn run(options: &Export, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let format = options.format()?;
    let store = stored::open_existing(&options.store, interrupt, ui)?;
    let mut records: Vec<Record> = Vec::new();
    for run in &options.runs {
        for record in store.select(run)? {
            if records.iter().all(|known| known.id != record.id) {
                records.push(record);
            }
        }
    }
    crate::file::write(&options.file, &export(&records, format)?, ui)?;
    Ok(ExitCode::SUCCESS)
}
