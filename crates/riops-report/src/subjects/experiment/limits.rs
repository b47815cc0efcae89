//! The tables of what limits the cells: bottlenecks, origins of the blocks, load of the nodes.

use crate::subjects::experiment::cells::{or_empty, settings};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::{Estimate, Figure};
use riops_model::study::evaluation::{FigureView, StudyView};

/// The load per node of each cell with several nodes.
pub(super) fn nodes(view: &StudyView) -> Option<Table> {
    let nodes = view.main_stages().flat_map(|(cell, stage)| {
        stage.nodes.iter().enumerate().map(move |(at, node)| (cell, stage, at == 0, node))
    });
    let table = Table::from_items("Load per node", nodes, |(cell, stage, is_first, node)| {
        let of_first = |(column, cell)| (column, or_empty(Some(cell).filter(|_| is_first)));
        let mut row: Vec<_> = settings(view, cell).into_iter().map(of_first).collect();
        let imbalance = stage.imbalance.filter(|_| is_first).map(|ratio| format!("{ratio:.2}"));
        let per_s = Figure::TransactionsPerS.text(node.transactions_per_s);
        row.extend([
            (text_column("node"), node.node.as_str().into()),
            (number_column("CPU"), node.cpus.map(|cpus| Figure::ServerCpus.text(cpus)).into()),
            (number_column("CPU share"), share(node.cpu_share)),
            (number_column("TPS"), per_s.into()),
            (number_column("TPS share").optional(), share(Some(node.transactions_share))),
            (number_column("imbalance"), or_empty(imbalance)),
        ]);
        row
    });
    table.with_note("imbalance: the busiest node's share divided by an even share").filled()
}

fn share(value: Option<f64>) -> Cell {
    // One decimal also from 10 % on: shares of nodes are compared with each other.
    value.map(|share| Cell::from(format!("{:.1}%", share * 100.0)).with_bar(share)).into()
}

/// Returns the origin of the blocks and the bottleneck of each cell; `None` if the origin does not vary, and the
/// bottleneck is unknown or the same in all cells.
pub(super) fn limits(view: &StudyView) -> Option<Table> {
    let has_sources = view.sources_vary();
    let has_bottlenecks = view.common_bottleneck().is_none()
        && view.main_stages().any(|(_, stage)| stage.bottleneck.is_some());
    if !has_sources && !has_bottlenecks {
        return None;
    }
    let title = if has_sources { "Origin of the blocks and bottleneck" } else { "Bottleneck" };
    Some(Table::from_items(title, view.main_stages(), |(cell, stage)| {
        let mut row = settings(view, cell);
        let sources = stage.sources.as_ref().filter(|_| has_sources);
        let origin = |share: Option<&Estimate>| Cell::share(share.map(|share| share.value));
        let figure = |figure: Figure| -> Cell { stage.figure(figure).map(FigureView::text).into() };
        let read = if has_sources { figure(Figure::ReadMbS) } else { "".into() };
        row.extend([
            (number_column("shared buffers"), origin(sources.map(|shares| &shares.buffers))),
            (
                number_column("page cache"),
                origin(sources.and_then(|shares| shares.page_cache.as_ref())),
            ),
            (number_column("device"), origin(sources.and_then(|shares| shares.device.as_ref()))),
            (number_column("read MB/s"), read),
            (number_column("client CPU").optional(), figure(Figure::ClientCpus)),
            (text_column("bottleneck"), stage.bottleneck.clone().unwrap_or_default().into()),
        ]);
        row
    }))
}
