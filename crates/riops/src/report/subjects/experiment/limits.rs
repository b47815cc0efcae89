//! The tables of what limits the cells: bottlenecks, origins of the blocks, load of the nodes.

use crate::experiment::evaluation::{CellView, FigureView, StageView, StudyView};
use crate::figure::{Estimate, Figure};
use crate::report::subjects::experiment::cells::{setting_cells, setting_columns};
use crate::report::table::{Cell, Table, number, word};

/// The load per node of each cell with several nodes.
pub(super) fn nodes(view: &StudyView) -> Option<Table> {
    let mut columns = setting_columns(view);
    let settings = columns.len();
    columns.extend([word("node"), number("CPU"), number("CPU share"), number("TPS")]);
    columns.extend([number("TPS share").optional(), number("imbalance")]);
    let mut rows = Vec::new();
    for cell in &view.cells {
        let Some(stage) = cell.group.stages.get(view.main_stage) else {
            continue;
        };
        for (at, node) in stage.nodes.iter().enumerate() {
            let empty = || vec!["".into(); settings];
            let mut row = if at == 0 { setting_cells(view, cell) } else { empty() };
            let imbalance = stage.imbalance.filter(|_| at == 0);
            row.extend([
                node.node.as_str().into(),
                node.cpus.map(|cpus| Figure::ServerCpus.text(cpus)).into(),
                share(node.cpu_share),
                Figure::TransactionsPerS.text(node.transactions_per_s).into(),
                share(Some(node.transactions_share)),
                imbalance.map_or_else(String::new, |each| format!("{each:.2}")).into(),
            ]);
            rows.push(row);
        }
    }
    let table = Table::new("Load per node", columns, rows);
    table.with_note("imbalance: the busiest node's share divided by an even share").filled()
}

fn share(value: Option<f64>) -> Cell {
    // One decimal also from 10 % on: shares of nodes are compared with each other.
    let cell: Cell = value.map(|share| format!("{:.1}%", share * 100.0)).into();
    match value {
        Some(value) => cell.with_bar(value),
        None => cell,
    }
}

/// Smallest difference between cells from which on the origin of the blocks is shown for each, as a share.
const SOURCES_DIFFER: f64 = 0.01;

/// Whether the origin of the blocks differs between the cells.
pub(super) fn sources_vary(view: &StudyView) -> bool {
    let shares: Vec<f64> = view
        .groups()
        .filter_map(|group| group.stages.get(view.main_stage)?.sources.as_ref())
        .flat_map(|sources| [Some(&sources.buffers), sources.device.as_ref()])
        .map(|share| share.map_or(0.0, |share| share.value))
        .collect();
    let spread = |of: &mut dyn Iterator<Item = f64>| {
        let (low, high) = of.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), share| {
            (low.min(share), high.max(share))
        });
        high - low
    };
    spread(&mut shares.iter().copied().step_by(2)) > SOURCES_DIFFER
        || spread(&mut shares.iter().copied().skip(1).step_by(2)) > SOURCES_DIFFER
}

/// What limited each cell, and where the blocks of its rows came from; `None` if nothing is known, or if it is the
/// same bottleneck everywhere.
pub(super) fn limits(view: &StudyView) -> Option<Table> {
    let stages: Vec<(&CellView, &StageView)> = view
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.group.stages.get(view.main_stage)?)))
        .collect();
    let has_sources = sources_vary(view);
    let has_bottlenecks = common_bottleneck(view).is_none()
        && stages.iter().any(|(_, stage)| stage.bottleneck.is_some());
    if !has_sources && !has_bottlenecks {
        return None;
    }
    let mut columns = setting_columns(view);
    columns.extend([number("shared buffers"), number("page cache"), number("device")]);
    columns.extend([number("read MB/s"), number("client CPU").optional(), word("bottleneck")]);
    let rows = stages.iter().map(|(cell, stage)| {
        let mut row = setting_cells(view, cell);
        let sources = stage.sources.as_ref().filter(|_| has_sources);
        let origin = |share: Option<&Estimate>| Cell::share(share.map(|share| share.value));
        let figure = |figure: Figure| -> Cell { stage.figure(figure).map(FigureView::text).into() };
        row.extend([
            origin(sources.map(|each| &each.buffers)),
            origin(sources.and_then(|each| each.page_cache.as_ref())),
            origin(sources.and_then(|each| each.device.as_ref())),
            if has_sources { figure(Figure::ReadMbS) } else { "".into() },
            figure(Figure::ClientCpus),
            stage.bottleneck.clone().unwrap_or_default().into(),
        ]);
        row
    });
    let title = if has_sources { "Origin of the blocks and bottleneck" } else { "Bottleneck" };
    Some(Table::new(title, columns, rows))
}

/// The bottleneck, if all cells have the same.
pub(super) fn common_bottleneck(view: &StudyView) -> Option<&str> {
    let measured = view.groups().filter(|group| group.runs.usable > 0);
    let mut stages = measured
        .filter_map(|group| group.stages.get(view.main_stage))
        .map(|stage| &stage.bottleneck);
    let first = stages.next()?.as_deref()?;
    stages.all(|other| other.as_deref() == Some(first)).then_some(first)
}
