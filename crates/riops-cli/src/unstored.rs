//! Keeps the record of a run that cannot be stored: the disk is full, or the connection to the store was lost.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use riops::record::Record;
use riops::store::StoreError;

use crate::hints::quoted;

/// Writes the record to a file in the current directory, otherwise in the directory for temporary files. Returns the
/// error with the path of the file and the command that stores it later.
pub(crate) fn keep(record: &Record, error: &StoreError) -> anyhow::Error {
    let name = format!("riops-run-{}.json", record.id);
    let folders = [std::env::current_dir().ok(), Some(std::env::temp_dir())];
    let mut failures = Vec::new();
    for path in folders.into_iter().flatten().map(|folder| folder.join(&name)) {
        match write(record, &path) {
            Ok(()) => {
                let command = format!("riops runs import {}", quoted(&path.display().to_string()));
                return anyhow::anyhow!(
                    "{error}; the record is in {}: store it with `{command}`",
                    path.display()
                );
            }
            Err(failure) => failures.push(format!("cannot write {}: {failure}", path.display())),
        }
    }
    anyhow::anyhow!("{error}; the record is lost: {}", failures.join("; "))
}

/// Writes a file that is complete under its name.
fn write(record: &Record, path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension("json.unfinished");
    let written = write_all(record, &unfinished).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn write_all(record: &Record, path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(serde_json::to_string_pretty(record)?.as_bytes())?;
    file.sync_all()
}
