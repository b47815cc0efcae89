//! What the server executed, by statement.

use crate::document::Document;
use crate::sections::stage_name;
use crate::table::{Table, number_column, text_column};
use riops_model::record::{Record, StageRecord, StatementUse};
use riops_model::units::format::{bytes_each, count, duration_us, number_of, percent, rate};
use riops_model::units::text::shortened;

/// Statements of the run, and of others, that a text names.
const NAMED_MAX: usize = 3;
/// Other statements with less time than this share of all are not named in a text.
const SHARE_MIN: f64 = 0.05;
/// Maximum number of characters of a statement in a text and in a table.
const TEXT_MAX: usize = 70;
const CELL_MAX: usize = 400;

/// The longest statements, with what an execution took.
pub(crate) fn statements(document: &mut Document, stage: &StageRecord) {
    let all = statement_uses(stage);
    let time = |statement: &StatementUse| statement.exec_us + statement.plan_us;
    let sum: f64 = all.iter().map(time).sum();
    let named = |is_own: bool| {
        let chosen = all.iter().filter(move |statement| statement.is_own == is_own);
        chosen.filter(move |statement| is_own || time(statement) >= SHARE_MIN * sum).take(NAMED_MAX)
    };
    document.lines("statements", named(true).map(text));
    document.lines("others", named(false).map(text));
}

fn statement_uses(stage: &StageRecord) -> &[StatementUse] {
    stage.database.as_ref().map_or(&[], |database| &database.statements)
}

/// What an execution needed: rows, blocks, WAL.
fn text(statement: &StatementUse) -> String {
    let calls = statement.calls.max(1) as f64;
    let per_call = |total: u64| total as f64 / calls;
    let mut parts = vec![
        format!("{} each", duration_us(statement.exec_us / calls)),
        number_of(statement.calls, "call"),
        format!("{} rows", rate(per_call(statement.rows))),
        format!("{} blocks", rate(per_call(statement.blocks_hit + statement.blocks_read))),
    ];
    if let Some(wal) = statement.wal_bytes.filter(|&wal| wal > 0) {
        parts.push(format!("WAL {}", bytes_each(per_call(wal))));
    }
    parts.extend(plans(statement));
    if statement.plan_us > 0.0 {
        parts.push(format!("planning {}", duration_us(statement.plan_us / calls)));
    }
    if statement.jit_us > 0.0 {
        parts.push(format!("JIT {}", percent(statement.jit_us / statement.exec_us.max(1e-9))));
    }
    format!("{}: {}", shortened(&statement.query, TEXT_MAX), parts.join(", "))
}

/// How often a prepared statement was planned for its parameters, and how often it had a generic plan.
fn plans(statement: &StatementUse) -> Option<String> {
    let (custom, generic) = statement.custom_plan_calls.zip(statement.generic_plan_calls)?;
    let [custom_text, generic_text] = [custom, generic].map(count);
    (custom + generic > 0).then(|| format!("{custom_text} custom and {generic_text} generic plans"))
}

/// All statements of all stages.
pub(crate) fn table(record: &Record) -> Table {
    let stages = record.stages.iter();
    let rows = stages
        .flat_map(|stage| statement_uses(stage).iter().map(move |statement| (stage, statement)));
    let table = Table::from_items("statements", rows, |(stage, statement)| {
        let calls = statement.calls.max(1) as f64;
        let per_call = |total: u64| rate(total as f64 / calls);
        let time = |us: f64| duration_us(us / calls);
        let if_any = |us: f64| Some(us).filter(|&us| us > 0.0).map(time);
        let temporary = Some(statement.temporary_blocks).filter(|&blocks| blocks > 0);
        let wal = statement.wal_bytes.map(|bytes| bytes_each(bytes as f64 / calls));
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("of"), if statement.is_own { "run" } else { "others" }.into()),
            (text_column("statement"), shortened(&statement.query, CELL_MAX).into()),
            (number_column("calls"), count(statement.calls).into()),
            (number_column("execution"), time(statement.exec_us).into()),
            (number_column("planning"), if_any(statement.plan_us).into()),
            (text_column("plans").optional(), plans(statement).into()),
            (number_column("JIT"), if_any(statement.jit_us).into()),
            (number_column("rows"), per_call(statement.rows).into()),
            (number_column("blocks hit"), per_call(statement.blocks_hit).into()),
            (number_column("blocks read"), per_call(statement.blocks_read).into()),
            (number_column("dirtied"), per_call(statement.blocks_dirtied).into()),
            (number_column("temporary blocks"), temporary.map(per_call).into()),
            (number_column("WAL"), wal.into()),
        ]
    });
    table
        .with_note("per call, from pg_stat_statements over the whole stage, with warm-up and drain")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::DatabaseUse;

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
                StatementUse {
                    jit_us: 40_000.0,
                    custom_plan_calls: Some(5),
                    generic_plan_calls: Some(1_995),
                    ..statement("select\n  1", true, 160_000.0)
                },
                statement("vacuum t", false, 40_000.0),
                statement("select now()", false, 10.0),
            ],
            ..DatabaseUse::default()
        });
        let facts = crate::document::facts(|document| {
            statements(document, &record.stages[0]);
        });
        let lines: Vec<_> = facts.iter().flat_map(|fact| &fact.texts).collect();
        assert_eq!(
            lines,
            [
                "select 1: 80.0 µs each, 2,000 calls, 100 rows, 103 blocks, 5 custom and 1,995 generic plans, JIT 25%",
                "vacuum t: 20.0 µs each, 2,000 calls, 100 rows, 103 blocks"
            ]
        );
        assert_eq!(facts[1].label, "others");
        assert_eq!(table(&record).rows.len(), 3);
        assert_eq!(shortened("éééé", 3), "ééé…");
    }
}
