//! What a transaction and a row cost the server, the client and the devices.

use std::ops::RangeInclusive;

use indexmap::IndexMap;

use crate::document::Document;
use crate::sections::stage_prefix;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::{Figure, Summary, Unit};
use riops_model::record::{DiskCost, Record, StageRecord};
use riops_model::units::format::{bytes_each, joined, rate};

/// Events that are rarer than this per transaction are not named in texts.
const EVENTS_MIN: f64 = 0.000_5;
/// Nor are fewer bytes, or a shorter time, which would be shown as zero.
const BYTES_MIN: f64 = 1.0;
const TIME_MIN_US: f64 = 0.005;
/// A transaction with fewer rows costs as much as a row. With more, the cost of a row is less than 1% of it.
const ROWS: RangeInclusive<f64> = 1.05..=100.0;

/// The costs that occurred, of a transaction and of a row.
pub(crate) fn cost(document: &mut Document, summary: &Summary<'_>) {
    let (record, stage) = (summary.record, summary.stage);
    let of_transaction = Some(1.0).filter(|_| stage.cost.is_some());
    let both = [("transaction", of_transaction), ("row", rows(stage))];
    let texts = both.into_iter().filter_map(|(unit, divisor)| {
        let costs = line(record, stage, divisor?);
        (!costs.is_empty()).then(|| format!("{}per {unit}: {costs}", about(stage)))
    });
    document.lines("cost", texts);
    document.known("", included(stage));
    document.known("", not_counted(summary));
}

/// The mark of costs that include the work of others.
fn about(stage: &StageRecord) -> &'static str {
    if included(stage).is_empty() { "" } else { "about, " }
}

/// What else the counters include.
fn included(stage: &StageRecord) -> &str {
    stage.cost.as_ref().and_then(|cost| cost.includes.as_deref()).unwrap_or_default()
}

/// Names the costs that were not counted, and why.
fn not_counted(summary: &Summary<'_>) -> String {
    let (record, stage) = (summary.record, summary.stage);
    let Some(cost) = &stage.cost else {
        return String::new();
    };
    let database = stage.database.as_ref();
    let is_elsewhere = !record.client.shares_machine_with_server;
    let missing = [
        (
            is_elsewhere && cost.server_cpu_us.is_none(),
            "CPU and devices of the server, which is not on this machine",
        ),
        (database.is_none(), "the counters of the database"),
        (database.is_some() && cost.blocks_hit.is_none(), "blocks"),
        (database.is_some() && cost.wal_bytes.is_none(), "WAL"),
        (
            database.is_some_and(|database| database.statements.is_empty()),
            if stage.has_lost_connections() {
                "statements (connections were lost, also that which reads the counters)"
            } else {
                "statements (pg_stat_statements is not installed in the database or not visible)"
            },
        ),
        (
            record.target.pooler.is_some() && summary.waits().is_none(),
            "wait events and the time of a transaction, behind a pooler",
        ),
    ];
    let missing = missing.iter().filter_map(|(is_missing, what)| is_missing.then_some(what));
    let missing = joined(missing, "; ");
    if missing.is_empty() { missing } else { format!("not counted: {missing}") }
}

/// Rows per transaction, if there are several.
fn rows(stage: &StageRecord) -> Option<f64> {
    stage.cost.as_ref().map(|cost| cost.rows).filter(|rows| ROWS.contains(rows))
}

fn line(record: &Record, stage: &StageRecord, divisor: f64) -> String {
    let text = |figure: Figure| {
        let value = figure.value(record, stage)? / divisor;
        let text = figure.text(value);
        match figure.unit() {
            Unit::Events => {
                (value.abs() >= EVENTS_MIN).then(|| format!("{text} {}", figure.name()))
            }
            Unit::Bytes if value.abs() < BYTES_MIN => None,
            Unit::Microseconds if value.abs() < TIME_MIN_US => None,
            _ => Some(format!("{} {text}", figure.name())),
        }
    };
    joined(Figure::costs().filter_map(text), " · ")
}

/// The number and the bytes of the requests to a disk.
type Pick = fn(&DiskCost) -> (f64, f64);

