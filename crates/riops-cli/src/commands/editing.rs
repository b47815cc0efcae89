//! `riops runs tag` and `riops runs rm`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use riops::plan::{pairs, require_public};
use riops::record::Note;
use riops::report::runs_table;
use riops::store::{RunFilter, Store};
use riops::study::ACKNOWLEDGED;
use riops::summary::{RunSummary, Sort, run_lines};
use riops::units::text::one_line;

use crate::args::runs::{AckOptions, NoteOptions};
use crate::args::{RemoveOptions, TagOptions};
use crate::failure::refuse;
use crate::stored::{self, note_of};
use crate::terminal::{can_ask, confirm};
use crate::ui::Ui;

/// Sets and removes tags and the label of a run, and prints what it has then.
pub(super) fn tag(options: &TagOptions, ui: Ui) -> Result<ExitCode> {
    let TagOptions { run, set, remove, label, store } = options;
    if set.is_empty() && remove.is_empty() && label.is_none() {
        return refuse("nothing to change: specify KEY=VALUE, --remove KEY or --label TEXT");
    }
    let tags: BTreeMap<_, _> = set.iter().cloned().collect();
    require_public(label.iter().cloned().chain(pairs(&tags)))?;
    if let Some(key) = remove.iter().find(|key| tags.contains_key(*key)) {
        return refuse(format!("tag \"{key}\" is both set and removed"));
    }
    let store = stored::open_existing(store, ui)?;
    let id = store.id(run)?;
    let before = summary(&store, &id)?;
    if let Some(key) = remove.iter().find(|key| !before.tags.contains_key(*key)) {
        return refuse(format!("run {id} has no tag \"{key}\""));
    }
    if !tags.is_empty() || !remove.is_empty() {
        store.tag(&id, &tags, remove)?;
    }
    if let Some(label) = label {
        store.set_label(&id, Some(label.as_str()).filter(|label| !label.is_empty()))?;
    }
    let after = summary(&store, &id)?;
    let tags: Vec<_> = after.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let shown = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    crate::ui::print_done(&format!(
        "{id}: label {}, tags {}\n",
        one_line(&shown(after.label.as_deref().unwrap_or_default())),
        one_line(&shown(&tags.join(" ")))
    ))
}

/// Begins a new era of the history with a run.
pub(super) fn acknowledge(options: &AckOptions, ui: Ui) -> Result<ExitCode> {
    let note = note_of(&options.reason, options.author.as_deref())?;
    let store = stored::open_existing(&options.store, ui)?;
    let id = store.id(&options.run)?;
    let run = summary(&store, &id)?;
    if !run.valid || run.status != "done" {
        return refuse(format!("run {id} is not part of histories: it is not done, or not valid"));
    }
    let reason = note.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let done = format!("{id}: a new era: {}\n", one_line(&reason));
    store.tag(&id, &[(ACKNOWLEDGED.to_owned(), reason)].into(), &[])?;
    store.edit_notes(&id, &|notes| notes.push(note.clone()))?;
    crate::ui::print_done(&done)
}

/// Subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Run,
    Experiment,
}

/// Adds a note to a run or an experiment.
pub(super) fn note(subject: Subject, options: &NoteOptions, ui: Ui) -> Result<ExitCode> {
    let text = match options.text.as_str() {
        "-" => std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?,
        text => text.to_owned(),
    };
    let note = note_of(&text, options.author.as_deref())?;
    let store = stored::open_existing(&options.store, ui)?;
    let add = |notes: &mut Vec<Note>| notes.push(note.clone());
    let id = if subject == Subject::Run {
        let id = store.id(&options.subject)?;
        store.edit_notes(&id, &add)?;
        id
    } else {
        let id = store.experiment(&options.subject)?.id;
        store.edit_experiment_notes(&id, &add)?;
        id.to_string()
    };
    crate::ui::print_done(&format!("{id}: note by {}\n", one_line(&note.author)))
}

/// Removes runs after a confirmation, and prints which.
pub(super) fn remove(options: &RemoveOptions, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let mut runs: Vec<RunSummary> = Vec::new();
    // All are found before the first one is removed.
    for run in &options.runs {
        let id = store.id(run)?;
        if !runs.iter().any(|run| run.id == id) {
            runs.push(summary(&store, &id)?);
        }
    }
    let described = match runs.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    if !options.yes && can_ask() {
        let lines = run_lines(&runs, None, Sort::default());
        crate::ui::print(&runs_table(&lines, crate::ui::output_columns()))?;
    }
    let question = format!("Remove {described} from {}?", store.location());
    if !confirm(&question, options.yes, ui)? {
        return Ok(ExitCode::SUCCESS);
    }
    for run in &runs {
        store.remove(&run.id)?;
        let label = run.label.as_ref().map(|label| format!(", label {label}")).unwrap_or_default();
        let text = format!("removed {} ({}, {}{label})", run.id, run.title, run.started_at);
        crate::ui::print(&(one_line(&text) + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the line of a run in the list.
fn summary(store: &Store, id: &str) -> Result<RunSummary> {
    let filter = RunFilter { id: Some(id.to_owned()), ..RunFilter::default() };
    let run = store.list(&filter)?.into_iter().next();
    Ok(run.ok_or_else(|| riops::store::StoreError::NotFound(id.to_owned()))?)
}
