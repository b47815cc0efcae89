//! The parameters of the workload `rows`: of its dataset, and of a run on it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{PlanError, at_least_one, refuse};

/// The order in which rows are inserted, which is where they lie in a heap table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Order {
    /// A pseudo-random permutation of all keys: neighbours in the index are strangers in the
    /// table.
    Scattered,
    /// In the order of the keys.
    Key,
    /// By the hash of the key, within each batch.
    Hash,
    /// By any SQL expression over `mykey` and `scratch`, within each batch.
    Sql(String),
}

impl FromStr for Order {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        match text.trim() {
            "scattered" => Ok(Self::Scattered),
            "key" => Ok(Self::Key),
            "hash" => Ok(Self::Hash),
            "" => refuse("--order must not be empty: scattered, key, hash, or an SQL expression over mykey and scratch".to_owned()),
            expression => Ok(Self::Sql(expression.to_owned())),
        }
    }
}

impl TryFrom<String> for Order {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Scattered => "scattered",
            Self::Key => "key",
            Self::Hash => "hash",
            Self::Sql(expression) => expression,
        })
    }
}

impl From<Order> for String {
    fn from(order: Order) -> Self {
        order.to_string()
    }
}

/// What `prepare rows` makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsDataset {
    /// Tables.
    pub tables: u32,
    /// Rows of each table; the keys are 1…rows.
    pub rows: u64,
    /// Rows of one load transaction.
    pub batch: u64,
    /// Characters of the column that makes rows larger.
    pub filler: u32,
    /// Where the rows lie.
    pub order: Order,
    /// Whether the key is the primary key, instead of an index beside the table.
    pub primary_key: bool,
    /// From which the contents are derived.
    pub seed: u64,
}

/// A row has to fit into one page of 8 kB, uncompressed.
const FILLER_MAX: u32 = 8_000;
/// As many as the four digits of a table's name can count.
const TABLES_MAX: u32 = 9_999;
/// Keys are `bigint`; a tenth of its range leaves room for every sum and product made of them.
const ROWS_MAX: u64 = 1_000_000_000_000_000;

impl Default for RowsDataset {
    fn default() -> Self {
        Self {
            tables: 1,
            rows: 1_000_000,
            batch: 10_000,
            filler: 1,
            order: Order::Scattered,
            primary_key: false,
            seed: 0,
        }
    }
}

impl RowsDataset {
    /// Checks what can be checked without a target.
    ///
    /// # Errors
    /// [`PlanError`] that names the option, its value and what is allowed.
    pub fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--tables", u64::from(self.tables))?;
        at_least_one("--rows", self.rows)?;
        at_least_one("--batch", self.batch)?;
        at_least_one("--filler", u64::from(self.filler))?;
        if self.tables > TABLES_MAX {
            return refuse(format!("--tables {} is more than {TABLES_MAX}", self.tables));
        }
        if self.rows > ROWS_MAX {
            return refuse(format!("--rows {} is more than {ROWS_MAX}", self.rows));
        }
        if self.filler > FILLER_MAX {
            return refuse(format!(
                "--filler {} is more than {FILLER_MAX}: a row has to fit into one page",
                self.filler
            ));
        }
        Ok(())
    }
}

/// Which keys a session touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Distribution {
    /// Every range as often as every other.
    #[default]
    Uniform,
    /// The range of rank r about r^−θ times as often as the first, ranks scattered over the keys.
    Zipfian {
        /// θ: 0 is uniform, 1 the classic.
        theta: f64,
    },
    /// A share of the keys gets a share of the accesses; both are uniform within.
    Hotspot {
        /// Percent of the keys, those in front.
        keys_percent: f64,
        /// Percent of the accesses that go to them.
        accesses_percent: f64,
    },
}

const DISTRIBUTIONS: &str =
    "uniform, zipfian:THETA (0.01 to 10) or hotspot:KEYS%:ACCESSES% (hotspot:20:80)";

impl FromStr for Distribution {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        parse_distribution(text).map_or_else(
            || refuse(format!("--distribution `{text}` is none of {DISTRIBUTIONS}")),
            Ok,
        )
    }
}

