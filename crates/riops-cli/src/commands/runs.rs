//! `riops runs list|show`.

use std::process::ExitCode;

use anyhow::Result;
use riops::report;
use riops::store::{SqliteStore, StoreError, default_path};

use super::run;
use crate::args::{Output, Runs};
use crate::ui::Ui;

/// Lists or shows what is kept.
pub(crate) fn look(action: Runs, ui: Ui) -> Result<ExitCode> {
    match action {
        Runs::List { limit, store, output } => {
            let path = store.store.unwrap_or_else(default_path);
            // Looking makes no file.
            let runs =
                if path.exists() { SqliteStore::open(&path)?.list(limit)? } else { Vec::new() };
            crate::ui::print(&match output.output {
                Output::Text => report::runs_table(&runs),
                Output::Json => serde_json::to_string_pretty(&runs)? + "\n",
            })?;
        }
        Runs::Show { run, store, output, picture } => {
            let path = store.store.unwrap_or_else(default_path);
            if !path.exists() {
                return Err(StoreError::Empty(path).into());
            }
            let store = SqliteStore::open(&path)?;
            let record = store.find(&run)?;
            let kept = format!("{} in {}", record.id, store.path().display());
            crate::ui::print(&run::printed(&record, &kept, output.output, &picture)?)?;
            run::tell_beside(&record, output.output);
            run::drawn(&record, &picture, ui)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
