//! Keeps the record of a run that cannot be stored: the disk is full, or the connection to the store was lost.

use std::io;
use std::path::Path;

use riops::host::OutputFile;
use riops::record::Record;
use riops::units::text::json_text;

use crate::hints::quoted;

/// Writes the record to a file in the current directory, otherwise in the directory for temporary files. Returns the
/// error with the path of the file and the command that stores it later.
pub(crate) fn keep(record: &Record, error: &dyn std::error::Error) -> anyhow::Error {
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

fn write(record: &Record, path: &Path) -> io::Result<()> {
    OutputFile::write(path, json_text(record)?.as_bytes())
}
