//! `riops generate csv`.

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use riops::host::{Interrupt, OutputFile, machine};
use riops::plan::{DatasetSpec as _, LoadDataset, LoadRun};
use riops::server::ConnectionError;
use riops::units::format::{count, number_of};
use riops::workload::load::{file_name, write_csv};

use crate::args::GenerateCsv;
use crate::args::run::cores;
use crate::ui::Ui;

/// Size of the write buffer of a file, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// Writes the CSV files in parallel.
pub(crate) fn csv(options: &GenerateCsv, ui: Ui) -> Result<ExitCode> {
    let dataset = LoadDataset {
        rows: options.rows.map_or(LoadDataset::default().rows, |count| count.0),
        field_length: options.texts.field_length.unwrap_or(LoadDataset::default().field_length),
        seed: options.seed,
        ..LoadDataset::default()
    };
    dataset.validate()?;
    // The same defaults as in `run load`, which reads these files without further options.
    let files = options.sessions.unwrap_or_else(cores);
    let folder = options.dir.clone().unwrap_or_else(|| PathBuf::from(LoadRun::default().dir));
    let path =
        |position: u32| folder.join(file_name(files, dataset.rows, dataset.field_length, position));
    if !options.force
        && let Some(existing) = (1..=files).map(path).find(|path| path.exists())
    {
        anyhow::bail!("{} already exists: replace it with --force", existing.display());
    }
    // Under a temporary name that is changed at the end: a file with its final name is complete.
    let write_one = |position, path: &Path| -> io::Result<()> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, OutputFile::create(path)?);
        let mut writer = Interruptible { file, interrupt: ui.interrupt };
        write_csv(&dataset, files, position, &mut writer)?;
        writer.file.into_inner().map_err(IntoInnerError::into_error)?.complete()
    };
    let next = AtomicU32::new(1);
    let work = || -> Result<()> {
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position > files {
                return Ok(());
            }
            let path = path(position);
            write_one(position, &path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            ui.notice(&format!("wrote {}", path.display()));
        }
    };
    let failure = OnceLock::new();
    std::thread::scope(|scope| {
        for _ in 0..machine::cpus().clamp(1, files as usize) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    // The other threads start no further file.
                    next.store(files + 1, Ordering::Relaxed);
                    let _ = failure.set(error);
                }
            });
        }
    });
    if ui.interrupt.is_requested() {
        return Err(ConnectionError::Interrupted.into());
    }
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    crate::ui::print_done(&format!(
        "wrote {} rows to {} in {}\n",
        count(dataset.rows),
        number_of(files.into(), "file"),
        folder.display()
    ))
}

/// A file whose writes fail once the user has interrupted riops.
struct Interruptible<'a> {
    file: BufWriter<OutputFile>,
    interrupt: &'a Interrupt,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.is_requested() {
            return Err(io::Error::other("interrupted"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
