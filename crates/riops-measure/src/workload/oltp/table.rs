//! The tables of sysbench: how they are created and filled, and their expected contents.

use riops_wire::copy;

use super::OltpDataset;
use super::bulk;
use super::texts::{self, C, PAD};
use crate::server::{Dialect, Feature};
use crate::workload::check::{Bounds, Integers, Ledger};
use crate::workload::fill;
use crate::workload::keys::{Purpose, RangePicker, stream};
use crate::workload::tables::{Dataset, Footprint, Job, Table};
use crate::workload::values::{int, int_of, text};
use riops_model::record::{Check, Effects};

const CREATE_TABLE: &str = include_str!("../../../sql/oltp/create_table.sql");
const CREATE_PRIMARY_KEY: &str = include_str!("../../../sql/oltp/create_primary_key.sql");
const CREATE_ID_INDEX: &str = include_str!("../../../sql/oltp/create_id_index.sql");
const CREATE_INDEX: &str = include_str!("../../../sql/oltp/create_index.sql");
const COPY: &str = include_str!("../../../sql/oltp/copy.sql");
const COPY_FROZEN: &str = include_str!("../../../sql/oltp/copy_frozen.sql");
const NEXT_ID: &str = include_str!("../../../sql/oltp/next_id.sql");
const SETTLE: &str = include_str!("../../../sql/oltp/settle.sql");
const CONTENTS: &str = include_str!("../../../sql/oltp/contents.sql");

/// Number of rows per transaction of the load: small enough that even a small dataset keeps several
/// connections busy.
const BATCH: u64 = 10_000;

/// Returns the tables and the jobs that fill them in parallel, also within a table.
pub(super) fn filled(dataset: &OltpDataset, dialect: Dialect) -> Dataset {
    let mut dataset = dataset.clone();
    if dataset.serial_cache_size == 0 {
        dataset.serial_cache_size = dialect.sequence_cache;
    }
    let indexes = 1 + u64::from(dataset.create_secondary);
    let footprint = Footprint::of_table(dataset.table_size, COLUMNS_BYTES, indexes);
    let tables = (1..=dataset.tables).map(|ordinal| table(&dataset, dialect, ordinal)).collect();
    Dataset {
        parameters: serde_json::to_value(&dataset).unwrap_or_default(),
        footprint: footprint.times(dataset.tables.into()),
        tables,
        ..Dataset::default()
    }
}

/// Bytes of the columns of a row: two integers, and two texts of fixed length after their length.
const COLUMNS_BYTES: u64 = 4 + 4 + 121 + 61;

fn table(dataset: &OltpDataset, dialect: Dialect, ordinal: u32) -> Table {
    let name = format!("{}.sbtest{ordinal}", dataset.schema);
    if dataset.bulk_insert {
        return bulk::table(name, dialect);
    }
    let sql = fill(dialect.sql(COPY), &[("table", &name)]);
    let (rows, seed) = (dataset.table_size, dataset.seed);
    let k = RangePicker::new(dataset.rand_type, rows, 1, seed);
    let job = move |job: u64| {
        let first = job * BATCH + 1;
        let end = (rows + 1).min(first + BATCH);
        let (k, mut rng) =
            (k.clone(), stream(seed, Purpose::Texts, u64::from(ordinal) << 40 | job));
        Job::copy(sql.clone(), first..end, move |id, out| {
            copy::binary_row(out, 4);
            int(out, int_of(id));
            int(out, int_of(k.pick(&mut rng)));
            for length in [C, PAD] {
                text(out, length, |text| texts::write(&mut rng, text));
            }
        })
    };
    Table {
        create: create_sql(dataset, dialect, ordinal),
        jobs: rows.div_ceil(BATCH),
        job: Box::new(job),
        frozen_copy: dialect.has(Feature::Heap).then(|| fill(COPY_FROZEN, &[("table", &name)])),
        finish: finish_sql(dataset, dialect, ordinal),
        zeros: Vec::new(),
        rows,
        name,
    }
}

