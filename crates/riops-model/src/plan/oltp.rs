//! The parameters of the workload `oltp`: the options of sysbench, with the same names.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::error::{PlanError, at_least_one, at_most, validate_schema};
use super::keys::Distribution;
use super::policy::{Caches, Protocol};
use super::spec::{Common, DatasetSpec, DatasetTraits, Spec, Traits};
use super::sysbench::OltpTest;

/// Name of the workload and of its dataset.
const NAME: &str = "oltp";
/// Maximum number of tables.
const TABLES_MAX: u32 = 10_000;
/// `id` is an `integer`, and inserts need some of its range.
const TABLE_SIZE_MAX: u64 = 2_000_000_000;
/// Maximum number of statements of one kind in a transaction.
const STATEMENTS_MAX: u32 = 10_000;
/// Maximum number of parameters of a statement in the wire protocol.
const PARAMETERS_MAX: u32 = 65_535;
/// Maximum number of tablets of a table, far more than a cluster supports.
const SPLITS_MAX: u32 = 10_000;

/// The parameters of the dataset of `prepare oltp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of sysbench")]
pub struct OltpDataset {
    /// Schema of the tables.
    #[default = "riops"]
    pub schema: String,
    /// Number of tables: `sbtest1`…
    #[default = 1]
    pub tables: u32,
    /// Rows per table, with ids from 1.
    #[default = 10_000]
    pub table_size: u64,
    /// Whether the ids are auto-increment.
    #[default = true]
    pub auto_inc: bool,
    /// Whether `id` has a secondary index instead of a primary key.
    pub secondary: bool,
    /// Whether `k` is indexed.
    #[default = true]
    pub create_secondary: bool,
    /// Distribution of the values of `k`. Earlier versions of riops loaded uniform ones.
    #[serde(default)]
    #[default(Distribution::SPECIAL)]
    pub rand_type: Distribution,
    /// Cache size of the sequence of `id`; 0: the default of the server.
    pub serial_cache_size: u32,
    /// Whether `id` is range-sharded instead of hash-sharded (`YugabyteDB`).
    pub range_key_partitioning: bool,
    /// Whether a range-sharded table is split at equal steps of `id` (`YugabyteDB`).
    #[default = true]
    pub manual_range_splitting: bool,
    /// Number of tablets of such a table (`YugabyteDB`).
    #[default = 24]
    pub num_table_splits: u32,
    /// Text after `create table (…)`, such as a storage parameter.
    pub create_table_options: String,
    /// Whether the tables are made for `bulk-insert`: with two columns, and empty.
    pub bulk_insert: bool,
    /// Whether the tables were not created by riops. Such tables are never dropped.
    pub adopted: bool,
    /// Random seed of the contents.
    pub seed: u64,
}

impl OltpDataset {
    /// Returns the schema-qualified names of the tables.
    pub fn table_names(&self) -> impl Iterator<Item = String> {
        (1..=self.tables).map(|table| format!("{}.sbtest{table}", self.schema))
    }
}

/// The parameters of `run oltp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default)]
pub struct OltpRun {
    /// Test.
    pub test: OltpTest,
    /// Rows per range query.
    #[default = 100]
    pub range_size: u32,
    /// Selects by id per transaction.
    #[default = 10]
    pub point_selects: u32,
    /// Range selects per transaction.
    #[default = 1]
    pub simple_ranges: u32,
    /// Range selects with a sum.
    #[default = 1]
    pub sum_ranges: u32,
    /// Range selects ordered by a text column.
    #[default = 1]
    pub order_ranges: u32,
    /// Range selects of distinct texts.
    #[default = 1]
    pub distinct_ranges: u32,
    /// Whether a transaction contains these four kinds of range selects.
    #[default = true]
    pub range_selects: bool,
    /// Updates of the indexed column per transaction.
    #[default = 1]
    pub index_updates: u32,
    /// Updates of a text column per transaction.
    #[default = 1]
    pub non_index_updates: u32,
    /// Rows per transaction that are deleted and inserted again.
    #[default = 1]
    pub delete_inserts: u32,
    /// Whether every statement is a separate transaction (autocommit).
    pub skip_trx: bool,
    /// Inserts per transaction of `multi-insert`.
    #[default = 10]
    pub num_rows_in_insert: u32,
    /// Rows per statement of `multi-value-insert` and `bulk-insert`.
    #[default = 4_000]
    pub batch_insert_count: u32,
    /// Values in the list of `random-points`.
    #[default = 10]
    pub random_points: u32,
    /// Ranges in the condition of `random-ranges`.
    #[default = 10]
    pub number_of_ranges: u32,
    /// Difference between the bounds of each such range.
    #[default = 5]
    pub delta: u32,
    /// Whether the statements of a transaction are pipelined.
    pub pipeline: bool,
    /// Distribution of the ids.
    pub distribution: Distribution,
    /// State of the caches at the start.
    pub caches: Caches,
}

