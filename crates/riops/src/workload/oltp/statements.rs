//! The statements of sysbench's tests, and by which access path each has to reach its rows.

use std::fmt::Write as _;

use super::{OltpDataset, OltpRun};
use crate::plan::OltpTest;
use crate::server::Flavor;
use crate::workload::access::AccessPath;
use crate::workload::values::{BPCHAR_OID, INT_OID};
use crate::workload::{Statement, fill};

const POINT_SELECT: &str = include_str!("../../../../../sql/oltp/point_select.sql");
const SIMPLE_RANGE: &str = include_str!("../../../../../sql/oltp/simple_range.sql");
const SUM_RANGE: &str = include_str!("../../../../../sql/oltp/sum_range.sql");
const ORDER_RANGE: &str = include_str!("../../../../../sql/oltp/order_range.sql");
const DISTINCT_RANGE: &str = include_str!("../../../../../sql/oltp/distinct_range.sql");
const INDEX_UPDATE: &str = include_str!("../../../../../sql/oltp/index_update.sql");
const NON_INDEX_UPDATE: &str = include_str!("../../../../../sql/oltp/non_index_update.sql");
const DELETE: &str = include_str!("../../../../../sql/oltp/delete.sql");
const INSERT: &str = include_str!("../../../../../sql/oltp/insert.sql");
const INSERT_AUTO: &str = include_str!("../../../../../sql/oltp/insert_auto.sql");
const SEQUENTIAL_SCAN: &str = include_str!("../../../../../sql/oltp/sequential_scan.sql");
const INDEX_SCAN: &str = include_str!("../../../../../sql/oltp/index_scan.sql");
const JOIN: &str = include_str!("../../../../../sql/oltp/join.sql");

/// A kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    /// With an id that the client makes.
    Insert,
    /// With an id that the server makes.
    InsertAuto,
    /// Many rows in one statement.
    InsertMany,
    RandomPoints,
    RandomRanges,
    SequentialScan,
    IndexScan,
    Join,
}

impl Kind {
    /// The beginning of a statement's name.
    fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "point_select",
            Self::SimpleRange => "simple_range",
            Self::SumRange => "sum_range",
            Self::OrderRange => "order_range",
            Self::DistinctRange => "distinct_range",
            Self::IndexUpdate => "index_update",
            Self::NonIndexUpdate => "non_index_update",
            Self::Delete => "delete",
            Self::Insert | Self::InsertAuto => "insert",
            Self::InsertMany => "insert_many",
            Self::RandomPoints => "random_points",
            Self::RandomRanges => "random_ranges",
            Self::SequentialScan => "sequential_scan",
            Self::IndexScan => "index_scan",
            Self::Join => "join",
        }
    }

    /// Whether it reads a range of ids.
    pub(super) fn is_range(self) -> bool {
        matches!(
            self,
            Self::SimpleRange
                | Self::SumRange
                | Self::OrderRange
                | Self::DistinctRange
                | Self::Join
        )
    }
}

