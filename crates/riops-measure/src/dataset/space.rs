//! Whether a dataset fits into the free space of the server.

use std::path::PathBuf;

use super::error::{DatasetError, Result};
use super::lock::OnWait;
use crate::host::machine;
use crate::server::{Connection, ConnectionError, shares_files};
use crate::workload::fill;
use crate::workload::tables::Footprint;

const SQL: &str = include_str!("../../sql/dataset/space.sql");
/// Below this size, no notice is sent if the free space is unknown.
const NOTICE_BYTES: u64 = 1_000_000_000;

/// The directory in which the server stores new tables.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Its path and its free space in bytes, if it is on this machine and can be observed.
    free: Option<(PathBuf, u64)>,
    /// Maximum size of the WAL, in bytes.
    log_bytes: u64,
    /// Size of the tables that are replaced, in bytes.
    replaced_bytes: u64,
}

impl Place {
    /// Finds the directory. `mark` is the comment of the tables that are replaced. An error of the server leaves
    /// the free space unknown.
    pub(super) fn find(
        connection: &mut Connection,
        may_be_local: bool,
        mark: &str,
    ) -> Result<Self, ConnectionError> {
        let row = match connection.query(&fill(SQL, &[("mark", mark)])) {
            Err(ConnectionError::Server(_)) => return Ok(Self::default()),
            rows => rows?.into_iter().next().unwrap_or_default(),
        };
        let mut columns = row.into_iter();
        let path = columns.next().flatten().map(PathBuf::from);
        let mut bytes = || columns.next().flatten().and_then(|text| text.parse().ok()).unwrap_or(0);
        let (log_bytes, replaced_bytes) = (bytes(), bytes());
        let is_local = may_be_local && shares_files(connection)?;
        let free = path.filter(|_| is_local).and_then(|path| {
            let free_bytes = machine::free_bytes(&path)?;
            Some((path, free_bytes))
        });
        Ok(Self { free, log_bytes, replaced_bytes })
    }

    /// Adds the size of tables that are replaced although riops did not create them.
    pub(super) fn replacing(self, bytes: u64) -> Self {
        Self { replaced_bytes: self.replaced_bytes.saturating_add(bytes), ..self }
    }

    /// Fails if the dataset may need more than the free space. If that is unknown and the dataset is large,
    /// sends a notice. `skip` is how the check is skipped, as text.
    pub(super) fn require(
        self,
        skip: &str,
        footprint: Footprint,
        notice: OnWait<'_>,
    ) -> Result<()> {
        let Footprint { tables_bytes, indexes_bytes } = footprint;
        let stored_bytes = tables_bytes.saturating_add(indexes_bytes);
        // An index is sorted in temporary files of about its size.
        let sorted_bytes = indexes_bytes;
        // Every row is written to the WAL, which the server recycles after each checkpoint.
        let log_bytes = self.log_bytes.min(stored_bytes);
        let need_bytes = stored_bytes.saturating_add(sorted_bytes).saturating_add(log_bytes);
        let need = || {
            format!(
                "{} of disk space (tables and indexes {}, sorting {}, WAL {})",
                gigabytes(need_bytes),
                gigabytes(stored_bytes),
                gigabytes(sorted_bytes),
                gigabytes(log_bytes)
            )
        };
        match self.free {
            Some((path, free_bytes)) => {
                let free_bytes = free_bytes.saturating_add(self.replaced_bytes);
                if need_bytes > free_bytes {
                    let (need, free) = (need(), gigabytes(free_bytes));
                    let skip = skip.to_owned();
                    return Err(DatasetError::NoSpace { need, free, path, skip });
                }
            }
            None if need_bytes >= NOTICE_BYTES => {
                notice(&format!(
                    "the free disk space of the server is unknown: the dataset needs about {}",
                    need()
                ));
            }
            None => {}
        }
        Ok(())
    }
}

/// A size as text.
fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOOTPRINT: Footprint =
        Footprint { tables_bytes: 3_000_000_000, indexes_bytes: 1_000_000_000 };

    fn place(free_bytes: Option<u64>, replaced_bytes: u64) -> Place {
        let free = free_bytes.map(|bytes| (PathBuf::from("/data"), bytes));
        Place { free, log_bytes: 2_000_000_000, replaced_bytes }
    }

    #[test]
    fn tables_indexes_sorting_and_wal_must_fit() {
        let require = |place: Place| place.require("`riops x`", FOOTPRINT, &mut |_| panic!());
        assert!(require(place(Some(7_000_000_000), 0)).is_ok());
        assert!(require(place(Some(6_000_000_000), 1_000_000_000)).is_ok(), "they are replaced");
        let error = require(place(Some(6_900_000_000), 0)).unwrap_err().to_string();
        assert_eq!(
            error,
            "the dataset needs about 7.00 GB of disk space (tables and indexes 4.00 GB, sorting 1.00 GB, WAL 2.00 GB), but only 6.90 GB are free in /data: use fewer rows, free some space, or skip this check with `riops x`"
        );
    }

    #[test]
    fn unknown_free_space_is_reported_for_a_large_dataset() {
        let mut notices = Vec::new();
        place(None, 0)
            .require("`riops x`", FOOTPRINT, &mut |text| notices.push(text.to_owned()))
            .unwrap();
        let small = Footprint { tables_bytes: 1_000_000, indexes_bytes: 0 };
        place(None, 0)
            .require("`riops x`", small, &mut |text| notices.push(text.to_owned()))
            .unwrap();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].contains("7.00 GB"), "{notices:?}");
    }
}
