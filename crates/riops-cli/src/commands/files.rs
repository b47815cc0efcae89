//! `--graph` and `--session-detail`: the files of a run beside its record.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use riops::host::OutputFile;
use riops::record::Record;
use riops::report::{Scale, scatter_png};

use crate::args::GraphOptions;
use crate::failure::refuse;
use crate::ui::Ui;

/// A file that is written after the run. It is opened before the run, so that a path that cannot be written fails early.
pub(super) struct FileOfRun {
    path: PathBuf,
    file: OutputFile,
}

impl FileOfRun {
    /// Opens the file of an option.
    pub(super) fn open(option: &str, path: &Path) -> Result<Self> {
        let file = OutputFile::create(path)
            .with_context(|| format!("cannot write --{option} {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn write(mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.complete());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Opens the file of `--graph`. Returns `None` without `--graph`.
pub(super) fn open_graph(options: &GraphOptions) -> Result<Option<FileOfRun>> {
    options.graph.as_deref().map(|path| FileOfRun::open("graph", path)).transpose()
}

/// Draws the latencies of a run.
pub(super) fn draw(file: FileOfRun, options: &GraphOptions, record: &Record, ui: Ui) -> Result<()> {
    let path = file.path.display().to_string();
    let picture = scatter_png(record, options.graph_scale.unwrap_or(Scale::Log))
        .with_context(|| format!("cannot draw {path}"))?;
    file.write(&picture)?;
    ui.notice(&format!("wrote {path}"));
    Ok(())
}

/// Draws a stored record if `--graph` is set.
pub(super) fn draw_stored(record: &Record, options: &GraphOptions, ui: Ui) -> Result<()> {
    if options.graph.is_some()
        && record.stages.iter().all(|stage| stage.session_loop.samples.is_none())
    {
        let text = "cannot draw the graph: the run was executed without --graph, so its transactions were not stored";
        return refuse(text);
    }
    open_graph(options)?.map_or(Ok(()), |file| draw(file, options, record, ui))
}
