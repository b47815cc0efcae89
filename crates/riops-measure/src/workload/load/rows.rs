//! Encodes the rows of the table as COPY data and as CSV, piece by piece. Pure.

use std::io::Write as _;
use std::ops::Range;

use riops_wire::copy;

use crate::workload::tables::PIECE_BYTES;
use crate::workload::texts::Texts;

/// Number of text columns of the table.
pub(in crate::workload) const TEXTS: u64 = 4;
/// Size of the part of a binary row before the texts, in bytes: the number of columns, the length of the key,
/// and the key.
const BINARY_HEAD: usize = 10;
/// Size of the length field before each text, in bytes.
const LENGTH: usize = 4;

/// Returns the number of rows of this size in a piece.
fn piece_rows(row_bytes: usize) -> u64 {
    (PIECE_BYTES / row_bytes).max(1) as u64
}

/// Appends one piece of the rows `ids` in the binary format, starting at row `next`, with the header before
/// the first row and the trailer after the last. Returns the next row.
pub(super) fn binary_piece(texts: Texts, ids: &Range<u64>, next: u64, out: &mut Vec<u8>) -> u64 {
    let row_bytes = BINARY_HEAD + 4 * (LENGTH + texts.length());
    if next == ids.start {
        copy::binary_header(out);
    }
    let end = ids.end.min(next + piece_rows(row_bytes));
    let start = out.len();
    out.resize(start + row_bytes * usize::try_from(end - next).unwrap_or(0), 0);
    let rows = out.get_mut(start..).unwrap_or_default();
    for (id, row) in (next..end).zip(rows.chunks_exact_mut(row_bytes)) {
        binary_row(texts, id, row);
    }
    if end == ids.end {
        copy::binary_trailer(out);
    }
    end
}

fn binary_row(texts: Texts, id: u64, row: &mut [u8]) {
    let (head, columns) = row.split_at_mut(BINARY_HEAD);
    // Five columns; the key has a length of four bytes.
    let [.., a, b, c, d] = id.to_be_bytes();
    head.copy_from_slice(&[0, 5, 0, 0, 0, 4, a, b, c, d]);
    let length = u32::try_from(texts.length()).unwrap_or(u32::MAX).to_be_bytes();
    for (column, value) in (0..).zip(columns.chunks_exact_mut(LENGTH + texts.length())) {
        let (before, text) = value.split_at_mut(LENGTH);
        before.copy_from_slice(&length);
        texts.write(id, column, text);
    }
}

/// Appends one piece of the rows before `end` as lines, starting at row `next`, with `separator` between the
/// values. Returns the next row.
pub(super) fn text_piece(
    texts: Texts,
    end: u64,
    next: u64,
    separator: u8,
    out: &mut Vec<u8>,
) -> u64 {
    // The key has at most ten digits.
    let row_bytes = 11 + 4 * (1 + texts.length());
    let end = end.min(next + piece_rows(row_bytes));
    for id in next..end {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{id}");
        let start = out.len();
        out.resize(start + 4 * (1 + texts.length()), separator);
        let columns = out.get_mut(start..).unwrap_or_default();
        for (column, value) in (0..TEXTS).zip(columns.chunks_exact_mut(1 + texts.length())) {
            if let Some((_, text)) = value.split_first_mut() {
                texts.write(id, column, text);
            }
        }
        out.push(b'\n');
    }
    end
}
