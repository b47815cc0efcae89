//! The tables of what limits the cells: bottlenecks, origins of the blocks, load of the nodes.

use super::super::format::percent;
use super::super::page::{Cell, Table};
use super::cells::{setting_cells, setting_titles};
use super::model::{CellView, StageView, StudyView};
use crate::figure::{Estimate, Figure};

/// Title of the table of the nodes.
pub(super) const NODES_TITLE: &str = "Load per node";

/// The load per node of each cell with several nodes.
pub(super) fn nodes(view: &StudyView) -> Option<Table> {
    let stage = |cell: &CellView| cell.group.stages.get(view.main_stage).cloned();
    let has_cpus = view
        .groups()
        .filter_map(|group| group.stages.get(view.main_stage))
        .any(|stage| stage.nodes.iter().any(|node| node.cpus.is_some()));
    let mut head = setting_titles(view);
    head.push("node".to_owned());
    let words = head.len();
    if has_cpus {
        head.extend(["CPU", "CPU share"].map(str::to_owned));
    }
    head.extend(["TPS", "TPS share", "imbalance"].map(str::to_owned));
    let mut rows = Vec::new();
    for cell in &view.cells {
        let Some(stage) = stage(cell) else {
            continue;
        };
        for (at, node) in stage.nodes.iter().enumerate() {
            let mut row =
                if at == 0 { setting_cells(view, cell) } else { vec![Cell::word(""); words - 1] };
            row.push(Cell::word(node.node.clone()));
            if has_cpus {
                let cpus = node.cpus.map(|cpus| Figure::ServerCpus.text(cpus));
                row.push(Cell::number(cpus.unwrap_or_default()));
                row.push(share(node.cpu_share));
            }
            row.push(Cell::number(Figure::TransactionsPerS.text(node.transactions_per_s)));
            row.push(share(Some(node.transactions_share)));
            let imbalance = stage.imbalance.filter(|_| at == 0);
            row.push(Cell::number(imbalance.map(|each| format!("{each:.2}")).unwrap_or_default()));
            rows.push(row);
        }
    }
    (!rows.is_empty()).then(|| Table {
        title: NODES_TITLE.to_owned(),
        head,
        words,
        rows,
        note: Some("imbalance: the busiest node's share divided by an even share".to_owned()),
    })
}

fn share(value: Option<f64>) -> Cell {
    // One decimal also from 10 % on: shares of nodes are compared with each other.
    let text = value.map(|share| format!("{:.1}%", share * 100.0)).unwrap_or_default();
    let cell = Cell::number(text);
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
    let mut head = setting_titles(view);
    let words = head.len();
    if has_sources {
        head.extend(["shared buffers", "page cache", "device", "read MB/s"].map(str::to_owned));
    }
    head.extend(["client CPU", "bottleneck"].map(str::to_owned));
    let rows = stages.iter().map(|(cell, stage)| {
        let mut row = setting_cells(view, cell);
        let sources = stage.sources.as_ref();
        let figure = |figure: Figure| {
            let found = stage.figure(figure).map(|found| figure.text(found.estimate.value));
            Cell::number(found.unwrap_or_default())
        };
        if has_sources {
            row.push(origin(sources.map(|each| &each.buffers)));
            row.push(origin(sources.and_then(|each| each.page_cache.as_ref())));
            row.push(origin(sources.and_then(|each| each.device.as_ref())));
            row.push(figure(Figure::ReadMbS));
        }
        row.push(figure(Figure::ClientCpus));
        row.push(Cell::number(stage.bottleneck.clone().unwrap_or_default()));
        row
    });
    let title = if has_sources { "Origin of the blocks and bottleneck" } else { "Bottleneck" };
    Some(Table { title: title.to_owned(), head, words, rows: rows.collect(), note: None })
}

fn origin(share: Option<&Estimate>) -> Cell {
    Cell::number(share.map(|share| percent(share.value)).unwrap_or_default())
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