/// The costs of each stage.
pub(crate) fn table(record: &Record) -> Table {
    let counted: Vec<_> = record.stages.iter().filter(|stage| stage.cost.is_some()).collect();
    let has_rows = counted.iter().any(|stage| rows(stage).is_some());
    let mut columns = vec![text_column("cost")];
    for stage in &counted {
        let name = stage_prefix(record, stage) + about(stage);
        columns.push(number_column(format!("{name}per transaction")));
        if has_rows {
            columns.push(number_column(format!("{name}per row")));
        }
    }
    let row = |name: &str, text: &dyn Fn(&StageRecord, f64) -> Option<String>| -> Vec<Cell> {
        let cells = counted.iter().flat_map(|stage| {
            let of_row = has_rows.then(|| rows(stage).and_then(|rows| text(stage, rows)).into());
            [text(stage, 1.0).into()].into_iter().chain(of_row)
        });
        std::iter::once(name.into()).chain(cells).collect()
    };
    let is_counted =
        |figure: &Figure| counted.iter().any(|stage| figure.value(record, stage).is_some());
    let of_figures = Figure::costs().filter(is_counted).map(|figure| {
        row(figure.name(), &move |stage, divisor| {
            Some(figure.text(figure.value(record, stage)? / divisor))
        })
    });
    let of_disks = disks(&counted).into_iter().flat_map(|disk| {
        let name = format!("{} ({})", disk.name, disk.roles.join(", "));
        let kinds: [(&str, Pick); 2] = [
            ("reads", |cost| (cost.reads, cost.read_bytes)),
            ("writes", |cost| (cost.writes, cost.written_bytes)),
        ];
        kinds.map(|(kind, pick)| {
            row(&format!("{kind} of {name}"), &|stage, divisor| {
                let mut disks = stage.cost.as_ref()?.disks.iter();
                let (count, bytes) = pick(disks.find(|other| other.name == disk.name)?);
                Some(format!("{} ({})", rate(count / divisor), bytes_each(bytes / divisor)))
            })
        })
    });
    let table = Table::new("Cost", columns, of_figures.chain(of_disks));
    match counted.iter().map(|stage| included(stage)).find(|text| !text.is_empty()) {
        Some(text) => table.with_note(text),
        None => table,
    }
}

/// The disks of all stages, if the server has several.
fn disks<'a>(stages: &[&'a StageRecord]) -> Vec<&'a DiskCost> {
    let mut all: IndexMap<&String, &DiskCost> = IndexMap::new();
    for disk in stages.iter().filter_map(|stage| stage.cost.as_ref()).flat_map(|cost| &cost.disks) {
        all.entry(&disk.name).or_insert(disk);
    }
    if all.len() > 1 { all.into_values().collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::CostRecord;

    fn record(rows: f64) -> Record {
        let mut record = example_record();
        record.stages[0].cost = Some(CostRecord {
            rows,
            server_cpu_us: Some(430.0),
            blocks_hit: Some(103.0),
            blocks_read: Some(0.000_1),
            wal_bytes: Some(0.2),
            table_bytes: Some(-1_500.0),
            ..CostRecord::default()
        });
        record
    }

    fn lines(rows: f64) -> Vec<String> {
        let record = record(rows);
        let facts = crate::document::facts(|document| {
            cost(document, &Summary::first_stage(&record).unwrap());
        });
        facts.into_iter().flat_map(|fact| fact.texts).collect()
    }

    #[test]
    fn shows_the_costs_of_a_transaction_and_of_a_row_in_a_line_each() {
        let transaction =
            "per transaction: server CPU 430 µs · 103 blocks hit · growth of tables -1.50 kB";
        let row = "per row: server CPU 4.30 µs · 1.03 blocks hit · growth of tables -15.0 B";
        let missing = "not counted: the counters of the database";
        assert_eq!(lines(100.0), [transaction, row, missing]);
        assert_eq!(lines(1.0), [transaction, missing]);
        let mut pooled = record(1.0);
        pooled.target.pooler = Some("PgBouncer".to_owned());
        pooled.stages[0].probes = None;
        let waits = "wait events and the time of a transaction, behind a pooler";
        let text = not_counted(&Summary::first_stage(&pooled).unwrap());
        assert_eq!(text, format!("{missing}; {waits}"));
    }

    #[test]
    fn costs_that_include_the_work_of_others_are_marked() {
        let mut record = record(1.0);
        record.stages[0].cost.as_mut().unwrap().includes = Some("others, too".to_owned());
        let facts = crate::document::facts(|document| {
            cost(document, &Summary::first_stage(&record).unwrap());
        });
        let lines: Vec<String> = facts.into_iter().flat_map(|fact| fact.texts).collect();
        assert!(lines[0].starts_with("about, per transaction: server CPU 430"), "{lines:?}");
        assert_eq!(lines[1], "others, too");
        assert_eq!(table(&record).note.as_deref(), Some("others, too"));
    }

    #[test]
    fn the_table_has_all_costs_also_those_that_round_to_nothing() {
        let mut record = record(100.0);
        let disk = |name: &str| DiskCost {
            name: name.to_owned(),
            roles: vec!["data".to_owned()],
            reads: 0.5,
            read_bytes: 4_096.0,
            ..DiskCost::default()
        };
        record.stages[0].cost.as_mut().unwrap().disks = vec![disk("sda"), disk("sdb")];
        let table = table(&record);
        let rows: Vec<String> = table
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::text).collect::<Vec<_>>().join(" | "))
            .collect();
        assert_eq!(rows[2], "blocks read | 0.00010 | 0.00000");
        assert_eq!(rows[5], "reads of sda (data) | 0.500 (4.10 kB) | 0.00500 (41.0 B)");
        assert_eq!(rows.len(), 9);
    }
}
