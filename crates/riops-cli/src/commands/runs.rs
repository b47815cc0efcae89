//! `riops runs`.

use std::process::ExitCode;

use anyhow::Result;
use riops::report;

use super::editing::Subject;
use super::graph::draw_stored;
use super::run::run_existing_plan;
use super::{editing, export, import, listing};
use crate::args::Runs;
use crate::measure::print;
use crate::stored;
use crate::ui::Ui;

/// Lists, shows, changes or repeats stored runs.
pub(crate) fn run(action: &Runs, ui: Ui) -> Result<ExitCode> {
    match action {
        Runs::List(options) => return listing::list(options, ui),
        Runs::Tag(options) => return editing::tag(options, ui),
        Runs::Note(options) => return editing::note(Subject::Run, options, ui),
        Runs::Ack(options) => return editing::acknowledge(options, ui),
        Runs::Rm(options) => return editing::remove(options, ui),
        Runs::Show { run, store, output, graph_options } => {
            let store = stored::open_existing(store, ui)?;
            let record = store.find(run)?;
            let stored = format!("{} in {}", record.id, store.location());
            let form = report::form(&output.output, &record.plan)?;
            // The options that selected the server are not stored.
            let options = (None, Some(ui.given().store.as_str()));
            print(&record, &stored, form, (graph_options, options))?;
            draw_stored(&record, graph_options, ui)?;
        }
        Runs::History(options) => return super::history::run(options, ui),
        Runs::Rerun { run, seed, again } => {
            let stored = stored::open_existing(&again.keep.store, ui)?.find(run)?;
            let mut plan = stored.repeated_plan();
            plan.seed = seed.unwrap_or(plan.seed);
            let (code, record) = run_existing_plan(plan, again, Some(&stored), ui)?;
            for difference in record
                .iter()
                .flat_map(|now| riops::experiment::comparison::differences(&stored, now))
            {
                ui.notice(&difference);
            }
            return Ok(code);
        }
        Runs::Merge(options) => return super::merge::run(options, ui),
        Runs::Export(options) => return export::run(options, ui),
        Runs::Import(options) => return import::run(options, ui),
    }
    Ok(ExitCode::SUCCESS)
}