fn parse_distribution(text: &str) -> Option<Distribution> {
    let mut parts = text.split(':');
    let distribution = match parts.next()? {
        "uniform" => Distribution::Uniform,
        "zipfian" => {
            let theta = parts.next()?.parse().ok()?;
            (0.01..=10.0).contains(&theta).then_some(Distribution::Zipfian { theta })?
        }
        "hotspot" => {
            let mut percent = || -> Option<f64> {
                let percent = parts.next()?.trim_end_matches('%').parse().ok()?;
                (percent > 0.0 && percent <= 100.0).then_some(percent)
            };
            Distribution::Hotspot { keys_percent: percent()?, accesses_percent: percent()? }
        }
        _ => return None,
    };
    parts.next().is_none().then_some(distribution)
}

impl TryFrom<String> for Distribution {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Zipfian { theta } => write!(formatter, "zipfian:{theta}"),
            Self::Hotspot { keys_percent, accesses_percent } => {
                write!(formatter, "hotspot:{keys_percent}:{accesses_percent}")
            }
        }
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> Self {
        distribution.to_string()
    }
}

/// What the sessions of `run rows` do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowsRun {
    /// Rows that one read touches.
    pub batch: u64,
    /// Percent of the rows that are updated instead of read.
    pub update_percent: u8,
    /// Rows that one update touches.
    pub update_batch: u64,
    /// Whether reads stay in the index.
    pub index_only: bool,
    /// Whether each session keeps to one table, instead of choosing one for each transaction.
    pub table_per_session: bool,
    /// Which keys are touched.
    pub distribution: Distribution,
}

impl Default for RowsRun {
    fn default() -> Self {
        Self {
            batch: 1000,
            update_percent: 0,
            update_batch: 1000,
            index_only: false,
            table_per_session: false,
            distribution: Distribution::Uniform,
        }
    }
}

impl RowsRun {
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        at_least_one("--batch", self.batch)?;
        at_least_one("--update-batch", self.update_batch)?;
        if self.update_percent > 100 {
            return refuse(format!("--update-percent {} is more than 100", self.update_percent));
        }
        Ok(())
    }

    /// Checks the run against the dataset that it will find.
    ///
    /// # Errors
    /// [`PlanError`] where a batch is larger than a table.
    pub fn validate_for(&self, dataset: &RowsDataset) -> Result<(), PlanError> {
        let batches = [
            ("--batch", self.batch, self.update_percent < 100),
            ("--update-batch", self.update_batch, self.update_percent > 0),
        ];
        for (option, batch, used) in batches {
            if used && batch > dataset.rows {
                return refuse(format!(
                    "{option} {batch} is more than the {} rows of each table: use a smaller batch, or prepare more rows",
                    dataset.rows
                ));
            }
        }
        Ok(())
    }

    /// Whether any transaction reads.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.update_percent < 100
    }

    /// Whether any transaction updates.
    #[must_use]
    pub fn updates(&self) -> bool {
        self.update_percent > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_and_printed_alike() {
        for text in ["uniform", "zipfian:0.99", "hotspot:20:80", "hotspot:0.5:99.5"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "normal",
            "zipfian",
            "zipfian:0",
            "zipfian:x",
            "hotspot:20",
            "hotspot:0:80",
            "hotspot:20:101",
            "uniform:1",
            "hotspot:1:2:3",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_order_that_is_no_known_word_is_an_expression() {
        assert_eq!("key".parse(), Ok(Order::Key));
        assert_eq!("mykey % 7".parse(), Ok(Order::Sql("mykey % 7".to_owned())));
        assert!("  ".parse::<Order>().is_err());
    }

    #[test]
    fn a_batch_larger_than_the_table_is_refused_only_where_it_is_used() {
        let dataset = RowsDataset { rows: 10, ..RowsDataset::default() };
        let read = RowsRun { batch: 11, update_batch: 5, ..RowsRun::default() };
        assert!(read.validate_for(&dataset).is_err());
        let update = RowsRun { update_percent: 100, ..read.clone() };
        assert_eq!(update.validate_for(&dataset), Ok(()));
    }
}
