//! Size of a dataset in relation to the caches, which determines what a run on it measures.

use std::fmt;

use serde::Serialize;

/// Sizes of a dataset and of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DatasetFit {
    /// Size of tables and indexes, in bytes.
    pub bytes: u64,
    /// `shared_buffers`, in bytes.
    pub shared_buffers_bytes: u64,
    /// Memory of the server machine, in bytes, if it is this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl fmt::Display for DatasetFit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| format!("{} MB", bytes.div_ceil(1 << 20));
        let buffers = megabytes(self.shared_buffers_bytes);
        write!(formatter, "{} in tables and indexes: ", megabytes(self.bytes))?;
        match self.memory_bytes {
            _ if self.bytes <= self.shared_buffers_bytes => {
                write!(formatter, "fits in shared_buffers ({buffers}): measures CPU and memory")
            }
            Some(memory) if self.bytes <= memory => write!(
                formatter,
                "fits in memory, but not in shared_buffers ({buffers}): measures the page cache, with --cold the device"
            ),
            Some(_) => write!(
                formatter,
                "fits neither in shared_buffers ({buffers}) nor in memory: measures the device"
            ),
            None => write!(
                formatter,
                "does not fit in shared_buffers ({buffers}); the memory size of the server machine is unknown"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_smallest_cache_that_the_dataset_fits_in() {
        let text = |bytes, memory_bytes| {
            DatasetFit { bytes, shared_buffers_bytes: 128 << 20, memory_bytes }.to_string()
        };
        assert!(text(128 << 20, Some(1 << 30)).contains("fits in shared_buffers (128 MB)"));
        assert!(
            text(129 << 20, Some(1 << 30)).contains("fits in memory, but not in shared_buffers")
        );
        assert!(text(2 << 30, Some(1 << 30)).contains("fits neither"));
        assert!(text(2 << 30, None).contains("is unknown"));
    }
}
