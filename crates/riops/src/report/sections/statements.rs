//! What the server executed, by statement.

use crate::record::{Record, StageRecord, StatementUse};
use crate::report::document::Document;
use crate::report::table::{Table, number, word};
use crate::units::format::{bytes_each, count, duration_us, number_of, percent, rate};
use crate::units::text::shortened;

/// Statements of the run, and of others, that a text names.
const NAMED_MAX: usize = 3;
/// Other statements with less time than this share of all are not named in a text.
const SHARE_MIN: f64 = 0.05;
/// Maximum number of characters of a statement in a text and in a table.
const TEXT_MAX: usize = 70;
const CELL_MAX: usize = 400;

/// The longest statements, with what an execution took.
pub(in crate::report) fn statements(document: &mut Document, stage: &StageRecord) {
    let all = of(stage);
    let time = |each: &StatementUse| each.exec_us + each.plan_us;
    let sum: f64 = all.iter().map(time).sum();
    let named = |is_own: bool| {
        let those = all.iter().filter(move |each| each.is_own == is_own);
        those.filter(move |each| is_own || time(each) >= SHARE_MIN * sum).take(NAMED_MAX)
    };
    document.lines("statements", named(true).map(text));
    document.lines("others", named(false).map(text));
}

fn of(stage: &StageRecord) -> &[StatementUse] {
    stage.database.as_ref().map_or(&[], |database| &database.statements)
}

/// What an execution needed: rows, blocks, WAL.
fn text(statement: &StatementUse) -> String {
    let each = |total: u64| total as f64 / statement.calls.max(1) as f64;
    let mut parts = vec![
        format!("{} each", duration_us(statement.exec_us / statement.calls.max(1) as f64)),
        number_of(statement.calls, "call"),
        format!("{} rows", rate(each(statement.rows))),
        format!("{} blocks", rate(each(statement.blocks_hit + statement.blocks_read))),
    ];
    if let Some(wal) = statement.wal_bytes.filter(|&wal| wal > 0) {
        parts.push(format!("WAL {}", bytes_each(each(wal))));
    }
    if statement.plan_us > 0.0 {
        let us = statement.plan_us / statement.calls.max(1) as f64;
        parts.push(format!("planning {}", duration_us(us)));
    }
    if statement.jit_us > 0.0 {
        parts.push(format!("JIT {}", percent(statement.jit_us / statement.exec_us.max(1e-9))));
    }
    format!("{}: {}", shortened(&statement.query, TEXT_MAX), parts.join(", "))
}

/// A statement of a stage.
struct Row<'a> {
    stage: &'a str,
    statement: &'a StatementUse,
}

impl Row<'_> {
    fn each(&self, total: f64) -> f64 {
        total / self.statement.calls.max(1) as f64
    }
}

/// All statements of all stages.
pub(in crate::report) fn table(record: &Record) -> Option<Table> {
    let is_single = record.stages.len() == 1;
    let rows = record.stages.iter().flat_map(|stage| {
        let name = if is_single { "" } else { stage.name.as_str() };
        of(stage).iter().map(move |statement| Row { stage: name, statement })
    });
    let table = Table::of(
        "statements",
        rows,
        [
            (word("stage"), |row| row.stage.into()),
            (word("of"), |row| if row.statement.is_own { "run" } else { "others" }.into()),
            (word("statement"), |row| shortened(&row.statement.query, CELL_MAX).into()),
            (number("calls"), |row| count(row.statement.calls).into()),
            (number("execution"), |row| duration_us(row.each(row.statement.exec_us)).into()),
            (number("planning"), |row| {
                let us = Some(row.statement.plan_us).filter(|&us| us > 0.0);
                us.map(|us| duration_us(row.each(us))).into()
            }),
            (number("JIT"), |row| {
                let us = Some(row.statement.jit_us).filter(|&us| us > 0.0);
                us.map(|us| duration_us(row.each(us))).into()
            }),
            (number("rows"), |row| rate(row.each(row.statement.rows as f64)).into()),
            (number("blocks hit"), |row| rate(row.each(row.statement.blocks_hit as f64)).into()),
            (number("blocks read"), |row| rate(row.each(row.statement.blocks_read as f64)).into()),
            (number("dirtied"), |row| rate(row.each(row.statement.blocks_dirtied as f64)).into()),
            (number("temporary blocks"), |row| {
                let blocks = Some(row.statement.temporary_blocks).filter(|&blocks| blocks > 0);
                blocks.map(|blocks| rate(row.each(blocks as f64))).into()
            }),
            (number("WAL"), |row| {
                row.statement.wal_bytes.map(|bytes| bytes_each(row.each(bytes as f64))).into()
            }),
        ],
    );
    table
        .with_note("per call, from pg_stat_statements over the whole stage, with warm-up and drain")
        .filled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DatabaseUse;
    use crate::report::example_record;

    #[test]
    fn the_statements_of_the_run_and_long_ones_of_others_are_named() {
        let statement = |query: &str, is_own: bool, exec_us: f64| StatementUse {
            query: query.to_owned(),
            is_own,
            calls: 2_000,
            rows: 200_000,
            exec_us,
            blocks_hit: 206_000,
            wal_bytes: Some(0),
            ..StatementUse::default()
        };
        let mut record = example_record();
        record.stages[0].database = Some(DatabaseUse {
            statements: vec![
                StatementUse { jit_us: 40_000.0, ..statement("select\n  1", true, 160_000.0) },
                statement("vacuum t", false, 40_000.0),
                statement("select now()", false, 10.0),
            ],
            ..DatabaseUse::default()
        });
        let facts = crate::report::document::facts(|document| {
            statements(document, &record.stages[0]);
        });
        let lines: Vec<_> = facts.iter().flat_map(|fact| &fact.texts).collect();
        assert_eq!(
            lines,
            [
                "select 1: 80.0 µs each, 2,000 calls, 100 rows, 103 blocks, JIT 25%",
                "vacuum t: 20.0 µs each, 2,000 calls, 100 rows, 103 blocks"
            ]
        );
        assert_eq!(facts[1].label, "others");
        assert_eq!(table(&record).unwrap().rows.len(), 3);
        assert_eq!(shortened("éééé", 3), "ééé…");
    }
}
