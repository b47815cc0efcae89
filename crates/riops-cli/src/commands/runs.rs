//! `riops runs list|show`.

use std::process::ExitCode;

use anyhow::Result;
use riops::report;
use riops::store::{SqliteStore, default_path};

use crate::args::{Output, Runs, StoreOptions};
use crate::ui;

/// Lists or shows what is kept.
pub(crate) fn run(action: Runs) -> Result<ExitCode> {
    match action {
        Runs::List { limit, store, output } => {
            let runs = open(store)?.list(limit)?;
            ui::print(&match output.output {
                Output::Text => report::runs_table(&runs),
                Output::Json => serde_json::to_string_pretty(&runs)? + "\n",
            });
        }
        Runs::Show { run, store, output } => {
            let store = open(store)?;
            let record = store.find(&run)?;
            let kept = format!("{} in {}", record.id, store.path().display());
            ui::print(&match output.output {
                Output::Text => report::run_text(&record, Some(&kept)),
                Output::Json => report::json(&record)? + "\n",
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open(options: StoreOptions) -> Result<SqliteStore> {
    Ok(SqliteStore::open(&options.store.unwrap_or_else(default_path))?)
}
