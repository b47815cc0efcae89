//! The tables of pgbench: how they are created and filled, and their expected contents.

use riops_wire::copy;

use crate::server::{Dialect, Feature};
use crate::workload::check::{Bounds, Integers, Ledger};
use crate::workload::effects::TransactionEffects;
use crate::workload::fill;
use crate::workload::tables::{Dataset, Footprint, Job, Table};
use crate::workload::values::{int, int_of};
use riops_model::plan::script::{Builtin, PartitionMethod, ScriptDataset};
use riops_model::record::{Check, Effects};
use riops_model::units::sql::{self, identifier};

/// Added to the random difference of a transaction, so that the ledger contains no negative numbers.
const DELTA_OFFSET: i64 = 5_000;

const HISTORY: &str = include_str!("../../../sql/script/history.sql");
const TELLERS: &str = include_str!("../../../sql/script/tellers.sql");
const ACCOUNTS: &str = include_str!("../../../sql/script/accounts.sql");
const PARTITION: &str = include_str!("../../../sql/script/partition.sql");
const BRANCHES: &str = include_str!("../../../sql/script/branches.sql");
const PRIMARY_KEY: &str = include_str!("../../../sql/script/primary_key.sql");
const FOREIGN_KEYS: &str = include_str!("../../../sql/script/foreign_keys.sql");
const CONTENTS: &str = include_str!("../../../sql/script/contents.sql");
const SETTLE: &str = include_str!("../../../sql/oltp/settle.sql");

/// Names of the tables, in the order in which pgbench creates them.
pub(super) const TABLES: [&str; 4] =
    ["pgbench_history", "pgbench_tellers", "pgbench_accounts", "pgbench_branches"];
/// Columns that are summed, in the same order.
const NUMBERS: [&str; 4] = ["delta", "tbalance", "abalance", "bbalance"];
/// Accounts and tellers of a branch.
pub const ACCOUNTS_EACH: u64 = 100_000;
const TELLERS_EACH: u64 = 10;
/// From this scale on, the key of the accounts is a `bigint`, as in pgbench.
const BIGINT_SCALE: u64 = 20_000;
/// Rows per transaction of the load.
const BATCH: u64 = 200_000;
/// Bytes of the columns of an account: three integers, and a text of fixed length after its length.
const ACCOUNT_BYTES: u64 = 4 + 4 + 4 + 85;

/// Returns the tables and the jobs that fill them in parallel.
pub(super) fn filled(dataset: &ScriptDataset, dialect: Dialect) -> Dataset {
    let finish = if dataset.foreign_keys { foreign_keys(dataset) } else { Vec::new() };
    Dataset {
        parameters: serde_json::to_value(dataset).unwrap_or_default(),
        tables: (0..TABLES.len()).map(|index| table(dataset, dialect, index)).collect(),
        finish,
        footprint: footprint(dataset),
        ..Dataset::default()
    }
}

/// Returns the size of the tables and indexes.
pub fn footprint(dataset: &ScriptDataset) -> Footprint {
    let rows = dataset.scale.saturating_mul(ACCOUNTS_EACH);
    let footprint = Footprint::of_table(rows, ACCOUNT_BYTES, 1);
    let share = u64::from(dataset.fillfactor.max(1));
    Footprint { tables_bytes: footprint.tables_bytes.saturating_mul(100) / share, ..footprint }
}

/// Returns the statements that create the foreign keys.
pub(super) fn foreign_keys(dataset: &ScriptDataset) -> Vec<String> {
    let all = fill(FOREIGN_KEYS, &[("schema", &sql::name(&dataset.schema))]);
    all.split(';').map(|sql| sql.trim().to_owned()).collect()
}