impl OltpRun {
    /// Checks the run against a dataset and the protocol.
    ///
    /// # Errors
    /// [`PlanError`] if the dataset or the protocol does not support the statements of the test.
    pub fn validate_for(&self, dataset: &OltpDataset, protocol: Protocol) -> Result<(), PlanError> {
        let (test, wanted) = (self.test, self.test == OltpTest::BulkInsert);
        require!(
            wanted == dataset.bulk_insert,
            "the test {test} requires tables that are prepared with --bulk-insert {wanted}"
        );
        let ranges = self.range_statements() > 0
            || matches!(
                test,
                OltpTest::SequentialScan
                    | OltpTest::PrimarykeyScan
                    | OltpTest::SimpleRanges
                    | OltpTest::SumScan
                    | OltpTest::Join
            );
        require!(
            !ranges || u64::from(self.range_size) <= dataset.table_size,
            "--range-size {} exceeds the {} rows of each table",
            self.range_size,
            dataset.table_size
        );
        let on_k =
            matches!(test, OltpTest::RandomPoints | OltpTest::RandomRanges | OltpTest::IndexScan);
        require!(
            !on_k || dataset.create_secondary,
            "the test {test} requires the index on k: prepare the tables with --create-secondary true"
        );
        let columns = match (test, dataset.auto_inc) {
            (OltpTest::BulkInsert, _) => 2,
            (OltpTest::MultiValueInsert, true) => 3,
            (OltpTest::MultiValueInsert, false) => 4,
            _ => 0,
        };
        let parameters = self.batch_insert_count.saturating_mul(columns);
        require!(
            protocol == Protocol::Simple || parameters <= PARAMETERS_MAX,
            "--batch-insert-count {} requires {parameters} parameters, but a statement can have at most {PARAMETERS_MAX}: use fewer rows or --protocol simple",
            self.batch_insert_count
        );
        Ok(())
    }

    /// Returns whether a test uses the option with this long name. Only the options for the statements of a
    /// transaction depend on the test.
    pub fn uses(test: OltpTest, option: &str) -> bool {
        use OltpTest as Test;
        let has_ranges = matches!(test, Test::ReadWrite | Test::ReadOnly);
        let has_updates = matches!(test, Test::ReadWrite | Test::WriteOnly);
        match option {
            "point-selects" | "sum-ranges" | "order-ranges" | "distinct-ranges"
            | "range-selects" => has_ranges,
            "simple-ranges" => has_ranges || test == Test::SimpleRanges,
            "range-size" => {
                let scans = [
                    Test::SimpleRanges,
                    Test::SequentialScan,
                    Test::PrimarykeyScan,
                    Test::IndexScan,
                    Test::SumScan,
                    Test::Join,
                ];
                has_ranges || scans.contains(&test)
            }
            "delete-inserts" => has_updates,
            "index-updates" => has_updates || test == Test::UpdateIndex,
            "non-index-updates" => has_updates || test == Test::UpdateNonIndex,
            "num-rows-in-insert" => test == Test::MultiInsert,
            "batch-insert-count" => matches!(test, Test::MultiValueInsert | Test::BulkInsert),
            "random-points" => test == Test::RandomPoints,
            "number-of-ranges" | "delta" => test == Test::RandomRanges,
            _ => true,
        }
    }

    /// Whether a transaction of the test consists of several statements that each commit.
    pub fn commits_each_statement(&self) -> bool {
        !self.is_explicit() && sum([self.reads(), self.writes()]) > 1
    }

    /// Whether transactions use explicit BEGIN and COMMIT statements.
    pub fn is_explicit(&self) -> bool {
        let has_several_statements = matches!(
            self.test,
            OltpTest::ReadWrite | OltpTest::ReadOnly | OltpTest::WriteOnly | OltpTest::MultiInsert
        );
        has_several_statements && !self.skip_trx
    }

    fn range_statements(&self) -> u32 {
        match self.test {
            OltpTest::ReadWrite | OltpTest::ReadOnly if self.range_selects => {
                sum([self.simple_ranges, self.sum_ranges, self.order_ranges, self.distinct_ranges])
            }
            _ => 0,
        }
    }