/// Returns the statements that create the empty table. If keys precede rows, also its indexes, as sysbench for
/// YugabyteDB does: on a table with rows, an index would be filled in several steps, each a change of the catalog.
fn create_sql(dataset: &OltpDataset, dialect: Dialect, ordinal: u32) -> Vec<String> {
    let table = format!("{}.sbtest{ordinal}", dataset.schema);
    let id = if dataset.auto_inc { "serial" } else { "integer" };
    let key = match (dataset.secondary, dataset.range_key_partitioning) {
        (true, _) => "",
        (_, true) => ",\n  primary key (id asc)",
        (_, false) => ",\n  primary key (id hash)",
    };
    let options = match dataset.create_table_options.trim() {
        "" => String::new(),
        options => format!("\n  {options}"),
    };
    let values = [
        ("table", table.as_str()),
        ("id", id),
        ("key", key),
        ("split", &split(dataset)),
        ("options", &options),
    ];
    let mut sql = vec![fill(dialect.sql(CREATE_TABLE), &values)];
    let cache = dataset.serial_cache_size;
    if dataset.auto_inc && cache > 0 {
        sql.push(format!("alter sequence {table}_id_seq cache {cache}"));
    }
    if dialect.has(Feature::KeysBeforeRows) {
        sql.extend(index_sql(dataset, dialect, ordinal));
    }
    sql
}

/// Returns the clause with the split points of a range-sharded table.
fn split(dataset: &OltpDataset) -> String {
    let splits = u64::from(dataset.num_table_splits);
    let manual = dataset.range_key_partitioning && dataset.manual_range_splitting;
    if !manual || dataset.secondary || splits < 2 {
        return String::new();
    }
    let points: Vec<_> = (1..splits)
        .map(|position| format!("({})", dataset.table_size * position / splits))
        .collect();
    format!("\n  split at values ({})", points.join(", "))
}

/// Returns the statements that create the indexes, and the primary key if the table was created without it.
fn index_sql(dataset: &OltpDataset, dialect: Dialect, ordinal: u32) -> Vec<String> {
    let name = format!("sbtest{ordinal}");
    let table = format!("{}.{name}", dataset.schema);
    let values = [
        ("table", table.as_str()),
        ("name", &name),
        ("number", &ordinal.to_string()),
        ("order", if dataset.range_key_partitioning { "asc" } else { "hash" }),
    ];
    let needs_key = !dataset.secondary && !dialect.has(Feature::KeysBeforeRows);
    [
        (CREATE_PRIMARY_KEY, needs_key),
        (CREATE_ID_INDEX, dataset.secondary),
        (CREATE_INDEX, dataset.create_secondary),
    ]
    .into_iter()
    .filter(|(_, used)| *used)
    .map(|(template, _)| fill(dialect.sql(template), &values))
    .collect()
}

/// Returns the statements to execute after the load.
fn finish_sql(dataset: &OltpDataset, dialect: Dialect, ordinal: u32) -> Vec<String> {
    let table = format!("{}.sbtest{ordinal}", dataset.schema);
    let values = [("table", table.as_str()), ("size", &dataset.table_size.to_string())];
    let mut sql = if dialect.has(Feature::KeysBeforeRows) {
        Vec::new()
    } else {
        index_sql(dataset, dialect, ordinal)
    };
    if dataset.auto_inc {
        sql.push(fill(NEXT_ID, &values));
    }
    sql.push(fill(dialect.sql(SETTLE), &values));
    sql
}

pub(super) fn contents_sql(dataset: &OltpDataset) -> Vec<String> {
    if dataset.bulk_insert {
        return bulk::contents_sql(dataset);
    }
    let size = dataset.table_size.to_string();
    dataset
        .table_names()
        .map(|table| fill(CONTENTS, &[("table", &table), ("size", &size)]))
        .collect()
}