/// What a transaction is made of: kinds of statements in their order, and how many of each. Every
/// entry has a table of its own, as in sysbench.
pub(super) fn recipe(run: &OltpRun, dataset: &OltpDataset) -> Vec<(Vec<Kind>, u32)> {
    let insert = if dataset.auto_inc { Kind::InsertAuto } else { Kind::Insert };
    let one = |kind, count| (vec![kind], count);
    let ranges = |count: u32| if run.range_selects { count } else { 0 };
    let reads = || {
        vec![
            one(Kind::PointSelect, run.point_selects),
            one(Kind::SimpleRange, ranges(run.simple_ranges)),
            one(Kind::SumRange, ranges(run.sum_ranges)),
            one(Kind::OrderRange, ranges(run.order_ranges)),
            one(Kind::DistinctRange, ranges(run.distinct_ranges)),
        ]
    };
    let writes = || {
        vec![
            one(Kind::IndexUpdate, run.index_updates),
            one(Kind::NonIndexUpdate, run.non_index_updates),
            (vec![Kind::Delete, Kind::Insert], run.delete_inserts),
        ]
    };
    let all = match run.test {
        OltpTest::ReadWrite => [reads(), writes()].concat(),
        OltpTest::ReadOnly => reads(),
        OltpTest::WriteOnly => writes(),
        OltpTest::PointSelect => vec![one(Kind::PointSelect, 1)],
        OltpTest::UpdateIndex => vec![one(Kind::IndexUpdate, 1)],
        OltpTest::UpdateNonIndex => vec![one(Kind::NonIndexUpdate, 1)],
        OltpTest::Insert => vec![one(insert, 1)],
        OltpTest::Delete => vec![one(Kind::Delete, 1)],
        OltpTest::MultiInsert => vec![one(insert, run.num_rows_in_insert)],
        OltpTest::MultiValueInsert => vec![one(Kind::InsertMany, 1)],
        OltpTest::RandomPoints => vec![one(Kind::RandomPoints, 1)],
        OltpTest::RandomRanges => vec![one(Kind::RandomRanges, 1)],
        OltpTest::SequentialScan => vec![one(Kind::SequentialScan, 1)],
        OltpTest::PrimarykeyScan => vec![one(Kind::OrderRange, 1)],
        OltpTest::IndexScan => vec![one(Kind::IndexScan, 1)],
        OltpTest::SumScan => vec![one(Kind::SumRange, 1)],
        OltpTest::Join => vec![one(Kind::Join, 1)],
    };
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The kinds of a recipe, each once.
pub(super) fn kinds(recipe: &[(Vec<Kind>, u32)]) -> Vec<Kind> {
    let mut all: Vec<Kind> = Vec::new();
    for kind in recipe.iter().flat_map(|(kinds, _)| kinds) {
        if !all.contains(kind) {
            all.push(*kind);
        }
    }
    all
}

/// A table with all that statements on it depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct On<'a> {
    pub(super) dataset: &'a OltpDataset,
    pub(super) run: &'a OltpRun,
    pub(super) flavor: Flavor,
    /// Its number, from 1.
    pub(super) number: u32,
}