    /// Returns the number of reading statements per transaction.
    pub fn reads(&self) -> u32 {
        match self.test {
            OltpTest::ReadWrite | OltpTest::ReadOnly => {
                sum([self.point_selects, self.range_statements()])
            }
            OltpTest::SimpleRanges => self.simple_ranges,
            OltpTest::PointSelect
            | OltpTest::SelectOne
            | OltpTest::RandomPoints
            | OltpTest::RandomRanges
            | OltpTest::SequentialScan
            | OltpTest::PrimarykeyScan
            | OltpTest::IndexScan
            | OltpTest::SumScan
            | OltpTest::Join => 1,
            _ => 0,
        }
    }

    /// Returns the number of writing statements per transaction.
    pub fn writes(&self) -> u32 {
        match self.test {
            OltpTest::ReadWrite | OltpTest::WriteOnly => {
                let replaced = self.delete_inserts;
                sum([self.index_updates, self.non_index_updates, replaced, replaced])
            }
            OltpTest::UpdateIndex => self.index_updates,
            OltpTest::UpdateNonIndex => self.non_index_updates,
            OltpTest::Insert
            | OltpTest::Delete
            | OltpTest::MultiValueInsert
            | OltpTest::BulkInsert => 1,
            OltpTest::MultiInsert => self.num_rows_in_insert,
            _ => 0,
        }
    }

    /// Whether rows are deleted and inserted again, so that another session's statement may find a row
    /// missing.
    pub fn replaces(&self) -> bool {
        matches!(self.test, OltpTest::ReadWrite | OltpTest::WriteOnly) && self.delete_inserts > 0
    }

    /// Whether the test only inserts rows.
    pub fn inserts(&self) -> bool {
        matches!(self.test, OltpTest::Insert | OltpTest::MultiInsert | OltpTest::MultiValueInsert)
    }
}

impl DatasetSpec for OltpDataset {
    fn traits(&self) -> DatasetTraits {
        DatasetTraits {
            name: NAME,
            provenance: &["seed", "adopted"],
            scale: &["tables", "table_size"],
            ..DatasetTraits::default()
        }
    }

    fn validate(&self) -> Result<(), PlanError> {
        validate_schema(&self.schema)?;
        at_least_one("--tables", self.tables)?;
        if self.bulk_insert {
            require!(
                self.table_size == 0,
                "--table-size has no meaning for the test bulk-insert: its tables are empty at first"
            );
        } else {
            at_least_one("--table-size", self.table_size)?;
        }
        at_most("--tables", self.tables, TABLES_MAX, "")?;
        at_most("--table-size", self.table_size, TABLE_SIZE_MAX, ": the type of id is integer")?;
        if self.range_key_partitioning && self.manual_range_splitting {
            let (splits, rows) = (self.num_table_splits, self.table_size);
            at_least_one("--num-table-splits", splits)?;
            require!(
                splits <= SPLITS_MAX && u64::from(splits) <= rows,
                "--num-table-splits {splits} exceeds the maximum of {SPLITS_MAX} or --table-size {rows}"
            );
        }
        Ok(())
    }
}

