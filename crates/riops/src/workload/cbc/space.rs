//! How large the table may be: by the disk, and by the memory. Pure.

use crate::plan::copies;

const GB: f64 = 1e9;
/// What a run may take of the disk beside its log, in percent of the table: CLUSTER writes table and index
/// anew, and where it sorts the table instead of following the index, a copy of it in temporary files. With
/// the embedded PostgreSQL 18, which followed the index, it took 230 %.
const PEAK_PERCENT: u64 = 330;
/// From here on most systems show their lasting rates.
const TIMES_MEMORY: f64 = 3.0;

/// What a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of one copy of the settings in the table.
    pub copy_bytes: u64,
    /// Bytes to which the server lets its log grow.
    pub log_bytes: u64,
}

impl Space {
    fn table_bytes(self, size_gb: f64) -> u64 {
        copies(size_gb).saturating_mul(self.copy_bytes).saturating_mul(PEAK_PERCENT) / 100
    }

    /// At most, for a nominal size.
    #[must_use]
    pub fn bytes(self, size_gb: f64) -> u64 {
        self.table_bytes(size_gb).saturating_add(self.log_bytes)
    }

    /// The largest nominal size that so many bytes have room for, to a tenth of a gigabyte.
    #[must_use]
    pub fn largest_size_gb(self, free_bytes: u64) -> f64 {
        let free = free_bytes.saturating_sub(self.log_bytes);
        (free as f64 / self.table_bytes(1.0).max(1) as f64 * 10.0).floor() / 10.0
    }

    /// The same in words.
    #[must_use]
    pub fn text(self, size_gb: f64) -> String {
        format!(
            "{:.2} GB of disk (the table and its index, both once more while CLUSTER writes them anew, a copy where it sorts) and {:.2} GB of log",
            self.table_bytes(size_gb) as f64 / GB,
            self.log_bytes as f64 / GB
        )
    }
}

/// The nominal size whose table is three times this memory.
#[must_use]
pub fn size_for_memory(memory_bytes: u64, copy_bytes: u64) -> f64 {
    let gigabyte = copies(1.0) as f64 * copy_bytes.max(1) as f64;
    (TIMES_MEMORY * memory_bytes as f64 / gigabyte).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Space { copy_bytes: 100_000, log_bytes: 4_000_000_000 };

    #[test]
    fn the_largest_size_fits_and_a_larger_one_does_not() {
        let free = 50_000_000_000;
        let largest = SPACE.largest_size_gb(free);
        assert!((largest - 11.1).abs() < 1e-9, "{largest}");
        assert!(SPACE.bytes(largest) <= free && SPACE.bytes(largest + 0.1) > free);
        assert_eq!(SPACE.largest_size_gb(1_000_000), 0.0);
    }

    #[test]
    fn three_times_the_memory_is_a_size_of_true_bytes() {
        // A nominal GB is 12,501 × 100,000 bytes.
        assert_eq!(size_for_memory(10_000_000_000, 100_000), 24.0);
    }
}
