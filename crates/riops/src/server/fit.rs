//! What a dataset fits into, which decides what a run on it measures.

use std::fmt;

use serde::Serialize;

/// A dataset beside the caches that it may fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DatasetFit {
    /// Tables and indexes.
    pub bytes: u64,
    /// The server's own cache.
    pub shared_buffers_bytes: u64,
    /// Memory of the server's machine, where that is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl fmt::Display for DatasetFit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| format!("{} MB", bytes.div_ceil(1 << 20));
        let buffers = megabytes(self.shared_buffers_bytes);
        write!(formatter, "{} in tables and indexes: ", megabytes(self.bytes))?;
        if self.bytes <= self.shared_buffers_bytes {
            return write!(formatter, "fits shared_buffers ({buffers}): measures CPU and memory");
        }
        match self.memory_bytes {
            Some(memory) if self.bytes <= memory => write!(
                formatter,
                "fits memory, not shared_buffers ({buffers}): measures the page cache, with --cold the device"
            ),
            Some(_) => write!(
                formatter,
                "fits neither shared_buffers ({buffers}) nor memory: measures the device"
            ),
            None => write!(
                formatter,
                "does not fit shared_buffers ({buffers}); the memory of the server's machine is unknown here"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_cache_that_holds_it_is_named() {
        let said = |bytes, memory_bytes| {
            DatasetFit { bytes, shared_buffers_bytes: 128 << 20, memory_bytes }.to_string()
        };
        assert!(said(128 << 20, Some(1 << 30)).contains("fits shared_buffers (128 MB)"));
        assert!(said(129 << 20, Some(1 << 30)).contains("fits memory, not shared_buffers"));
        assert!(said(2 << 30, Some(1 << 30)).contains("fits neither"));
        assert!(said(2 << 30, None).contains("is unknown here"));
    }
}
