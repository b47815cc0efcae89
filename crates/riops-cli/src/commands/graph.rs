//! `--graph`: draws the latencies of a run into a PNG file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use riops::host::OutputFile;
use riops::record::Record;
use riops::report::{Scale, scatter_png};

use crate::args::GraphOptions;
use crate::failure::refuse;
use crate::ui::Ui;

/// A graph that is written after the run. The file is opened before the run, so that a path that cannot be
/// written fails early.
pub(super) struct Graph {
    path: PathBuf,
    file: OutputFile,
    scale: Scale,
}

impl Graph {
    /// Opens the file of `--graph`. Returns `None` without `--graph`.
    pub(super) fn open(options: &GraphOptions) -> Result<Option<Self>> {
        let Some(path) = &options.graph else {
            return Ok(None);
        };
        let file = OutputFile::create(path)
            .with_context(|| format!("cannot write --graph {}", path.display()))?;
        let scale = options.graph_scale.unwrap_or(Scale::Log);
        Ok(Some(Self { path: path.clone(), file, scale }))
    }

    /// Draws the record and writes the file.
    pub(super) fn draw(mut self, record: &Record, ui: Ui) -> Result<()> {
        let path = self.path.display();
        let picture =
            scatter_png(record, self.scale).with_context(|| format!("cannot draw {path}"))?;
        let written = self.file.write_all(&picture).and_then(|()| self.file.complete());
        written.with_context(|| format!("cannot write {path}"))?;
        ui.notice(&format!("wrote {path}"));
        Ok(())
    }
}

/// Draws a stored record if `--graph` is set.
pub(super) fn draw_stored(record: &Record, options: &GraphOptions, ui: Ui) -> Result<()> {
    if options.graph.is_some()
        && record.stages.iter().all(|stage| stage.session_loop.samples.is_none())
    {
        let text = "cannot draw the graph: the run was executed without --graph, so its transactions were not stored";
        return refuse(text);
    }
    Graph::open(options)?.map_or(Ok(()), |graph| graph.draw(record, ui))
}
