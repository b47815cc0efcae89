//! `riops runs import`, `riops runs export`, and `riops runs merge`: one run of those that several clients did at the same
//! time.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use riops::import::{self, Format, Imports, Input, Settings};
use riops::plan::{pairs, require_public};
use riops::record::Record;
use riops::report::Rendered;
use riops::report::export::{ExportFormat, export as exported};
use riops::run::{MergedPart, merge as merged_of};
use riops::server::ConnInfo;
use riops::store::all_runs;
use riops::units::text::one_line;
use uuid::Uuid;

use super::report::select;
use crate::args::{Export, GraphOptions, Import, MergeOptions};
use crate::failure::refuse;
use crate::measure::{Forms, RecordText, exit_code_in, print};
use crate::output::{Outputs, detail};
use crate::stored;
use crate::terminal::ask_if_missing;
use crate::ui::{self, Ui};

/// Stores the runs of files or of ybio's table.
pub(super) fn import(options: &Import, ui: Ui) -> Result<ExitCode> {
    let settings = Settings {
        format: options.from.0,
        label: options.label.clone(),
        tags: options.tag.iter().cloned().collect(),
        started_at: options.started_at,
        column_7: options.pgbench_column_7,
    };
    require_public(settings.label.iter().cloned().chain(pairs(&settings.tags)))?;
    let imports = imports(options, &settings, ui)?;
    for notice in &imports.notices {
        ui.notice(notice);
    }
    let store = stored::open(&options.store, ui)?;
    let stored = import::store(&store, &imports.records)?;
    for id in &stored.known {
        ui.notice(&format!("run {id} is stored already"));
    }
    let line = |id: &String| {
        let record = imports.records.iter().find(|record| record.id.to_string() == *id);
        let title = record.map(|record| record.plan.work.spec().title()).unwrap_or_default();
        format!("stored {id} ({}) in {}\n", one_line(&title), store.location())
    };
    let lines: String = stored.ids.iter().map(line).collect();
    ui::print_done(&lines)
}

fn imports(options: &Import, settings: &Settings, ui: Ui) -> Result<Imports> {
    let now = Timestamp::now();
    if !options.files.is_empty() {
        let (stores, files): (Vec<_>, Vec<_>) =
            options.files.iter().partition(|file| import::is_store(file));
        let mut imports = Imports::default();
        for file in stores {
            imports.extend(import::store_runs(file, settings, ui.interrupt)?);
        }
        let inputs = files.into_iter().map(|file| open(file)).collect::<Result<_>>()?;
        imports.extend(import::read(inputs, settings, now)?);
        return Ok(imports);
    }
    match (&options.database, settings.format) {
        (Some(database), Some(Format::Ybio)) => {
            let mut conninfo = ConnInfo::parse(database, |name| std::env::var(name).ok())?;
            ask_if_missing(&mut conninfo, ui.interrupt)?;
            Ok(import::ybio_runs(&conninfo, settings, now, ui.interrupt)?)
        }
        _ => refuse("nothing to import: specify a file, or --from ybio with -d URL"),
    }
}

fn open(file: &Path) -> Result<Input> {
    if file == Path::new("-") {
        let reader = Box::new(BufReader::new(std::io::stdin()));
        return Ok(Input::new("standard input".to_owned(), None, reader));
    }
    let name = file.display().to_string();
    let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    let modified = opened.metadata().and_then(|metadata| metadata.modified()).ok();
    let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
    Ok(Input::new(name, modified, Box::new(BufReader::new(opened))))
}

/// Writes the selected runs to a file or to standard output.
pub(super) fn export(options: &Export, ui: Ui) -> Result<ExitCode> {
    let rows = options.rows()?;
    let outputs = Outputs::open(&options.outputs, None, ui)?;
    let store = stored::open_existing(&options.store, ui)?;
    let records = if options.all {
        all_runs(&store)?
    } else {
        select(&store, &options.runs)?.into_iter().flat_map(|(_, runs)| runs).collect()
    };
    outputs.emit(|form, _| {
        let format = match form {
            "csv" => ExportFormat::Csv(rows),
            "openmetrics" => ExportFormat::OpenMetrics,
            _ => ExportFormat::Json,
        };
        Ok(Rendered::Data(exported(&records, format)?))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Merges, stores and prints.
pub(super) fn merge(options: &MergeOptions, ui: Ui) -> Result<ExitCode> {
    require_public(&options.label)?;
    let store = stored::open_existing(&options.store, ui)?;
    let mut records: Vec<Record> = Vec::new();
    for text in &options.runs {
        records.extend(store.select(text)?);
    }
    if records.len() < 2 {
        return refuse("nothing to merge: specify at least two runs, a label or a tag of several");
    }
    let parts = (0..)
        .zip(records)
        .map(|(position, record)| MergedPart::from_record(position, record))
        .collect();
    let mut merged = merged_of(Uuid::now_v7(), parts, None)?;
    if let Some(label) = &options.label {
        merged.label = Some(label.clone()).filter(|label| !label.is_empty());
    }
    let forms =
        Forms::open(&options.answer.outputs, detail(options.answer.details, ui), &merged.plan, ui)?;
    let form = forms.shown;
    let stored = if options.dry_run {
        "no (--dry-run)".to_owned()
    } else {
        store.require_writable()?;
        if let Some(id) = store.merged_from_the_same(&merged)? {
            bail!("these runs are already merged into run {id}");
        }
        store.save(&merged)?;
        format!("{} in {}", merged.id, store.location())
    };
    let text_options = RecordText {
        graph_options: &GraphOptions::default(),
        server: None,
        store: Some(ui.given().store.as_str()).filter(|_| !options.dry_run),
    };
    print(&merged, &stored, &forms, text_options, ui)?;
    Ok(ExitCode::from(exit_code_in(form, &merged)))
}