fn table(dataset: &ScriptDataset, dialect: Dialect, index: usize) -> Table {
    let name = TABLES.get(index).copied().unwrap_or_default();
    let full_name = format!("{}.{name}", sql::name(&dataset.schema));
    let (rows_per_branch, count, columns) = match name {
        "pgbench_tellers" => (TELLERS_EACH, 3, "tid, bid, tbalance"),
        "pgbench_accounts" => (ACCOUNTS_EACH, 4, "aid, bid, abalance, filler"),
        "pgbench_branches" => (1, 2, "bid, bbalance"),
        _ => (0, 0, ""),
    };
    let rows = dataset.scale * rows_per_branch;
    let (is_branch, is_account) = (name == "pgbench_branches", name == "pgbench_accounts");
    let has_bigint = is_account && dataset.scale >= BIGINT_SCALE;
    let row = move |id: u64, out: &mut Vec<u8>| {
        copy::binary_row(out, count);
        if has_bigint {
            copy::binary_bigint(out, id.cast_signed());
        } else {
            int(out, int_of(id));
        }
        if !is_branch {
            int(out, int_of((id - 1) / rows_per_branch + 1));
        }
        int(out, 0);
        if is_account {
            // The server pads the empty filler with blanks.
            out.extend_from_slice(&0i32.to_be_bytes());
        }
    };
    let copy = format!("copy {full_name} ({columns}) from stdin (format binary");
    let sql = format!("{copy})");
    // A partitioned table cannot be loaded frozen.
    let may_freeze = dialect.has(Feature::Heap) && !(is_account && dataset.partitions > 0);
    let job = move |job: u64| {
        let first = job * BATCH + 1;
        let end = (rows + 1).min(first + BATCH);
        Job::copy(sql.clone(), first..end, row)
    };
    Table {
        create: create_sql(dataset, dialect, name),
        jobs: rows.div_ceil(BATCH),
        job: Box::new(job),
        frozen_copy: may_freeze.then(|| format!("{copy}, freeze)")),
        finish: finish_sql(dataset, dialect, name),
        zeros: Vec::new(),
        rows,
        name: full_name,
    }
}

/// Returns the statements that create an empty table.
pub(super) fn create_sql(dataset: &ScriptDataset, dialect: Dialect, table: &str) -> Vec<String> {
    let is_partitioned = table == "pgbench_accounts" && dataset.partitions > 0;
    let unlogged = if dataset.unlogged_tables { "unlogged " } else { "" };
    let method = dataset.partition_method.as_str();
    let partitions = format!("\n  partition by {method} (aid)");
    let fillfactor = format!("\n  with (fillfactor = {})", dataset.fillfactor);
    let has_fillfactor = !is_partitioned && dialect.has(Feature::Heap);
    let tablespace = dataset.tablespace.as_ref().map_or_else(String::new, |tablespace| {
        format!("\n  tablespace {}", identifier(tablespace))
    });
    let aid = if dataset.scale >= BIGINT_SCALE { "bigint" } else { "int" };
    let values = [
        // A partitioned table cannot be unlogged, and a permanent table cannot refer to one that is: as in pgbench 18, only
        // the partitions are.
        ("unlogged", if dataset.partitions > 0 { "" } else { unlogged }),
        ("schema", &sql::name(&dataset.schema)),
        ("aid", aid),
        ("partitions", if is_partitioned { &partitions } else { "" }),
        ("fillfactor", if has_fillfactor { &fillfactor } else { "" }),
        ("tablespace", &tablespace),
    ];
    let template = match table {
        "pgbench_history" => HISTORY,
        "pgbench_tellers" => TELLERS,
        "pgbench_accounts" => ACCOUNTS,
        _ => BRANCHES,
    };
    let mut sql = vec![fill(template, &values)];
    if is_partitioned {
        sql.extend((1..=dataset.partitions).map(|partition| {
            let values = [
                ("unlogged", unlogged),
                ("schema", &sql::name(&dataset.schema)),
                ("number", &partition.to_string()),
                ("values", &bounds_of(dataset, partition)),
                ("fillfactor", &fillfactor),
                ("tablespace", &tablespace),
            ];
            fill(PARTITION, &values)
        }));
    }
    if dialect.has(Feature::KeysBeforeRows) {
        sql.extend(primary_key(dataset, table));
    }
    sql
}

