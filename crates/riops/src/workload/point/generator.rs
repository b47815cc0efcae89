//! Generates the statements of one session: select or update, the row, and the new texts.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::plan::PointOperations;
use crate::workload::Generator;
use crate::workload::keys::RangePicker;
use crate::workload::load::{COLUMNS, TEXTS, rows_in_tag};
use crate::workload::texts::Texts;
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::values::int_of;

// Positions in the operations of the stage.
pub(super) const OPERATION_SELECT: usize = 0;
pub(super) const OPERATION_UPDATE: usize = 1;

/// The stream of transactions of one session.
#[derive(Debug)]
pub(super) struct PointGenerator {
    op: PointOperations,
    keys: RangePicker,
    rng: Xoshiro256PlusPlus,
    /// Texts that updates write, new ones each time.
    texts: Texts,
    /// Allowed lengths of a text, in ascending order.
    lengths: Vec<usize>,
    statements: u64,
    updates: u64,
}

impl PointGenerator {
    pub(super) fn new(
        op: PointOperations,
        keys: RangePicker,
        rng: Xoshiro256PlusPlus,
        texts: Texts,
        lengths: &[u32],
    ) -> Self {
        let lengths = lengths.iter().map(|&length| length as usize).collect();
        Self { op, keys, rng, texts, lengths, statements: 0, updates: 0 }
    }

    /// Returns whether the next statement is an update. The share is deterministic, not random: after any
    /// number of statements the number of updates deviates by less than one.
    fn update_is_next(&self) -> bool {
        let (updates, all) = (u128::from(self.updates), u128::from(self.statements));
        100 * (2 * updates + 1) < 2 * u128::from(self.op.update_percent) * (all + 1)
    }
}

impl Generator for PointGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let update = self.update_is_next();
        // The picker returns numbers from 1, the keys start at 0.
        let id = int_of(self.keys.pick(&mut self.rng) - 1);
        tx.begin(if update { OPERATION_UPDATE } else { OPERATION_SELECT }, 1);
        if update {
            // Without selects, the update is the only statement.
            let statement = usize::from(self.op.update_percent < 100);
            let (texts, number) = (self.texts, self.updates);
            tx.execute_with(statement, COLUMNS, |values| {
                values.int(id);
                for column in 0..TEXTS {
                    values.text(texts.length(), |text| texts.write(number, column, text));
                }
            });
            self.updates += 1;
        } else {
            tx.execute_with(0, 1, |values| values.int(id));
        }
        tx.end_step();
        self.statements += 1;
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
        let mut columns = 0;
        for text in reply.texts() {
            columns += 1;
            // Letters and digits are one byte each.
            outcome.wrong |= text.is_none_or(|text| !self.lengths.contains(&text.len()));
        }
        outcome.wrong |= columns != TEXTS;
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut TransactionOutcome) {
        if tx.operation() == OPERATION_UPDATE {
            outcome.rows += rows_in_tag(tag);
        }
        // Every key exists once: any other number means a lost or duplicated row.
        outcome.wrong |= outcome.rows != 1;
    }
}