impl Spec for OltpRun {
    fn traits(&self) -> Traits {
        Traits {
            name: NAME,
            dataset: (self.test != OltpTest::SelectOne).then_some(NAME),
            counts_transactions: true,
            writes: self.writes() > 0,
            adds_changes: true,
            distribution: Some(self.distribution),
            caches: self.caches,
            can_redraw: true,
            wrong_replies: Some(
                "fewer or more rows than requested, or a text of the wrong length: loaded rows are missing",
            ),
            ..Traits::default()
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        let counts = [
            ("--point-selects", self.point_selects),
            ("--simple-ranges", self.simple_ranges),
            ("--sum-ranges", self.sum_ranges),
            ("--order-ranges", self.order_ranges),
            ("--distinct-ranges", self.distinct_ranges),
            ("--index-updates", self.index_updates),
            ("--non-index-updates", self.non_index_updates),
            ("--delete-inserts", self.delete_inserts),
            ("--num-rows-in-insert", self.num_rows_in_insert),
        ];
        for (option, count) in counts {
            at_most(option, count, STATEMENTS_MAX, "")?;
        }
        at_least_one("--range-size", self.range_size)?;
        at_least_one("--random-points", self.random_points)?;
        at_least_one("--number-of-ranges", self.number_of_ranges)?;
        at_least_one("--num-rows-in-insert", self.num_rows_in_insert)?;
        at_least_one("--batch-insert-count", self.batch_insert_count)?;
        for (option, values) in [
            ("--random-points", self.random_points),
            ("--number-of-ranges", self.number_of_ranges.saturating_mul(2)),
        ] {
            require!(
                values <= PARAMETERS_MAX,
                "{option} requires {values} parameters, but a statement can have at most {PARAMETERS_MAX}"
            );
        }
        require!(
            self.reads() > 0 || self.writes() > 0,
            "the test {} has no statements: every count is 0",
            self.test
        );
        require!(
            common.pipeline <= 1,
            "--pipeline takes no number for oltp: it pipelines the statements of one transaction"
        );
        let option = if self.skip_trx { "--skip-trx" } else { "statements that commit separately" };
        require!(
            !self.pipeline || !(self.skip_trx || self.commits_each_statement()),
            "--pipeline cannot be combined with {option}: it pipelines the statements of one transaction"
        );
        Ok(())
    }
}

/// Adds counts without overflow: the counts of a stored plan have no limits, because it is not validated again.
fn sum<const COUNTS: usize>(counts: [u32; COUNTS]) -> u32 {
    counts.into_iter().fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_counts_match_sysbench() {
        let run = |test| OltpRun { test, ..OltpRun::default() };
        let read_write = run(OltpTest::ReadWrite);
        assert_eq!((read_write.reads(), read_write.writes()), (14, 4));
        let without = OltpRun { range_selects: false, ..read_write };
        assert_eq!((without.reads(), without.writes()), (10, 4));
        assert_eq!((run(OltpTest::ReadOnly).reads(), run(OltpTest::ReadOnly).writes()), (14, 0));
        assert_eq!((run(OltpTest::WriteOnly).reads(), run(OltpTest::WriteOnly).writes()), (0, 4));
        let updates = |test| OltpRun { index_updates: 2, non_index_updates: 3, ..run(test) };
        assert_eq!(updates(OltpTest::UpdateIndex).writes(), 2);
        assert_eq!(updates(OltpTest::UpdateNonIndex).writes(), 3);
        assert!(updates(OltpTest::UpdateIndex).commits_each_statement());
        assert!(!run(OltpTest::UpdateIndex).commits_each_statement());
        assert!(!run(OltpTest::ReadWrite).commits_each_statement());
        assert_eq!(run(OltpTest::MultiInsert).writes(), 10);
        assert!(run(OltpTest::MultiInsert).is_explicit() && !run(OltpTest::Insert).is_explicit());
    }

    #[test]
    fn rejects_invalid_values_with_the_name_of_the_option() {
        type Change = fn(&mut OltpDataset);
        let run = OltpRun::default();
        let dataset = OltpDataset::default();
        let none = OltpRun {
            index_updates: 0,
            non_index_updates: 0,
            delete_inserts: 0,
            test: OltpTest::WriteOnly,
            ..run.clone()
        };
        let none = crate::plan::Plan { work: none.into(), ..crate::plan::Plan::default() };
        assert!(none.validate().unwrap_err().to_string().contains("has no statements"));
        let wide = OltpRun { range_size: 10_001, ..run.clone() };
        assert!(wide.validate_for(&dataset, Protocol::Prepared).is_err());
        let no_ranges = OltpRun { range_selects: false, ..wide };
        assert_eq!(no_ranges.validate_for(&dataset, Protocol::Prepared), Ok(()));
        let many =
            OltpRun { test: OltpTest::MultiValueInsert, batch_insert_count: 21_846, ..run.clone() };
        assert!(many.validate_for(&dataset, Protocol::Prepared).is_err());
        assert_eq!(many.validate_for(&dataset, Protocol::Simple), Ok(()));
        let on_k = OltpRun { test: OltpTest::RandomPoints, ..run };
        let bare = OltpDataset { create_secondary: false, ..dataset.clone() };
        assert!(on_k.validate_for(&bare, Protocol::Prepared).is_err());
        let cases: [(Change, &str); 5] = [
            (|dataset| dataset.schema = "My".to_owned(), "--schema"),
            (|dataset| dataset.tables = 0, "--tables"),
            (|dataset| dataset.tables = 10_001, "--tables"),
            (|dataset| dataset.table_size = 3_000_000_000, "--table-size"),
            (
                |dataset| {
                    dataset.range_key_partitioning = true;
                    dataset.num_table_splits = 10_001;
                },
                "--num-table-splits",
            ),
        ];
        for (change, option) in cases {
            let mut changed = dataset.clone();
            change(&mut changed);
            assert!(changed.validate().unwrap_err().to_string().contains(option));
        }
    }

    #[test]
    fn the_numbers_of_statements_of_a_plan_that_is_not_valid_do_not_overflow() {
        let run = OltpRun {
            point_selects: u32::MAX,
            sum_ranges: u32::MAX,
            delete_inserts: u32::MAX,
            skip_trx: true,
            ..OltpRun::default()
        };
        assert_eq!((run.reads(), run.writes()), (u32::MAX, u32::MAX));
        assert!(run.commits_each_statement());
    }
}
