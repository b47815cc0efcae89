//! The options that say what a dataset is.

use clap::{Args, ValueEnum};
use riops::plan::Order;
use riops::units::{Count, Size};

use super::TargetOptions;

/// What the dataset is
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct DatasetOptions {
    /// Tables [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tables: Option<u32>,
    /// Rows of each table [default: 1e6]
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<Count>,
    /// How rows fill blocks: block puts one into each (SLOB, PGIO) [default: packed]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) layout: Option<Layout>,
    /// With --layout block: the size of each table instead of its rows, in blocks or as 256M, 8G
    #[arg(long, value_name = "SIZE", conflicts_with = "rows")]
    pub(crate) size: Option<Size>,
    /// Characters of a column that only makes rows larger [default: 1, with --layout block 1024]
    #[arg(long, value_name = "N")]
    pub(crate) filler: Option<u32>,
    /// Where rows lie: scattered, key, hash, or an SQL expression over mykey and scratch by which
    /// each batch is sorted [default: scattered]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Order>,
    /// Make the key the primary key instead of an index beside the table
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) primary_key: Option<bool>,
    /// YugabyteDB: tablets of each table [default: the server's]
    #[arg(long, value_name = "N")]
    pub(crate) tablets: Option<u32>,
    /// YugabyteDB: tablets of each index, or of each table with a primary key, split at equal
    /// distances of the key [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) index_tablets: Option<u32>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareRows {
    #[command(flatten)]
    pub(crate) dataset: DatasetOptions,
    /// Rows of one load transaction [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Dataset")]
    pub(crate) batch: Option<Count>,
    /// From which the contents are derived [default: random]
    #[arg(long, value_name = "N", help_heading = "Dataset")]
    pub(crate) seed: Option<u64>,
    /// YugabyteDB: load without distributed transactions
    #[arg(long, help_heading = "Dataset")]
    pub(crate) non_transactional_writes: bool,
    /// Drop an existing dataset first
    #[arg(long)]
    pub(crate) recreate: bool,
    /// Parallel connections [default: the number of cores]
    #[arg(long, visible_alias = "sessions", short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

// How rows fill blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    Packed,
    Block,
}

/// What the table of the workloads load and point is
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct LoadTableOptions {
    /// Rows of the table, in all; their ids count from 0 [default: 100000]
    #[arg(short, long, value_name = "N")]
    pub(crate) rows: Option<Count>,
    #[arg(long, value_name = "NAME", help = "Its name in the schema riops [default: test_table]")]
    pub(crate) table_name: Option<String>,
    /// YugabyteDB: tablets of the table [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) tablets: Option<u32>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareLoad {
    #[command(flatten)]
    pub(crate) table: LoadTableOptions,
    /// Characters of each of the four texts of a row [default: 24]
    #[arg(
        short,
        long,
        visible_alias = "fields-length",
        value_name = "N",
        help_heading = "Dataset"
    )]
    pub(crate) field_length: Option<u32>,
    /// From which the texts are derived [default: random]
    #[arg(long, value_name = "N", help_heading = "Dataset")]
    pub(crate) seed: Option<u64>,
    /// YugabyteDB: load without distributed transactions
    #[arg(short, long, visible_aliases = ["nontransactional", "non-transactional-writes"], help_heading = "Dataset")]
    pub(crate) non_transactional: bool,
    /// Drop an existing dataset first
    #[arg(long, visible_alias = "drop")]
    pub(crate) recreate: bool,
    /// Parallel connections [default: the number of cores]
    #[arg(long, visible_alias = "sessions", short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct GenerateCsv {
    /// Rows of all files together; their ids count from 0 [default: 100000]
    #[arg(short, long, value_name = "N")]
    pub(crate) rows: Option<Count>,
    /// Files: as many as the load will have sessions [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], short_alias = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,
    /// Characters of each of the four texts of a row [default: 24]
    #[arg(short, long, visible_alias = "fields-length", value_name = "N")]
    pub(crate) field_length: Option<u32>,
    /// From which the texts are derived [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Where to write them: a folder that is there [default: /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<std::path::PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}
