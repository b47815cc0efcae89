//! The batches of one session: which rows, in which form.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use riops_wire::{copy, frontend};

use super::rows::{TEXTS, binary_piece, binary_row_bytes, text_piece};
use crate::plan::Method;
use crate::workload::Generator;
use crate::workload::texts::Texts;
use crate::workload::transaction::{Outcome, Reply, Transaction};

/// Which rows a session loads.
#[derive(Debug, Clone)]
pub(super) enum Share {
    /// The next batch that no session has taken: none of them waits for the slowest.
    Next {
        /// The first row that is not taken yet.
        first: Arc<AtomicU64>,
        /// The rows of all.
        rows: u64,
    },
    /// These, in one batch.
    Own(Range<u64>),
}

impl Share {
    /// Takes up to `batch` rows.
    fn take(&mut self, batch: u64) -> Range<u64> {
        match self {
            Self::Next { first, rows } => {
                let first = first.fetch_add(batch, Ordering::Relaxed).min(*rows);
                first..(*rows).min(first + batch)
            }
            Self::Own(ids) => std::mem::replace(ids, ids.end..ids.end),
        }
    }
}

/// The stream of one session.
#[derive(Debug)]
pub(super) struct LoadGenerator {
    pub(super) method: Method,
    pub(super) texts: Texts,
    pub(super) share: Share,
    pub(super) batch: u64,
    /// The sizes of batches, each of which has a statement of its own; only of inserts.
    pub(super) sizes: Vec<u64>,
    /// Only of copies.
    pub(super) copy_sql: String,
}

/// A key as the table has it: plans allow no larger one.
fn key(id: u64) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
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
                values.int(key(id));
                for column in 0..TEXTS {
                    values.text(texts.length(), |text| texts.write(id, column, text));
                }
            }
        });
        tx.end();
    }

    fn unnest(&self, first: u64, rows: u64, tx: &mut Transaction) {
        let texts = self.texts;
        tx.execute_with(0, count(1 + TEXTS), |values| {
            values.ints(count(rows), (first..first + rows).map(key));
            for column in 0..TEXTS {
                values.texts(count(rows), texts.length(), |row, text| {
                    texts.write(first + row as u64, column, text);
                });
            }
        });
        tx.end();
    }
}

impl Generator for LoadGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        let ids = self.share.take(self.batch);
        let (first, rows) = (ids.start, ids.end - ids.start);
        if rows == 0 {
            return false;
        }
        tx.begin(0, rows);
        match self.method {
            Method::Insert => self.insert(first, rows, tx),
            Method::Unnest => self.unnest(first, rows, tx),
            Method::Copy | Method::CopyBinary => tx.copy(&self.copy_sql, first),
            Method::CopyFile => {
                tx.execute_with(0, 0, |_| {});
                tx.end();
            }
            Method::Procedure => {
                tx.execute_with(0, 2, |values| {
                    values.bigint(first.cast_signed());
                    values.bigint(rows.cast_signed());
                });
                tx.end();
            }
        }
        true
    }

    fn piece(&mut self, tx: &mut Transaction, out: &mut Vec<u8>) {
        let Some(next) = tx.next_row() else {
            return;
        };
        let ids = tx.end_row() - tx.rows_asked()..tx.end_row();
        let mut sent = next;
        let framed = copy::data(out, |out| {
            sent = match self.method {
                Method::CopyBinary => {
                    binary_piece(self.texts, &ids, next, binary_row_bytes(self.texts), out)
                }
                _ => text_piece(self.texts, ids.end, next, b'\t', out),
            };
            Ok(())
        });
        let last = sent == ids.end;
        tx.sent_rows(sent, last);
        if last {
            let done = frontend::Message::CopyDone.encode(out);
            debug_assert!(framed.is_ok() && done.is_ok(), "a piece is far below 2 GiB");
        }
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut Outcome) {
        // Only the procedure has one: the rows that it has inserted.
        let rows = reply.first_bigint().and_then(|rows| u64::try_from(rows).ok());
        outcome.rows += rows.unwrap_or(0);
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut Outcome) {
        if self.method != Method::Procedure {
            outcome.rows += rows_of(tag);
        }
        outcome.wrong |= outcome.rows != tx.rows_asked();
    }
}

/// The rows that a completed statement says it has touched: the last word of its tag.
pub(in crate::workload) fn rows_of(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|rows| rows.parse().ok()).unwrap_or(0)
}
