//! Generates the batches of one session: their rows and their encoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use riops_wire::{copy, frontend};

use super::rows::{TEXTS, binary_piece, text_piece};
use crate::workload::Generator;
use crate::workload::texts::Texts;
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::unknown::Mark;
use crate::workload::values::int_of;
use riops_model::plan::Method;

/// The stream of transactions of one session.
#[derive(Debug)]
pub(super) struct LoadGenerator {
    pub(super) method: Method,
    pub(super) texts: Texts,
    /// First unassigned row. All sessions share it, so no session waits for the slowest, unless each has its own rows.
    pub(super) first: Arc<AtomicU64>,
    /// End of the rows.
    pub(super) end: u64,
    pub(super) batch: u64,
    /// Batch sizes in the order of their statements; used only by inserts.
    pub(super) sizes: Vec<u64>,
    /// COPY statement; used only by COPY FROM STDIN.
    pub(super) copy_sql: String,
}

fn count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

impl LoadGenerator {
    fn insert(&self, first: u64, rows: u64, tx: &mut Transaction) {
        let Some(statement) = self.sizes.iter().position(|&size| size == rows) else {
            return;
        };
        let texts = self.texts;
        tx.execute_with(statement, count(rows * (1 + TEXTS)), |values| {
            for id in first..first + rows {
                values.int(int_of(id));
                for column in 0..TEXTS {
                    values.text(texts.length(), |text| texts.write(id, column, text));
                }
            }
        });
    }

    fn unnest(&self, first: u64, rows: u64, tx: &mut Transaction) {
        let texts = self.texts;
        tx.execute_with(0, count(1 + TEXTS), |values| {
            values.ints(count(rows), (first..first + rows).map(int_of));
            for column in 0..TEXTS {
                values.texts(count(rows), texts.length(), |row, text| {
                    texts.write(first + row as u64, column, text);
                });
            }
        });
    }
}

impl Generator for LoadGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let first = self.first.fetch_add(self.batch, Ordering::Relaxed).min(self.end);
        let rows = self.batch.min(self.end - first);
        if rows == 0 {
            return false;
        }
        tx.begin(0, rows);
        let last = (first + rows - 1).cast_signed();
        tx.writes(Mark { table: 1, first: first.cast_signed(), last, inserts: true });
        match self.method {
            Method::Insert => self.insert(first, rows, tx),
            Method::Unnest => self.unnest(first, rows, tx),
            Method::Copy | Method::CopyBinary => {
                tx.copy(&self.copy_sql, first);
                return true;
            }
            Method::CopyFile => tx.execute(0, &[]),
            Method::Procedure => tx.execute(0, &[first.cast_signed(), rows.cast_signed()]),
        }
        tx.end_step();
        true
    }

    fn piece(&mut self, tx: &mut Transaction, out: &mut Vec<u8>) {
        let Some(next) = tx.next_row() else {
            return;
        };
        let ids = tx.copied_rows();
        let mut sent = next;
        let framed = copy::data(out, |out| {
            sent = match self.method {
                Method::CopyBinary => binary_piece(self.texts, &ids, next, out),
                _ => text_piece(self.texts, ids.end, next, b'\t', out),
            };
            Ok(())
        });
        let last = sent == ids.end;
        tx.sent_rows(sent);
        if last {
            let done = frontend::Message::CopyDone.encode(out);
            debug_assert!(framed.is_ok() && done.is_ok(), "a piece is much smaller than 2 GiB");
        }
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome) {
        // Only the procedure returns a row: the number of rows that it inserted.
        let rows = reply.first_bigint().and_then(|rows| u64::try_from(rows).ok());
        outcome.rows += rows.unwrap_or(0);
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut TransactionOutcome) {
        if self.method != Method::Procedure {
            outcome.rows += rows_in_tag(tag);
        }
        outcome.wrong |= outcome.rows != tx.expected_rows();
    }
}

/// Returns the number of affected rows, the last word of a command tag.
pub(in crate::workload) fn rows_in_tag(tag: &str) -> u64 {
    // Reads the number from its last digit. A number that is too long saturates.
    let (mut rows, mut unit) = (0u64, 1u64);
    for byte in tag.bytes().rev() {
        match byte {
            b'0'..=b'9' => rows = rows.saturating_add(u64::from(byte - b'0').saturating_mul(unit)),
            b' ' => return rows,
            _ => return 0,
        }
        unit = unit.saturating_mul(10);
    }
    0
}
