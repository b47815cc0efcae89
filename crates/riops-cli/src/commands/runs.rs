//! `riops runs`.

use std::process::ExitCode;

use anyhow::Result;
use riops::comparison::differences;
use riops::experiment::stored_study;
use riops::report::{self, Detail, Extras, Lines, Rendered, runs_csv, runs_table};
use riops::session::REPEAT_TAG;
use riops::store::{self, RunFilter};
use riops::study::tag;
use riops::summary::run_lines;
use riops::units::format::number_of;
use riops::units::text::json_text;

use super::editing::Subject;
use super::files::draw_stored;
use super::report::filter;
use super::run::run_existing_plan;
use super::{compare, editing, exchange};
use crate::args::{AnswerOptions, LastOptions, ListOptions, OutputOptions, Runs};
use crate::experiment::results::show;
use crate::measure::{Forms, RecordText, print};
use crate::output::{self, Outputs, detail};
use crate::stored;
use crate::ui::Ui;

/// Lists, shows, changes or repeats stored runs.
pub(super) fn run(action: &Runs, ui: Ui) -> Result<ExitCode> {
    match action {
        Runs::List(options) => list(options, ui),
        Runs::Tag(options) => editing::tag(options, ui),
        Runs::Note(options) => editing::note(Subject::Run, options, ui),
        Runs::Ack(options) => editing::acknowledge(options, ui),
        Runs::Rm(options) => editing::remove(options, ui),
        Runs::Show { run, store, outputs, graph_options } => {
            let store = stored::open_existing(store, ui)?;
            let record = store.find(run)?;
            let stored = format!("{} in {}", record.id, store.location());
            // The options that selected the server are not stored.
            let store = Some(ui.given().store.as_str());
            let options = RecordText { graph_options, server: None, store };
            let forms = Forms::open(outputs, Detail::Everything, &record.plan, ui)?;
            print(&record, &stored, &forms, options, ui)?;
            draw_stored(&record, graph_options, ui)?;
            Ok(ExitCode::SUCCESS)
        }
        Runs::History(options) => compare::history(options, ui),
        Runs::Rerun { run, seed, again } => {
            let stored = stored::open_existing(&again.keep.store, ui)?.find(run)?;
            let mut plan = stored.repeated_plan();
            plan.seed = seed.unwrap_or(plan.seed);
            let (code, record) = run_existing_plan(plan, again, Some(&stored), ui)?;
            for difference in record.iter().flat_map(|now| differences(&stored, now)) {
                ui.notice(&difference);
            }
            Ok(code)
        }
        Runs::Merge(options) => exchange::merge(options, ui),
        Runs::Export(options) => exchange::export(options, ui),
        Runs::Import(options) => exchange::import(options, ui),
    }
}

/// Prints the answer of the last run, or its experiment.
pub(super) fn last(options: &LastOptions, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let record = store.find("last")?;
    if let Some(id) = record.tags.get(tag::EXPERIMENT)
        && let Ok(study) = stored_study(&store, id)
    {
        let outputs = OutputOptions::default();
        let answer = AnswerOptions { details: options.details, outputs };
        show(&study, Outputs::open_answer(&answer, ui)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !options.details
        && let Some(name) = record.tags.get(REPEAT_TAG)
    {
        let tag = format!("{REPEAT_TAG}={name}");
        let records = store.records(&store.select_keys(&tag)?)?;
        let document = report::repeats_document(&records, &tag, &ui.given().store);
        return crate::ui::print_done(crate::ui::text(&document).trim_start_matches('\n'));
    }
    let stored = format!("{} in {}", record.id, store.location());
    let lines = Lines { detail: detail(options.details, ui), ..crate::ui::output_lines() };
    let extras = Extras::new(&stored, lines).with_options(None, Some(ui.given().store.as_str()));
    let form = report::form("text", &record.plan)?;
    output::print(&(form.print)(&record, &extras)?, ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the runs that match the filter, or their stages. Does not create the store.
fn list(options: &ListOptions, ui: Ui) -> Result<ExitCode> {
    let sort = options.sort.unwrap_or_default();
    let filter = RunFilter { sort, limit: Some(options.limit), ..filter(&options.filter)? };
    let location = stored::location(&options.store, ui)?;
    let (mut runs, mut stages, mut all) = (Vec::new(), None, 0);
    if let Some(store) = store::open_existing(&location, ui.interrupt)? {
        runs = store.list(&filter)?;
        all = store.count(&filter)?;
        let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
        stages = options.stages.then(|| store.stages(&ids)).transpose()?;
    } else {
        ui.notice(&format!("there is no store yet: {location}"));
    }
    let lines = run_lines(&runs, stages.as_deref(), sort);
    let is_filtered = filter != RunFilter { sort, limit: filter.limit, ..RunFilter::default() };
    Outputs::open(&options.outputs, Some("text"), ui)?.emit(|form, width| {
        Ok(match form {
            "json" => Rendered::Data(json_text(&lines)?),
            "csv" => Rendered::Data(runs_csv(&lines)?),
            _ if lines.is_empty() && is_filtered => {
                Rendered::Text("no stored run matches the filter\n".to_owned())
            }
            _ if lines.is_empty() => {
                Rendered::Text("no stored runs; start one with `riops run rows`\n".to_owned())
            }
            _ => Rendered::Data(runs_table(&lines, width.columns)),
        })
    })?;
    let shown = runs.len() as u64;
    if shown < all {
        ui.notice(&format!("{shown} of {} (--limit)", number_of(all, "run")));
    }
    Ok(ExitCode::SUCCESS)
}
