//! `riops runs import`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::Timestamp;
use riops::import::{self, Format, Imports, Input, Settings};
use riops::plan::require_printable;
use riops::server::ConnInfo;
use riops::units::text::one_line;

use crate::args::Import;
use crate::failure::refuse;
use crate::stored;
use crate::terminal::ask_if_missing;
use crate::ui::Ui;

/// Stores the runs of files or of ybio's table.
pub(crate) fn run(options: &Import, ui: Ui) -> Result<ExitCode> {
    let settings = Settings {
        format: options.from.0,
        label: options.label.clone(),
        tags: options.tag.iter().cloned().collect(),
        started_at: options.started_at,
        column_7: options.pgbench_column_7,
    };
    let names = settings.label.iter().chain(settings.tags.keys()).chain(settings.tags.values());
    require_printable(names)?;
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
    crate::ui::print_done(&lines)
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
    let modified = opened.metadata().and_then(|found| found.modified()).ok();
    let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
    Ok(Input::new(name, modified, Box::new(BufReader::new(opened))))
}
