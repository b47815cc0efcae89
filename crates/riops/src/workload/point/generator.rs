//! The statements of one session: select or update, which row, and what is written into it.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::plan::PointOperations;
use crate::workload::Generator;
use crate::workload::keys::RangePicker;
use crate::workload::load::{COLUMNS, TEXTS, rows_of};
use crate::workload::texts::Texts;
use crate::workload::transaction::{Outcome, Reply, Transaction};

/// Positions in the operations of the stage.
pub(super) const OPERATION_SELECT: usize = 0;
pub(super) const OPERATION_UPDATE: usize = 1;

/// The stream of one session.
#[derive(Debug)]
pub(super) struct PointGenerator {
    op: PointOperations,
    keys: RangePicker,
    rng: Xoshiro256PlusPlus,
    /// What updates write: a new text each time.
    texts: Texts,
    /// The lengths that a text may have, from the shortest.
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

    /// A deterministic proportion, not a coin: after any number of statements the updated share is
    /// off by less than one of them.
    fn update_is_next(&self) -> bool {
        let (updates, all) = (u128::from(self.updates), u128::from(self.statements));
        100 * (2 * updates + 1) < 2 * u128::from(self.op.update_percent) * (all + 1)
    }
}

impl Generator for PointGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let update = self.update_is_next();
        // The picker counts from 1, the keys from 0.
        let id = i32::try_from(self.keys.pick(&mut self.rng) - 1).unwrap_or(i32::MAX);
        tx.begin(if update { OPERATION_UPDATE } else { OPERATION_SELECT }, 1);
        if update {
            // Where nothing is selected, the update is the only statement.
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
        tx.end();
        self.statements += 1;
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut Outcome) {
        outcome.rows += 1;
        let mut columns = 0;
        for text in reply.texts() {
            columns += 1;
            // A text of letters and digits has as many characters as bytes.
            outcome.wrong |= text.is_none_or(|text| !self.lengths.contains(&text.len()));
        }
        outcome.wrong |= columns != TEXTS;
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut Outcome) {
        if tx.operation() == OPERATION_UPDATE {
            outcome.rows += rows_of(tag);
        }
        // Every key is there: no row, or two, is a lost or a doubled one.
        outcome.wrong |= outcome.rows != 1;
    }
}
