//! `--graph`: the picture of the transactions of a run.

use anyhow::{Context, Result};
use riops::record::Record;
use riops::report::{Scale, scatter_png};

use crate::args::GraphOptions;
use crate::failure::refuse;
use crate::output::OpenFile;
use crate::ui::Ui;

/// Opens the file of `--graph`. Returns `None` without `--graph`.
pub(super) fn open_graph(options: &GraphOptions) -> Result<Option<OpenFile>> {
    options.graph.as_deref().map(OpenFile::open).transpose()
}

/// Draws the latencies of a run.
pub(super) fn draw(file: OpenFile, options: &GraphOptions, record: &Record, ui: Ui) -> Result<()> {
    let picture = scatter_png(record, options.graph_scale.unwrap_or(Scale::Log))
        .context("cannot draw the graph")?;
    file.write(&picture, ui)
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
