//! `riops runs list`.

use std::process::ExitCode;

use anyhow::Result;
use riops::report::{run_lines, runs_csv, runs_json, runs_table};
use riops::store::{self, RunFilter};

use crate::args::{FilterOptions, ListOptions, ListOutput};
use crate::failure::UsageError;
use crate::stored;
use crate::ui::Ui;

/// Prints the runs that match the filter, or their stages. Does not create the store.
pub(super) fn list(options: &ListOptions, ui: Ui) -> Result<ExitCode> {
    let sort = options.sort.unwrap_or_default();
    let filter = RunFilter { sort, limit: Some(options.limit), ..filter(&options.filter)? };
    let location = stored::location(&options.store, ui)?;
    let store = store::open_existing(&location, ui.interrupt)?;
    if store.is_none() {
        ui.notice(&format!("there is no store yet: {location}"));
    }
    let runs = store.as_ref().map_or(Ok(Vec::new()), |store| store.list(&filter))?;
    let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    let stages = match &store {
        Some(store) if options.stages => Some(store.stages(&ids)?),
        _ => None,
    };
    let lines = run_lines(&runs, stages.as_deref(), sort);
    let is_filtered = filter != RunFilter { sort, limit: filter.limit, ..RunFilter::default() };
    crate::ui::print_done(&match options.output {
        ListOutput::Text if lines.is_empty() && is_filtered => {
            "no stored run matches the filter\n".to_owned()
        }
        ListOutput::Text if lines.is_empty() => {
            ui.given().complete("no stored runs; start one with `riops run rows`\n")
        }
        ListOutput::Text => runs_table(&lines, crate::ui::output_columns()),
        ListOutput::Json => runs_json(&lines)?,
        ListOutput::Csv => runs_csv(&lines)?,
    })
}

/// Returns the filter of the options, with the default order and without a limit.
pub(super) fn filter(options: &FilterOptions) -> Result<RunFilter, UsageError> {
    if let (Some(since), Some(until)) = (options.since, options.until)
        && since >= until
    {
        return Err(UsageError(format!("--since {since} is not before --until {until}")));
    }
    Ok(RunFilter {
        workload: options.workload.clone(),
        label: options.label.clone(),
        tags: options.tag.clone(),
        facts: options.fact.clone(),
        since: options.since,
        until: options.until,
        valid: match (options.valid, options.invalid) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        ..RunFilter::default()
    })
}
