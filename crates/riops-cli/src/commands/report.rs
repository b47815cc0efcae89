//! `riops report`: writes stored runs as an HTML page, their charts as images, or their summary as Markdown.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use riops::experiment::stored_study;
use riops::record::Record;
use riops::report::{self, Image, Rendered, experiment};
use riops::store::{RunFilter, Store};
use riops::study::evaluation::StudyView;
use riops::study::tag;
use riops::units::format;

use crate::args::output::Output;
use crate::args::{FilterOptions, Report};
use crate::experiment::results::rendered;
use crate::failure::UsageError;
use crate::output::Outputs;
use crate::stored;
use crate::ui::Ui;

/// Maximum number of runs in a page: more belong into a table or a history.
const RUNS_MAX: usize = 50;

/// Runs, and the text that selects them.
type Selection = (String, Vec<Record>);

/// Writes the specified runs to files or to standard output.
pub(super) fn write(options: &Report, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let selections = select(&store, &options.runs)?;
    let count: usize = selections.iter().map(|(_, runs)| runs.len()).sum();
    if count > RUNS_MAX {
        bail!("{count} runs were selected, more than the {RUNS_MAX} of a report");
    }
    let study = experiment_of(&store, &selections)?;
    let comparison = if study.is_none() { report::comparison_of(&selections) } else { None };
    let records: Vec<Record> = selections.into_iter().flat_map(|(_, runs)| runs).collect();
    if let Some(view) = &study {
        let id = format::short_id(&view.id);
        ui.notice(&format!("these runs belong to the experiment {id}, which is shown as a whole"));
    }
    let name = study
        .as_ref()
        .map_or_else(|| names(&records), |view| format::short_id(&view.id).to_owned());
    let mut outputs = options.outputs.clone();
    if outputs.output.is_empty() {
        let file = Some(PathBuf::from(format!("riops-{name}.html")));
        outputs.output.push(Output { form: "html".to_owned(), file });
    }
    Outputs::open(&outputs, None, ui)?.emit(|form, lines| {
        if let Some(view) = &study {
            return rendered(view, form, lines, &ui.given().store);
        }
        Ok(match form {
            "png" => Rendered::Images(images(&records)?),
            "markdown" => Rendered::Data(report::markdown(&records, comparison.as_ref())),
            _ => Rendered::Page(report::html(&records, comparison.as_ref())?),
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

fn images(records: &[Record]) -> Result<Vec<Image>> {
    let mut images = Vec::new();
    for record in records {
        images.extend(report::images(record)?);
    }
    Ok(images)
}

/// Returns the experiment to which all of several runs belong; `None` also if only its runs are stored here.
fn experiment_of(store: &Store, selections: &[Selection]) -> Result<Option<StudyView>> {
    let runs: Vec<&Record> = selections.iter().flat_map(|(_, runs)| runs).collect();
    let mut ids: Vec<_> = runs.iter().map(|run| run.tags.get(tag::EXPERIMENT)).collect();
    ids.dedup();
    match ids.as_slice() {
        [Some(id)] if runs.len() > 1 && store.experiment(id).is_ok() => {
            Ok(Some(experiment::view(&stored_study(store, id)?)))
        }
        _ => Ok(None),
    }
}

/// Returns the runs of each selection in the order of the command line, each run once.
pub(super) fn select(store: &Store, texts: &[String]) -> Result<Vec<Selection>> {
    let mut known = HashSet::new();
    let runs_of = |text: &String| -> Result<_> {
        let mut runs = store.select(text)?;
        runs.retain(|run| known.insert(run.id));
        Ok((text.clone(), runs))
    };
    texts.iter().map(runs_of).collect()
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

/// Returns the name of a file with these runs.
fn names(records: &[Record]) -> String {
    let short = records.first().map(short_id).unwrap_or_default();
    let more = if records.len() > 1 { "-and-more" } else { "" };
    format!("{short}{more}")
}

/// Returns the end of the id of a run, as shown by `runs list`.
fn short_id(record: &Record) -> String {
    format::short_id(&record.id.to_string()).to_owned()
}
