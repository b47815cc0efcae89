//! `riops runs`.

use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;
use riops::report;
use riops::store::{SqliteStore, StoreError};

use super::graph::draw_stored;
use super::run::{print, run_existing_plan};
use crate::args::{Output, Runs, StoreOptions};
use crate::ui::Ui;

/// Lists, shows or repeats stored runs.
pub(crate) fn run(action: &Runs, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match action {
        Runs::List { limit, store, output } => {
            let path = store.path();
            // `list` must not create the file.
            let runs =
                if path.exists() { SqliteStore::open(&path)?.list(*limit)? } else { Vec::new() };
            crate::ui::print(&match output.output {
                Output::Text if runs.is_empty() => {
                    let text = "no stored runs; start one with `riops run rows`\n";
                    ui.given().complete(text)
                }
                Output::Text => report::runs_table(&runs, crate::ui::output_columns()),
                Output::Json => serde_json::to_string_pretty(&runs)? + "\n",
            })?;
        }
        Runs::Show { run, store, output, graph_options } => {
            let store = open_existing(store)?;
            let record = store.find(run)?;
            let stored = format!("{} in {}", record.id, store.path().display());
            let form = report::form(&output.output, &record.plan)?;
            // The options that selected the server are not stored.
            let options = (None, Some(ui.given().store.as_str()));
            print(&record, &stored, form, (graph_options, options))?;
            draw_stored(&record, graph_options, ui)?;
        }
        Runs::Rerun { run, seed, again } => {
            let stored = open_existing(&again.keep.store)?.find(run)?;
            let mut plan = stored.repeated_plan();
            plan.seed = seed.unwrap_or(plan.seed);
            let (code, record) = run_existing_plan(plan, again, Some(&stored), (interrupt, ui))?;
            for difference in record.iter().flat_map(|now| report::differences(&stored, now)) {
                ui.notice(&difference);
            }
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the store. Fails if the file does not exist.
fn open_existing(options: &StoreOptions) -> Result<SqliteStore> {
    let path = options.path();
    if !path.exists() {
        return Err(StoreError::Empty(path).into());
    }
    Ok(SqliteStore::open(&path)?)
}