/// Returns the keys of a partition, numbered from 1.
fn bounds_of(dataset: &ScriptDataset, partition: u32) -> String {
    let count = dataset.partitions;
    if dataset.partition_method == PartitionMethod::Hash {
        return format!("with (modulus {count}, remainder {})", partition - 1);
    }
    let size = (dataset.scale * ACCOUNTS_EACH).div_ceil(count.into());
    let bound = |partition: u32| match partition {
        0 => "minvalue".to_owned(),
        last if last == count => "maxvalue".to_owned(),
        _ => (u64::from(partition) * size + 1).to_string(),
    };
    format!("from ({}) to ({})", bound(partition - 1), bound(partition))
}

/// Returns the statement that creates the primary key of a table, if it has one.
pub(super) fn primary_key(dataset: &ScriptDataset, table: &str) -> Option<String> {
    let key = match table {
        "pgbench_tellers" => "tid",
        "pgbench_accounts" => "aid",
        "pgbench_branches" => "bid",
        _ => return None,
    };
    let tablespace = dataset.index_tablespace.as_ref().map_or_else(String::new, |tablespace| {
        format!(" using index tablespace {}", identifier(tablespace))
    });
    let values = [
        ("schema", &*sql::name(&dataset.schema)),
        ("table", table),
        ("key", key),
        ("tablespace", &tablespace),
    ];
    Some(fill(PRIMARY_KEY, &values))
}

/// Returns the statements to execute after the load.
fn finish_sql(dataset: &ScriptDataset, dialect: Dialect, table: &str) -> Vec<String> {
    let name = format!("{}.{table}", sql::name(&dataset.schema));
    let settle = fill(dialect.sql(SETTLE), &[("table", &name)]);
    let key = primary_key(dataset, table).filter(|_| !dialect.has(Feature::KeysBeforeRows));
    key.into_iter().chain([settle]).collect()
}

/// Returns the queries for the number of rows and the sum of the balances of each table.
pub(super) fn contents_sql(dataset: &ScriptDataset) -> Vec<String> {
    let sql = |(table, column): (&&str, &&str)| {
        let values =
            [("schema", &*sql::name(&dataset.schema)), ("table", table), ("number", column)];
        fill(CONTENTS, &values)
    };
    TABLES.iter().zip(&NUMBERS).map(sql).collect()
}

/// Returns the number of rows and the sum of the balances of each table.
fn numbers(contents: &Integers) -> [(i128, i128); 4] {
    std::array::from_fn(|table| match contents.get(table).map(Vec::as_slice) {
        Some(&[rows, sum]) => (rows, sum),
        _ => (0, 0),
    })
}

/// Compares the results of [`contents_sql`] with the transactions acknowledged since `baseline`.
pub(super) fn checks(contents: &Integers, baseline: &Integers, ledger: &Ledger) -> Vec<Check> {
    if baseline.is_empty() {
        let why = "runs that are not verified have changed the tables, and the next verified run takes their contents as the baseline";
        return vec![crate::workload::check::unknown("balances and history", why)];
    }
    let (after, before) = (numbers(contents), numbers(baseline));
    let (both, unknown) = (ledger.effects.on_table(1), ledger.effects_unknown.on_table(1));
    let (all, all_unknown) = (ledger.effects.total(), ledger.effects_unknown.total());
    // The sum of the differences, and by how much it may differ.
    let sum = |effects: Effects| {
        i128::from(effects.added) - i128::from(effects.inserted) * i128::from(DELTA_OFFSET)
    };
    let range = |unknown: Effects| i128::from(unknown.inserted) * i128::from(DELTA_OFFSET);
    let bounds = |expected: i128, fewer: i128, more: i128| {
        Bounds::new(expected, fewer, more, ledger.open_runs).without_least_if_open()
    };
    let mut checks = Vec::new();
    for (table, ((before, _), (after, _))) in TABLES.iter().zip(before.iter().zip(&after)) {
        let name = format!("rows of {table}");
        if *table == "pgbench_history" {
            let (expected, more) = (before + i128::from(all.inserted), all_unknown.inserted);
            checks.push(crate::workload::check::between(
                name,
                bounds(expected, 0, more.into()),
                *after,
            ));
        } else {
            checks.push(crate::workload::check::exact(name, *before, *after));
        }
    }
    let sums = TABLES.iter().zip(NUMBERS).zip(before.iter().zip(&after));
    for ((table, column), ((_, before), (_, after))) in sums {
        let is_in_both = matches!(*table, "pgbench_history" | "pgbench_accounts");
        let (done, unknown) = if is_in_both { (all, all_unknown) } else { (both, unknown) };
        let range = range(unknown);
        let name = format!("sum of {column} in {table}");
        checks.push(crate::workload::check::between(
            name,
            bounds(before + sum(done), range, range),
            *after,
        ));
    }
    // True after each transaction, whether its outcome is known or not.
    let difference = |[(_, history), _, (_, accounts), _]: [(i128, i128); 4]| accounts - history;
    let name = "sum of abalance minus sum of delta".to_owned();
    checks.push(crate::workload::check::exact(name, difference(before), difference(after)));
    checks
}

