//! `riops generate csv`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use riops::host::{Interrupt, machine};
use riops::plan::{LoadDataset, LoadRun};
use riops::report;
use riops::server::ConnectionError;
use riops::workload::load::{file_name, write_csv};

use crate::args::GenerateCsv;
use crate::ui::Ui;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Writes the files in parallel. A file has its name only when it is whole.
pub(crate) fn csv(options: &GenerateCsv, interrupt: &Interrupt, ui: Ui) -> Result<ExitCode> {
    let dataset = LoadDataset {
        rows: options.rows.map_or(LoadDataset::default().rows, |count| count.0),
        field_length: options.texts.field_length.unwrap_or(LoadDataset::default().field_length),
        seed: options.seed,
        ..LoadDataset::default()
    };
    dataset.validate()?;
    // Without options these are the files that run load looks for without options.
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let files = options.sessions.unwrap_or(cores);
    let folder = options.dir.clone().unwrap_or_else(|| PathBuf::from(LoadRun::default().dir));
    let path =
        |number: u32| folder.join(file_name(files, dataset.rows, dataset.field_length, number));
    if !options.force
        && let Some(there) = (1..=files).map(path).find(|path| path.exists())
    {
        anyhow::bail!("{} is there already: replace it with --force", there.display());
    }
    let next = AtomicU32::new(1);
    let failure = Mutex::new(None);
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > files {
                return Ok(());
            }
            let path = path(number);
            write_one(&dataset, files, number, &path, interrupt)
                .with_context(|| format!("{} was not written", path.display()))?;
            ui.notice(&format!("written: {}", path.display()));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..machine::cpus().clamp(1, files as usize) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    // No further file is begun.
                    next.store(files + 1, Ordering::Relaxed);
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                }
            });
        }
    });
    if interrupt.requested() {
        return Err(ConnectionError::Interrupted.into());
    }
    if let Ok(Some(error)) = failure.into_inner() {
        return Err(error);
    }
    crate::ui::print(&format!(
        "wrote {} rows into {files} file{} in {}\n",
        report::count(dataset.rows),
        if files == 1 { "" } else { "s" },
        folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one file beside its name, and gives it the name at the end: what looks whole is whole.
fn write_one(
    dataset: &LoadDataset,
    files: u32,
    number: u32,
    path: &Path,
    interrupt: &Interrupt,
) -> io::Result<()> {
    let unfinished = path.with_extension("csv.unfinished");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&unfinished)?;
    let mut writer = Stoppable { file: BufWriter::with_capacity(BUFFER_BYTES, file), interrupt };
    let written = write_csv(dataset, files, number, &mut writer)
        .and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// A file whose writing ends when the user wants it to.
struct Stoppable<'a> {
    file: BufWriter<File>,
    interrupt: &'a Interrupt,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.requested() {
            return Err(io::Error::other("interrupted"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
