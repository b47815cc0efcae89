//! `--graph`: draws the latencies of a run into a PNG file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use riops::record::Record;
use riops::report::{Scale, scatter_png};

use crate::args::GraphOptions;
use crate::failure::UsageError;
use crate::ui::Ui;

/// A graph that is written after the run. The file is opened before the run, so that a path that cannot be
/// written fails early.
pub(super) struct Graph {
    path: PathBuf,
    file: Option<File>,
    scale: Scale,
}

impl Graph {
    /// Opens the file of `--graph`. Returns `None` without `--graph`.
    pub(super) fn open(options: &GraphOptions) -> Result<Option<Self>> {
        let Some(path) = &options.graph else {
            return Ok(None);
        };
        // Append mode keeps an existing file until the new graph is complete.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot write --graph {}", path.display()))?;
        let scale = options.graph_scale.unwrap_or(Scale::Log);
        Ok(Some(Self { path: path.clone(), file: Some(file), scale }))
    }

    /// Draws the record and writes the file.
    pub(super) fn draw(mut self, record: &Record, ui: Ui) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let picture = match scatter_png(record, self.scale) {
            Ok(picture) => picture,
            Err(error) => {
                self.file = Some(file);
                return Err(error).context(format!("cannot draw {}", self.path.display()));
            }
        };
        let written = file.set_len(0).and_then(|()| file.write_all(&picture));
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        ui.notice(&format!("wrote {}", self.path.display()));
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // An empty file was created by `open` for a graph that was not drawn.
        if let Some(file) = self.file.take()
            && file.metadata().is_ok_and(|metadata| metadata.len() == 0)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Draws a stored record if `--graph` is set.
pub(super) fn draw_stored(record: &Record, options: &GraphOptions, ui: Ui) -> Result<()> {
    if options.graph.is_some()
        && record.stages.iter().all(|stage| stage.session_loop.samples.is_none())
    {
        return Err(UsageError(
            "cannot draw the graph: the run was executed without --graph, so its transactions were not stored"
                .to_owned(),
        )
        .into());
    }
    Graph::open(options)?.map_or(Ok(()), |graph| graph.draw(record, ui))
}
