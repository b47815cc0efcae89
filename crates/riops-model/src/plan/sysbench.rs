//! The tests of the workload `oltp`, taken from sysbench.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use crate::units::text::nearest;

/// The tests of sysbench.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are sysbench's")]
pub enum OltpTest {
    #[default]
    ReadWrite,
    ReadOnly,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
    MultiInsert,
    MultiValueInsert,
    SimpleRanges,
    RandomPoints,
    RandomRanges,
    SequentialScan,
    PrimarykeyScan,
    IndexScan,
    SumScan,
    Join,
    BulkInsert,
    SelectOne,
}

/// Each test, with its name and the name of its file in sysbench.
const TESTS: [(OltpTest, &str, &str); 20] = [
    (OltpTest::ReadWrite, "read-write", "oltp_read_write"),
    (OltpTest::ReadOnly, "read-only", "oltp_read_only"),
    (OltpTest::WriteOnly, "write-only", "oltp_write_only"),
    (OltpTest::PointSelect, "point-select", "oltp_point_select"),
    (OltpTest::UpdateIndex, "update-index", "oltp_update_index"),
    (OltpTest::UpdateNonIndex, "update-non-index", "oltp_update_non_index"),
    (OltpTest::Insert, "insert", "oltp_insert"),
    (OltpTest::Delete, "delete", "oltp_delete"),
    (OltpTest::MultiInsert, "multi-insert", "oltp_multi_insert"),
    (OltpTest::MultiValueInsert, "multi-value-insert", "oltp_multi_value_insert"),
    (OltpTest::SimpleRanges, "simple-ranges", "oltp_simple_ranges"),
    (OltpTest::RandomPoints, "random-points", "select_random_points"),
    (OltpTest::RandomRanges, "random-ranges", "select_random_ranges"),
    (OltpTest::SequentialScan, "sequential-scan", "oltp_sequential_scan"),
    (OltpTest::PrimarykeyScan, "primarykey-scan", "oltp_primarykey_scan"),
    (OltpTest::IndexScan, "index-scan", "oltp_index_scan"),
    (OltpTest::SumScan, "sum-scan", "oltp_sum_scan"),
    (OltpTest::Join, "join", "oltp_join"),
    (OltpTest::BulkInsert, "bulk-insert", "bulk_insert"),
    (OltpTest::SelectOne, "select-one", "select_one"),
];

impl OltpTest {
    /// Returns the names of the files in sysbench.
    pub fn sysbench_names() -> impl Iterator<Item = &'static str> {
        TESTS.iter().map(|(.., name)| *name)
    }

    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        TESTS.iter().find(|(test, ..)| *test == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the name of its file in sysbench.
    pub fn sysbench_name(self) -> &'static str {
        TESTS.iter().find(|(test, ..)| *test == self).map_or("", |(.., name)| name)
    }
}

impl FromStr for OltpTest {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let text = text.trim_end_matches(".lua");
        let plain = text.replace('_', "-");
        let entry = TESTS.iter().find(|(_, name, sysbench)| *name == plain || *sysbench == text);
        entry.map(|(test, ..)| *test).ok_or_else(|| {
            let names = || TESTS.iter().flat_map(|(_, name, sysbench)| [*name, *sysbench]);
            let expected = if let Some(name) = nearest(text, names()) {
                format!("did you mean {name}?")
            } else {
                let names = TESTS.map(|(_, name, _)| name).join(", ");
                format!("expected {names}, or a sysbench name such as oltp_read_write")
            };
            PlanError(format!("unknown test \"{text}\": {expected}"))
        })
    }
}

impl fmt::Display for OltpTest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_tests_by_name_and_by_sysbench_name() {
        for (test, name, sysbench) in TESTS {
            assert_eq!(name.parse(), Ok(test));
            assert_eq!(sysbench.parse(), Ok(test));
            assert_eq!((test.as_str(), test.sysbench_name()), (name, sysbench));
        }
        assert_eq!("read_write".parse(), Ok(OltpTest::ReadWrite));
        assert_eq!("oltp_insert.lua".parse(), Ok(OltpTest::Insert));
        assert!("oltp".parse::<OltpTest>().is_err());
    }
}
