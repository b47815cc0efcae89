//! `riops runs merge`: one run of those that several clients did at the same time.

use std::process::ExitCode;

use anyhow::Result;
use riops::plan::require_printable;
use riops::record::Record;
use riops::report;
use riops::run::{MergedPart, merge};
use uuid::Uuid;

use crate::args::{GraphOptions, MergeOptions};
use crate::failure::refuse;
use crate::measure::{exit_code_in, print};
use crate::stored;
use crate::ui::Ui;

/// Merges, stores and prints.
pub(super) fn run(options: &MergeOptions, ui: Ui) -> Result<ExitCode> {
    require_printable(options.label.iter())?;
    let store = stored::open_existing(&options.store, ui)?;
    let mut records: Vec<Record> = Vec::new();
    for text in &options.runs {
        let found = store.select(text)?;
        records.extend(found);
    }
    if records.len() < 2 {
        return refuse("nothing to merge: specify at least two runs, a label or a tag of several");
    }
    let parts = (0..).zip(records).map(|(number, record)| MergedPart::of(number, record)).collect();
    let mut merged = merge(Uuid::now_v7(), parts, None)?;
    if let Some(label) = &options.label {
        merged.label = Some(label.clone()).filter(|label| !label.is_empty());
    }
    let form = report::form(&options.output.output, &merged.plan)?;
    let stored = if options.dry_run {
        "no (--dry-run)".to_owned()
    } else {
        store.require_writable()?;
        store.save(&merged)?;
        format!("{} in {}", merged.id, store.location())
    };
    let hints = (None, Some(ui.given().store.as_str()).filter(|_| !options.dry_run));
    print(&merged, &stored, form, (&GraphOptions::default(), hints))?;
    Ok(ExitCode::from(exit_code_in(form, &merged)))
}
