//! `riops runs`.

use std::process::ExitCode;

use anyhow::Result;
use riops::host::Interrupt;
use riops::report;
use riops::store::RunFilter;

use super::graph::draw_stored;
use super::run::{print, run_existing_plan};
use super::{export, import};
use crate::args::{Output, Runs};
use crate::stored;
use crate::ui::Ui;

/// Lists, shows or repeats stored runs.
pub(crate) fn run(action: &Runs, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    match action {
        Runs::List { limit, store, output } => {
            // `list` must not create the store.
            let store = stored::open_if_present(store, interrupt, ui)?;
            let filter = RunFilter { limit: Some(*limit), ..RunFilter::default() };
            let runs = store.map_or(Ok(Vec::new()), |store| store.list(&filter))?;
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
            let store = stored::open_existing(store, interrupt, ui)?;
            let record = store.find(run)?;
            let stored = format!("{} in {}", record.id, store.location());
            let form = report::form(&output.output, &record.plan)?;
            // The options that selected the server are not stored.
            print(&record, &stored, form, (graph_options, (None, ui.given().store.as_str())))?;
            draw_stored(&record, graph_options, ui)?;
        }
        Runs::Rerun { run, seed, again } => {
            let stored = stored::open_existing(&again.keep.store, interrupt, ui)?.find(run)?;
            let mut plan = stored.repeated_plan();
            plan.seed = seed.unwrap_or(plan.seed);
            let (code, record) = run_existing_plan(plan, again, (interrupt, ui))?;
            for difference in record.iter().flat_map(|now| report::differences(&stored, now)) {
                ui.notice(&difference);
            }
            return Ok(code);
        }
        Runs::Export(options) => return export::run(options, interrupt, ui),
        Runs::Import(options) => return import::run(options, interrupt, ui),
    }
    Ok(ExitCode::SUCCESS)
}
