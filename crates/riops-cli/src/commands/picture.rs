//! Scatterplots of records.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use riops::record::Record;
use riops::report::{Scale, scatter_png};

use crate::args::PictureOptions;
use crate::failure::UsageError;
use crate::ui::Ui;

/// A picture that will be written when the run is over. The file is opened before the run: a place
/// where nothing can be written is better known then.
pub(super) struct Graph {
    path: PathBuf,
    file: Option<File>,
    scale: Scale,
}

impl Graph {
    /// `None` where no picture was asked for.
    pub(super) fn open(options: &PictureOptions) -> Result<Option<Self>> {
        let Some(path) = &options.graph else {
            return Ok(None);
        };
        // What is there already is replaced only by a whole picture.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("--graph {} cannot be written", path.display()))?;
        let scale = options.graph_scale.unwrap_or(Scale::Log);
        Ok(Some(Self { path: path.clone(), file: Some(file), scale }))
    }

    /// Draws the record.
    pub(super) fn draw(mut self, record: &Record, ui: Ui) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let picture = match scatter_png(record, self.scale) {
            Ok(picture) => picture,
            Err(error) => {
                self.file = Some(file);
                return Err(error).context(format!("{} was not drawn", self.path.display()));
            }
        };
        let written = file.set_len(0).and_then(|()| file.write_all(&picture));
        written.with_context(|| format!("{} cannot be written", self.path.display()))?;
        ui.notice(&format!("drawn: {}", self.path.display()));
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // A file that was made for a picture that never came.
        if let Some(file) = self.file.take()
            && file.metadata().is_ok_and(|metadata| metadata.len() == 0)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Draws a stored record, where a picture is asked for.
pub(super) fn drawn(record: &Record, options: &PictureOptions, ui: Ui) -> Result<()> {
    if options.graph.is_some()
        && record.stages.iter().all(|stage| stage.session_loop.samples.is_none())
    {
        return Err(UsageError(
            "the run was made without --graph, so that none of its transactions were stored"
                .to_owned(),
        )
        .into());
    }
    Graph::open(options)?.map_or(Ok(()), |graph| graph.draw(record, ui))
}
