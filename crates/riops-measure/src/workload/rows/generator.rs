//! Generates the transactions of one session: the table, read or update, and the range.

use std::ops::RangeInclusive;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::workload::Generator;
use crate::workload::effects::TransactionEffects;
use crate::workload::keys::{Purpose, RangePicker, stream};
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::unknown::Mark;
use riops_model::plan::{Plan, RowsDataset, RowsRun, UpdateShare};
use riops_model::record::Effects;

// Positions in the operations of the stage.
pub(super) const OPERATION_READ: usize = 0;
pub(super) const OPERATION_UPDATE: usize = 1;

/// Returns the effects of this number of increments in a table.
pub(super) fn increments(table: u32, rows: u64) -> TransactionEffects {
    TransactionEffects::on_table(table, Effects { added: rows, ..Effects::default() })
}

/// Positions of the statements on one table. The position of an unused statement is arbitrary.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TableStatements {
    /// Ordinal of the table, from 1.
    pub(super) ordinal: u32,
    pub(super) read: usize,
    pub(super) update: usize,
}

/// The stream of transactions of one session.
#[derive(Debug)]
pub(super) struct RowsGenerator {
    tables: Vec<TableStatements>,
    update_percent: u64,
    /// Whether updates leave no trace in the rows.
    index_only: bool,
    read: Operation,
    update: Operation,
    rng: Xoshiro256PlusPlus,
    /// Rows so far, or transactions, depending on the kind of share: `done` counts all, `updated` the
    /// updates.
    done: u64,
    updated: u64,
}

#[derive(Debug)]
struct Operation {
    batch: u64,
    /// Weight of a transaction in the share.
    weight: u64,
    ranges: RangePicker,
}

impl RowsGenerator {
    /// Creates the generator of a session that uses these tables of the dataset.
    pub(super) fn new(
        run: &RowsRun,
        dataset: &RowsDataset,
        tables: RangeInclusive<u32>,
        plan: &Plan,
        session: u32,
    ) -> Self {
        let operation = |batch| Operation {
            batch,
            weight: match run.update_share {
                UpdateShare::Rows => batch,
                UpdateShare::Transactions => 1,
            },
            ranges: RangePicker::new(run.distribution, dataset.rows, batch, plan.seed),
        };
        // The statements of each table follow each other, the read first.
        let per_table = usize::from(run.reads()) + usize::from(run.updates());
        let table = |(position, ordinal): (usize, u32)| {
            let read = per_table * position;
            TableStatements { ordinal, read, update: read + usize::from(run.reads()) }
        };
        Self {
            tables: tables.enumerate().map(table).collect(),
            update_percent: run.update_percent.into(),
            index_only: run.index_only,
            read: operation(run.batch),
            update: operation(run.update_batch()),
            rng: stream(plan.seed, Purpose::Ranges, session.into()),
            done: 0,
            updated: 0,
        }
    }

    /// Returns whether the next transaction is an update. The share is deterministic, not random: the next
    /// transaction is an update if the updated share at the middle of that update is below the requested
    /// share. After any number of transactions it deviates by less than one of them.
    fn is_update_next(&self) -> bool {
        let weight = u128::from(self.update.weight);
        let after = 2 * u128::from(self.updated) + weight;
        let total = u128::from(self.done) + weight;
        100 * after < 2 * u128::from(self.update_percent) * total
    }
}

impl Generator for RowsGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let updating = self.is_update_next();
        let table = match self.tables.len() {
            1 => self.tables.first(),
            count => self.tables.get(self.rng.random_range(0..count)),
        };
        let Some(table) = table else {
            return false;
        };
        let (statement, operation, kind) = if updating {
            (table.update, &self.update, OPERATION_UPDATE)
        } else {
            (table.read, &self.read, OPERATION_READ)
        };
        let first = operation.ranges.pick(&mut self.rng);
        let last = first + operation.batch - 1;
        tx.begin(kind, operation.batch);
        tx.execute(statement, &[first.cast_signed(), last.cast_signed()]);
        if updating && !self.index_only {
            let (first, last) = (first.cast_signed(), last.cast_signed());
            tx.changes(increments(table.ordinal, operation.batch));
            tx.writes(Mark { table: table.ordinal, first, last, inserts: false });
        }
        tx.end_step();
        self.done += operation.weight;
        if updating {
            self.updated += operation.weight;
        }
        true
    }

    #[inline]
    fn reply(&mut self, tx: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome) {
        let count = reply.first_bigint().and_then(|count| u64::try_from(count).ok());
        outcome.rows += count.unwrap_or(0);
        if let Some((table, _)) = tx.effects().iter().flat_map(TransactionEffects::iter).next() {
            outcome.effects = increments(table, outcome.rows);
        }
        // All keys exist, so a range has as many rows as keys.
        outcome.wrong |= count != Some(tx.expected_rows());
    }
}
