//! The options of the workload `oltp`: sysbench's, under sysbench's names.

use std::str::FromStr;

use clap::Args;
use riops::plan::{Distribution, OltpTest, PlanError};
use riops::units::{Count, Span};

use super::TargetOptions;
use super::run::{LoopOptions, RunOptions};

/// A switch that also says no: sysbench's `--range-selects=off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch(pub(crate) bool);

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Ok(Self(true)),
            "off" | "false" | "no" | "0" => Ok(Self(false)),
            _ => Err(format!("`{text}` is neither on nor off")),
        }
    }
}

/// Sysbench's `zipfian` has an exponent of its own.
fn distribution(text: &str) -> Result<Distribution, PlanError> {
    if text == "zipfian" { Ok(Distribution::Zipfian { theta: 0.8 }) } else { text.parse() }
}

/// What the tables are
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct OltpOptions {
    /// Where the tables are; public for those of sysbench [default: riops]
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// Tables, sbtest1 and on [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tables: Option<u32>,
    /// Rows of each table [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) table_size: Option<Count>,
    /// Let the server count the ids [default: on]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) auto_inc: Option<Switch>,
    /// A plain index on id instead of the primary key [default: off]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) secondary: Option<Switch>,
    /// An index on k [default: on]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) create_secondary: Option<Switch>,
    /// Numbers of the id's sequence that a session takes at once [default: 1000 on YugabyteDB, else
    /// the server's]
    #[arg(long, value_name = "N")]
    pub(crate) serial_cache_size: Option<u32>,
    /// YugabyteDB: shard by ranges of the id instead of its hash [default: off]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) range_key_partitioning: Option<Switch>,
    /// YugabyteDB: with ranges, split at equal steps [default: on]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) manual_range_splitting: Option<Switch>,
    /// YugabyteDB: with ranges, tablets of a table [default: 24]
    #[arg(long, value_name = "N")]
    pub(crate) num_table_splits: Option<u32>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareOltp {
    #[command(flatten)]
    pub(crate) dataset: OltpOptions,
    /// From which the contents are derived [default: random]
    #[arg(long, visible_alias = "rand-seed", value_name = "N", help_heading = "Dataset")]
    pub(crate) seed: Option<u64>,
    /// Drop an existing dataset first
    #[arg(long)]
    pub(crate) recreate: bool,
    /// Parallel connections, also within a table [default: the number of cores]
    #[arg(long, visible_aliases = ["sessions", "threads"], short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,
    /// Keep trying to connect for this long
    #[arg(long, value_name = "TIME")]
    pub(crate) thread_init_timeout: Option<Span>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunOltp {
    #[arg(
        value_name = "TEST",
        help = "Which test: read-write, read-only, write-only, point-select, update-index, update-non-index, insert, delete, multi-insert, multi-value-insert, random-points, random-ranges, sequential-scan, primarykey-scan, index-scan, sum-scan, join; or by sysbench's name (oltp_read_write) [default: read-write]"
    )]
    pub(crate) test: Option<OltpTest>,
    /// The same as an option
    #[arg(long = "test", value_name = "TEST", conflicts_with = "test", help_heading = "Work")]
    pub(crate) named_test: Option<OltpTest>,
    #[command(flatten)]
    pub(crate) mix: MixOptions,
    /// Which ids: uniform, zipfian:THETA, hotspot:KEYS%:ACCESSES%, or sysbench's special, gaussian,
    /// pareto [default: uniform]
    #[arg(long, visible_alias = "rand-type", value_name = "KIND", help_heading = "Work", value_parser = distribution)]
    pub(crate) distribution: Option<Distribution>,
    /// Send the statements of a transaction together instead of one after the other
    #[arg(long, help_heading = "Work")]
    pub(crate) pipeline: bool,
    /// Empty the caches of the tables first: shared buffers (PostgreSQL 17 or later) and, where the
    /// server's files can be read, the page cache
    #[arg(long, help_heading = "Work", conflicts_with = "warm")]
    pub(crate) cold: bool,
    /// Read the tables into the caches first
    #[arg(long, help_heading = "Work")]
    pub(crate) warm: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) drive: LoopOptions,
    /// Make the tables first where they are missing (the embedded server does so by itself)
    #[arg(long, help_heading = "Dataset")]
    pub(crate) prepare: bool,
    #[command(flatten)]
    pub(crate) dataset: OltpOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// What a transaction is made of
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct MixOptions {
    /// Rows of each range query [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) range_size: Option<u32>,
    /// Selects of a row by its id in a transaction [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) point_selects: Option<u32>,
    /// Selects of a range [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) simple_ranges: Option<u32>,
    /// Sums over a range [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) sum_ranges: Option<u32>,
    /// Selects of a range in the order of a text [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) order_ranges: Option<u32>,
    /// Selects of the different texts of a range [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) distinct_ranges: Option<u32>,
    /// Any of these four [default: on]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) range_selects: Option<Switch>,
    /// Updates of the indexed column [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) index_updates: Option<u32>,
    /// Updates of a text [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) non_index_updates: Option<u32>,
    /// Rows that are deleted and inserted again [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) delete_inserts: Option<u32>,
    /// Commit every statement by itself [default: off]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) skip_trx: Option<Switch>,
    /// Test multi-insert: inserts of a transaction [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) num_rows_in_insert: Option<u32>,
    /// Test multi-value-insert: rows of a statement [default: 4000]
    #[arg(long, value_name = "N")]
    pub(crate) batch_insert_count: Option<u32>,
    /// Test random-points: values in the list [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) random_points: Option<u32>,
    /// Test random-ranges: ranges in the condition [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) number_of_ranges: Option<u32>,
    /// Test random-ranges: by how much the ends of a range differ [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) delta: Option<u32>,
}
