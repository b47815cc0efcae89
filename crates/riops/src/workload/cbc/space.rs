//! Computes the size of the table from the available disk space and memory. Pure.

use crate::plan::copies;

const GB: f64 = 1e9;
/// Peak disk usage of a run without WAL, in percent of the table size: CLUSTER rewrites table and index,
/// and if it sorts the table instead of following the index, it also needs a copy in temporary files. With
/// the embedded PostgreSQL 18, which followed the index, the peak was 230 %.
const PEAK_PERCENT: u64 = 330;
/// Size of the table relative to memory from which most systems show sustained rates.
const TIMES_MEMORY: f64 = 3.0;

/// Disk space needed by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size of one copy of the settings in the table, in bytes.
    pub copy_bytes: u64,
    /// Maximum size of the WAL, in bytes.
    pub log_bytes: u64,
}

impl Space {
    fn table_bytes(self, size_gb: f64) -> u64 {
        copies(size_gb).saturating_mul(self.copy_bytes).saturating_mul(PEAK_PERCENT) / 100
    }

    /// Returns the maximum number of bytes for a nominal size.
    pub fn bytes(self, size_gb: f64) -> u64 {
        self.table_bytes(size_gb).saturating_add(self.log_bytes)
    }

    /// Returns the largest nominal size that fits into `free_bytes`, rounded down to a tenth of a gigabyte.
    pub fn largest_size_gb(self, free_bytes: u64) -> f64 {
        let free = free_bytes.saturating_sub(self.log_bytes);
        (free as f64 / self.table_bytes(1.0).max(1) as f64 * 10.0).floor() / 10.0
    }

    /// Describes the disk space needed for a nominal size.
    pub fn text(self, size_gb: f64) -> String {
        format!(
            "{:.2} GB of disk space (table and index, a second copy of both during CLUSTER, and temporary files if it sorts) and {:.2} GB of WAL",
            self.table_bytes(size_gb) as f64 / GB,
            self.log_bytes as f64 / GB
        )
    }
}

/// Returns the nominal size of a table that is three times as large as the memory.
pub fn size_for_memory(memory_bytes: u64, copy_bytes: u64) -> f64 {
    let gigabyte = copies(1.0) as f64 * copy_bytes.max(1) as f64;
    (TIMES_MEMORY * memory_bytes as f64 / gigabyte).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Space { copy_bytes: 100_000, log_bytes: 4_000_000_000 };

    #[test]
    fn returns_the_largest_size_that_fits() {
        let free = 50_000_000_000;
        let largest = SPACE.largest_size_gb(free);
        assert!((largest - 11.1).abs() < 1e-9, "{largest}");
        assert!(SPACE.bytes(largest) <= free && SPACE.bytes(largest + 0.1) > free);
        assert_eq!(SPACE.largest_size_gb(1_000_000), 0.0);
    }

    #[test]
    fn three_times_the_memory_is_computed_from_actual_bytes() {
        // A nominal GB is 12,501 × 100,000 bytes.
        assert_eq!(size_for_memory(10_000_000_000, 100_000), 24.0);
    }
}
