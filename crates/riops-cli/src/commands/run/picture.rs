//! What is drawn of a record: a histogram of text, a scatterplot.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use riops::record::Record;
use riops::report;

use crate::args::{PictureOptions, Scale};
use crate::failure::UsageError;
use crate::ui::Ui;

/// Buckets of a histogram, as in ysql-bench.
const BUCKETS: u16 = 10;

fn scale(scale: Scale) -> report::Scale {
    match scale {
        Scale::Linear => report::Scale::Linear,
        Scale::Log => report::Scale::Log,
    }
}

/// The histogram that was asked for, with an empty line before it.
pub(super) fn histogram(record: &Record, options: &PictureOptions) -> String {
    let Some(kind) = options.print_histogram else {
        return String::new();
    };
    let buckets = usize::from(options.histogram_buckets.unwrap_or(BUCKETS));
    format!("\n{}", report::histogram_text(record, scale(kind), buckets))
}

/// A picture that will be written when the run is over. The file is opened before the run: a place
/// where nothing can be written is better known then.
pub(super) struct Graph {
    path: PathBuf,
    file: Option<File>,
    scale: report::Scale,
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
        let scale = scale(options.graph_scale.unwrap_or(Scale::Log));
        Ok(Some(Self { path: path.clone(), file: Some(file), scale }))
    }

    /// Draws the record.
    pub(super) fn draw(mut self, record: &Record, ui: Ui) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let picture = match report::scatter_png(record, self.scale) {
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

/// Draws a record that was kept, where a picture is asked for.
pub(crate) fn drawn(record: &Record, options: &PictureOptions, ui: Ui) -> Result<()> {
    if options.graph.is_some() && record.stages.iter().all(|stage| stage.samples.is_none()) {
        return Err(UsageError(
            "the run was made without --graph, so that none of its transactions were kept"
                .to_owned(),
        )
        .into());
    }
    Graph::open(options)?.map_or(Ok(()), |graph| graph.draw(record, ui))
}