/// Contents of one table.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    rows: i128,
    loaded: i128,
    k: i128,
    /// Rows with other contents than those that riops or sysbench writes.
    odd: i128,
}

impl Numbers {
    fn total(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |sum, table| Self {
            rows: sum.rows + table.rows,
            loaded: sum.loaded + table.loaded,
            k: sum.k + table.k,
            odd: sum.odd + table.odd,
        })
    }
}

fn numbers(contents: &Integers) -> Vec<Numbers> {
    contents
        .iter()
        .map(|row| match *row.as_slice() {
            [rows, loaded, k, odd] => Numbers { rows, loaded, k, odd },
            _ => Numbers::default(),
        })
        .collect()
}

/// Compares the results of [`contents_sql`] with the changes acknowledged since `baseline`.
pub(super) fn checks(
    dataset: &OltpDataset,
    contents: &Integers,
    baseline: &Integers,
    ledger: &Ledger,
) -> Vec<Check> {
    let (after, mut before) = (numbers(contents), numbers(baseline));
    before.resize(after.len(), Numbers::default());
    let by_table = |((ordinal, name), (after, before)): ((u32, String), (&Numbers, &Numbers))| {
        let (done, in_doubt) = ledger.of_table(ordinal, dataset.tables)?;
        Some(changes_of(&name, before, done, after, in_doubt, ledger.open_runs))
    };
    let tables = (1..).zip(dataset.table_names()).zip(after.iter().zip(&before));
    let checks: Option<Vec<Vec<Check>>> = tables.map(by_table).collect();
    // Earlier versions of riops stored only the effects on all tables together.
    let mut checks = checks.map_or_else(
        || {
            let (before, after) = (Numbers::total(&before), Numbers::total(&after));
            let (done, in_doubt) = (ledger.effects.total(), ledger.effects_unknown.total());
            changes_of("all tables", &before, done, &after, in_doubt, ledger.open_runs)
        },
        |checks| checks.concat(),
    );
    let (odd, before) = (Numbers::total(&after).odd, Numbers::total(&before).odd);
    checks.push(if dataset.adopted && !dataset.bulk_insert {
        // The texts of another program may be shorter, and updates write texts of the full length.
        let name = "rows with texts of unexpected length".to_owned();
        let check = crate::workload::check::between(name, Bounds::new(0, 0, before, 0), odd);
        Check { expected: format!("0 to {before}"), unresolved: 0, ..check }
    } else {
        let name = if dataset.bulk_insert {
            "rows whose k is not their id"
        } else {
            "rows whose texts are not 119 and 59 characters long"
        };
        crate::workload::check::exact(name.to_owned(), 0, odd)
    });
    checks
}

/// Compares the numbers of a table, or of all tables together, with its acknowledged changes.
fn changes_of(
    subject: &str,
    before: &Numbers,
    done: Effects,
    after: &Numbers,
    in_doubt: Effects,
    open_runs: u64,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |name: &str, expected: i128, (fewer, more): (u64, u64), actual: i128| {
        // An open run may have deleted rows as well as inserted some.
        let bounds = Bounds::new(expected, fewer.into(), more.into(), open_runs);
        let name = format!("{name} of {subject}");
        checks.push(crate::workload::check::between(name, bounds.without_least_if_open(), actual));
    };
    // Only loaded rows are deleted.
    let replaced = i128::from(done.reinserted) - i128::from(done.deleted);
    let (fewer, more) = (in_doubt.deleted, in_doubt.reinserted);
    let rows = before.rows + i128::from(done.inserted) + replaced;
    add("rows", rows, (fewer, more + in_doubt.inserted), after.rows);
    if before.loaded + after.loaded > 0 {
        let loaded = before.loaded + replaced;
        add("rows in the loaded id range", loaded, (fewer, more), after.loaded);
    }
    // The k of a deleted row is unknown.
    if done.deleted + in_doubt.deleted == 0 {
        let k = before.k + i128::from(done.added);
        add("sum of k", k, (0, in_doubt.added), after.k);
    }
    checks
}
