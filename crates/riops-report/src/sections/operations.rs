//! The kinds of transactions: counts and latencies of each.

use crate::document::Document;
use crate::latency::{latency_cell, latency_named, latency_text};
use crate::sections::{items_of_stages, several, stage_name};
use crate::table::{Table, number_column, text_column};
use riops_model::figure::Summary;
use riops_model::record::{OperationRecord, Record};
use riops_model::units::format::count;

/// The latency of each kind of transaction, if there are several.
pub(crate) fn operations(document: &mut Document, summary: &Summary<'_>) {
    let operations = &summary.stage.session_loop.operations;
    if operations.len() < 2 {
        return;
    }
    let text = |operation: &OperationRecord| {
        let latency = latency_text(operation.latency_us()?);
        let has_response = operation.response_us.is_some();
        let kind = if has_response { "response " } else { "" };
        let service = operation.service_us.as_ref().filter(|_| has_response);
        let service = service.map_or_else(String::new, |service| {
            format!("; service p99 {}", latency_named(service, "p99").unwrap_or_default())
        });
        Some(format!("{}: {kind}{latency}{service}", operation.name))
    };
    document.lines("operations", operations.iter().filter_map(text));
}

/// Kinds of transactions, if there are several.
pub(crate) fn table(record: &Record) -> Table {
    let operations = items_of_stages(record, |stage| several(&stage.session_loop.operations));
    Table::from_items("operations", operations, |(stage, operation)| {
        let latency = |key| latency_cell(operation.latency_us(), key);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("operation"), operation.name.as_str().into()),
            (number_column("transactions"), count(operation.transactions).into()),
            (number_column("rows"), count(operation.rows).into()),
            (number_column("failed"), count(operation.failed + operation.unknown).into()),
            (number_column("p50"), latency("p50")),
            (number_column("p90"), latency("p90")),
            (number_column("p99"), latency("p99")),
            (number_column("p99.9"), latency("p999")),
            (number_column("max"), latency("max")),
        ]
    })
}
