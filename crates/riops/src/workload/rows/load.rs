//! The jobs that fill a table: COPY of rows made here, or INSERT of rows made in the server where
//! only the server can say in which order they go.

use rand::RngExt;
use riops_wire::copy;

use crate::plan::{Order, RowsDataset};
use crate::server::Flavor;
use crate::workload::fill;
use crate::workload::keys::{Permutation, Purpose, mix, stream};
use crate::workload::tables::{CopySource, Job};

const COPY: &str = include_str!("../../../../../sql/rows/copy.sql");
const COPY_YUGABYTEDB: &str = include_str!("../../../../../sql/rows/copy.yugabytedb.sql");
const PROBE_ORDER: &str = include_str!("../../../../../sql/rows/probe_order.sql");
const INSERT: &str = include_str!("../../../../../sql/rows/insert.sql");

/// Bytes of COPY data that are sent at once: more than a socket's buffer takes, little enough for
/// the processor's cache.
const PIECE_BYTES: usize = 64 * 1024;

/// The name of a table, numbered from 1.
pub(super) fn table_name(number: u32) -> String {
    format!("rows_{number:04}")
}

/// The job of each number, which together bring every key from 1 to the number of rows once.
pub(super) fn jobs(
    dataset: &RowsDataset,
    table: u32,
    flavor: Flavor,
) -> Box<dyn Fn(u64) -> Job + Send + Sync> {
    let dataset = dataset.clone();
    match (&dataset.order, flavor) {
        (Order::Scattered | Order::Key, _) => {
            Box::new(move |number| copy_job(&dataset, table, number, flavor))
        }
        (Order::Hash, Flavor::YugabyteDb) => {
            Box::new(move |number| insert_job(&dataset, table, number, "yb_hash_code(mykey)"))
        }
        (Order::Hash, Flavor::PostgreSql) => {
            // hashint8 is the hash that PostgreSQL itself partitions a bigint by.
            Box::new(move |number| insert_job(&dataset, table, number, "hashint8(mykey)"))
        }
        (Order::Sql(expression), _) => {
            let expression = expression.clone();
            Box::new(move |number| insert_job(&dataset, table, number, &expression))
        }
    }
}

/// An expression that the server does not understand is better known before the old dataset is
/// dropped.
pub(super) fn probes(dataset: &RowsDataset) -> Vec<String> {
    match &dataset.order {
        Order::Sql(expression) => vec![fill(PROBE_ORDER, &[("order", expression)])],
        Order::Scattered | Order::Key | Order::Hash => Vec::new(),
    }
}

fn copy_job(dataset: &RowsDataset, table: u32, number: u64, flavor: Flavor) -> Job {
    let copy = match flavor {
        Flavor::PostgreSql => COPY,
        Flavor::YugabyteDb => COPY_YUGABYTEDB,
    };
    let first = number * dataset.batch;
    let rows = dataset.batch.min(dataset.rows - first);
    Job::Copy {
        sql: fill(copy, &[("table", &table_name(table))]),
        rows,
        source: source(dataset, table, first, rows),
    }
}

/// The rows at the positions `first`… of the table.
fn source(dataset: &RowsDataset, table: u32, first: u64, rows: u64) -> CopySource {
    let seed = mix(dataset.seed ^ u64::from(table));
    let placement = (dataset.order == Order::Scattered)
        .then(|| Permutation::new(dataset.rows, mix(seed ^ Purpose::Placement as u64)));
    let mut scratch = stream(seed, Purpose::Scratch, first);
    let scratch_max = dataset.rows.cast_signed();
    let mut positions = first..first + rows;
    let mut started = false;
    Box::new(move |out| {
        if !started {
            copy::binary_header(out);
            started = true;
        }
        for position in positions.by_ref() {
            let key = placement.map_or(position, |placement| placement.get(position)) + 1;
            copy::binary_row(out, 3);
            copy::binary_bigint(out, key.cast_signed());
            copy::binary_bigint(out, scratch.random_range(0..=scratch_max));
            // An empty text: the server pads it to the filler's length.
            out.extend_from_slice(&0i32.to_be_bytes());
            if out.len() >= PIECE_BYTES {
                return true;
            }
        }
        copy::binary_trailer(out);
        false
    })
}

fn insert_job(dataset: &RowsDataset, table: u32, number: u64, order: &str) -> Job {
    let batches = dataset.rows.div_ceil(dataset.batch);
    let first = number + 1;
    // Keys first, first + batches, … up to rows.
    let rows = (dataset.rows - first) / batches + 1;
    let sql = fill(
        INSERT,
        &[
            ("table", table_name(table).as_str()),
            ("rows", &dataset.rows.to_string()),
            ("first", &first.to_string()),
            ("batches", &batches.to_string()),
            ("order", order),
        ],
    );
    Job::Sql { sql, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The keys that a COPY job sends, in order.
    fn keys(job: Job) -> Vec<u64> {
        let Job::Copy { mut source, rows, .. } = job else { panic!("no COPY") };
        let mut data = Vec::new();
        while source(&mut data) {}
        let body = &data[19..data.len() - 2];
        let keys: Vec<_> = body
            .chunks(2 + 12 + 12 + 4)
            .map(|row| u64::from_be_bytes(row[6..14].try_into().unwrap()))
            .collect();
        assert_eq!(keys.len() as u64, rows);
        keys
    }

    fn dataset(rows: u64, batch: u64, order: Order) -> RowsDataset {
        RowsDataset { rows, batch, order, seed: 5, ..RowsDataset::default() }
    }

    proptest! {
        #[test]
        fn the_jobs_bring_every_key_once_whatever_the_remainder(rows in 1u64..3_000, batch in 1u64..3_500) {
            let dataset = dataset(rows, batch, Order::Scattered);
            let job = jobs(&dataset, 1, Flavor::PostgreSql);
            let mut found: Vec<_> = (0..rows.div_ceil(batch)).flat_map(|number| keys(job(number))).collect();
            found.sort_unstable();
            prop_assert!(found.into_iter().eq(1..=rows));
        }

        #[test]
        fn the_insert_jobs_count_every_row_once(rows in 1u64..3_000, batch in 1u64..3_500) {
            let dataset = dataset(rows, batch, Order::Hash);
            let job = jobs(&dataset, 1, Flavor::PostgreSql);
            let total: u64 = (0..rows.div_ceil(batch))
                .map(|number| match job(number) {
                    Job::Sql { rows, .. } => rows,
                    Job::Copy { .. } => 0,
                })
                .sum();
            prop_assert_eq!(total, rows);
        }
    }

    #[test]
    fn scattered_neighbours_are_far_apart_and_tables_differ() {
        let dataset = dataset(100_000, 100_000, Order::Scattered);
        let first = keys(jobs(&dataset, 1, Flavor::PostgreSql)(0));
        let near = first.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 100).count();
        // 200 of 100,000 by chance, standard deviation 14.
        assert!(near < 300, "{near}");
        assert_ne!(first, keys(jobs(&dataset, 2, Flavor::PostgreSql)(0)));
        assert_eq!(first, keys(jobs(&dataset, 1, Flavor::PostgreSql)(0)));
    }

    #[test]
    fn rows_in_key_order_come_in_key_order() {
        let found = keys(jobs(&dataset(10, 4, Order::Key), 1, Flavor::PostgreSql)(1));
        assert_eq!(found, [5, 6, 7, 8]);
    }
}