/// Returns the effects of a transaction of a built-in script with this random difference. The number in the ledger
/// depends on the script: `simple-update` changes only some of the tables.
#[inline]
pub(super) fn effects_of(builtin: Builtin, delta: i64) -> TransactionEffects {
    let table = if builtin == Builtin::TpcbLike { 1 } else { 2 };
    let added = u64::try_from(delta + DELTA_OFFSET).unwrap_or(0);
    TransactionEffects::on_table(table, Effects { inserted: 1, added, ..Effects::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_cover_all_keys() {
        let dataset = ScriptDataset { partitions: 3, ..ScriptDataset::default() };
        let bounds: Vec<_> = (1..=3).map(|partition| bounds_of(&dataset, partition)).collect();
        assert_eq!(
            bounds,
            ["from (minvalue) to (33335)", "from (33335) to (66669)", "from (66669) to (maxvalue)"]
        );
        let hash = ScriptDataset { partition_method: PartitionMethod::Hash, ..dataset };
        assert_eq!(bounds_of(&hash, 3), "with (modulus 3, remainder 2)");
    }

    #[test]
    fn sums_and_history_match_the_acknowledged_transactions() {
        let baseline = [vec![2, 7], vec![10, 3], vec![100_000, 9], vec![1, 3]];
        let mut ledger = Ledger::default();
        let done = |inserted: i64, delta: i64| {
            let added = (inserted * DELTA_OFFSET + delta).unsigned_abs();
            Effects { inserted: inserted.unsigned_abs(), added, ..Effects::default() }
        };
        ledger.effects.add_to(1, done(3, -40));
        ledger.effects.add_to(2, done(1, 15));
        let after = [vec![6, -18], vec![10, -37], vec![100_000, -16], vec![1, -37]];
        let held = |contents: &[Vec<i128>], ledger: &Ledger| {
            checks(contents, &baseline, ledger).into_iter().filter(|check| !check.held).count()
        };
        assert_eq!((checks(&after, &baseline, &ledger).len(), held(&after, &ledger)), (9, 0));
        // A lost transaction of four changes: the history, its sum, and the three balances.
        let mut lost = after.clone();
        (lost[0][0], lost[0][1], lost[2][1]) = (5, -33, -31);
        assert_eq!(held(&lost, &ledger), 3);
        ledger.effects_unknown.add_to(1, done(1, 0));
        let mut applied = after.clone();
        (applied[0][0], applied[0][1], applied[2][1]) = (7, -8, -6);
        (applied[1][1], applied[3][1]) = (-27, -27);
        assert_eq!(held(&applied, &ledger), 0);
        let uncounted = checks(&after, &[], &ledger);
        assert!(matches!(uncounted.as_slice(), [Check { held: false, unknown: true, .. }]));
        // A part of a transaction is never there.
        applied[2][1] = -16;
        assert_eq!(held(&applied, &ledger), 1);
    }
}