impl On<'_> {
    fn table(&self) -> String {
        format!("{}.sbtest{}", self.dataset.schema, self.number)
    }

    /// The number of the table that this one is joined with: the next.
    fn other(&self) -> u32 {
        self.number % self.dataset.tables + 1
    }

    pub(super) fn statement(&self, kind: Kind) -> Statement {
        let table = self.table();
        let values = [("table", table.as_str())];
        let fill = |template| fill(template, &values);
        let many = |count: u32| count as usize;
        let (sql, parameter_types) = match kind {
            Kind::PointSelect => (fill(POINT_SELECT), vec![INT_OID]),
            Kind::SimpleRange => (fill(SIMPLE_RANGE), vec![INT_OID; 2]),
            Kind::SumRange => (fill(SUM_RANGE), vec![INT_OID; 2]),
            Kind::OrderRange => (fill(ORDER_RANGE), vec![INT_OID; 2]),
            Kind::DistinctRange => (fill(DISTINCT_RANGE), vec![INT_OID; 2]),
            Kind::IndexUpdate => (fill(INDEX_UPDATE), vec![INT_OID]),
            Kind::NonIndexUpdate => (fill(NON_INDEX_UPDATE), vec![BPCHAR_OID, INT_OID]),
            Kind::Delete => (fill(DELETE), vec![INT_OID]),
            Kind::Insert => (fill(INSERT), vec![INT_OID, INT_OID, BPCHAR_OID, BPCHAR_OID]),
            Kind::InsertAuto => (fill(INSERT_AUTO), vec![INT_OID, BPCHAR_OID, BPCHAR_OID]),
            Kind::InsertMany => self.insert_many(),
            Kind::RandomPoints => (
                format!(
                    "select id, k, c, pad from {table} where k in ({})",
                    parameters(1, self.run.random_points)
                ),
                vec![INT_OID; many(self.run.random_points)],
            ),
            Kind::RandomRanges => {
                let ranges: Vec<_> = (0..self.run.number_of_ranges)
                    .map(|range| format!("k between ${} and ${}", 2 * range + 1, 2 * range + 2))
                    .collect();
                (
                    format!("select count(k) from {table} where {}", ranges.join(" or ")),
                    vec![INT_OID; 2 * many(self.run.number_of_ranges)],
                )
            }
            Kind::SequentialScan => {
                (fill(SEQUENTIAL_SCAN), vec![crate::workload::values::BIGINT_OID])
            }
            Kind::IndexScan => (fill(INDEX_SCAN), vec![INT_OID; 2]),
            Kind::Join => {
                let other = format!("{}.sbtest{}", self.dataset.schema, self.other());
                let values = [("table", table.as_str()), ("other", other.as_str())];
                (crate::workload::fill(JOIN, &values), vec![INT_OID; 4])
            }
        };
        Statement { name: format!("{}_{}", kind.name(), self.number), sql, parameter_types }
    }

    fn insert_many(&self) -> (String, Vec<u32>) {
        let columns: &[(&str, u32)] = if self.dataset.auto_inc {
            &[("k", INT_OID), ("c", BPCHAR_OID), ("pad", BPCHAR_OID)]
        } else {
            &[("id", INT_OID), ("k", INT_OID), ("c", BPCHAR_OID), ("pad", BPCHAR_OID)]
        };
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let width = u32::try_from(columns.len()).unwrap_or(0);
        let mut sql = format!("insert into {} ({}) values ", self.table(), names.join(", "));
        for row in 0..self.run.batch_insert_count {
            let comma = if row > 0 { ", " } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(sql, "{comma}({})", parameters(row * width + 1, width));
        }
        let types = columns.iter().map(|(_, oid)| *oid);
        let rows = self.run.batch_insert_count as usize;
        (sql, types.cycle().take(rows * columns.len()).collect())
    }

    /// The promise; `None` where there is none to make.
    pub(super) fn expected(&self, kind: Kind) -> Option<AccessPath> {
        let name = |number: u32| format!("sbtest{number}");
        let key = |number: u32| {
            if self.dataset.secondary {
                format!("xid_{number}")
            } else {
                format!("sbtest{number}_pkey")
            }
        };
        let (table, index) = (name(self.number), key(self.number));
        let on_yugabytedb = self.flavor == Flavor::YugabyteDb;
        // A hash knows no ranges: all tablets are read.
        let hashed = on_yugabytedb && !self.dataset.range_key_partitioning;
        Some(match kind {
            _ if kind.is_range() && hashed => match kind {
                Kind::Join => return None,
                _ => AccessPath::SeqScan { table },
            },
            Kind::PointSelect
            | Kind::SimpleRange
            | Kind::SumRange
            | Kind::OrderRange
            | Kind::DistinctRange => AccessPath::IndexScan { table, index },
            Kind::IndexUpdate | Kind::NonIndexUpdate => AccessPath::UpdateByIndex { table, index },
            Kind::Delete => AccessPath::DeleteByIndex { table, index },
            Kind::Insert | Kind::InsertAuto | Kind::InsertMany => AccessPath::Insert { table },
            Kind::RandomPoints => {
                AccessPath::IndexScan { table, index: format!("k_{}", self.number) }
            }
            // There it depends on settings and on the version.
            Kind::RandomRanges if on_yugabytedb => return None,
            Kind::RandomRanges => {
                AccessPath::BitmapScan { table, index: format!("k_{}", self.number) }
            }
            Kind::SequentialScan => AccessPath::SeqScan { table },
            Kind::IndexScan if on_yugabytedb => AccessPath::SeqScan { table },
            Kind::IndexScan => AccessPath::IndexScan { table, index: format!("k_{}", self.number) },
            Kind::Join => {
                let other = self.other();
                AccessPath::JoinByIndex {
                    tables: [table, name(other)],
                    indexes: [index, key(other)],
                }
            }
        })
    }
}

/// `$7, $8, $9`.
fn parameters(first: u32, count: u32) -> String {
    let all: Vec<_> = (first..first + count).map(|number| format!("${number}")).collect();
    all.join(", ")
}
