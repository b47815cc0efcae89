//! The options of `oltp`: sysbench's, under sysbench's names.

use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use riops::plan::{Distribution, OltpDataset, OltpRun, OltpTest, Parameters, Plan, PlanError};
use riops::run::Prepare;
use riops::units::Count;
use serde_json::Value;

use super::parsers::or_default;
use super::run::{KeepOptions, LoopOptions, PictureOptions, RunOptions, RunWorkload};
use super::shared::{CacheOptions, PrepareFirst, PrepareOptions, PrepareWorkload, given};
use super::target::TargetOptions;

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

impl std::fmt::Display for Switch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.0 { "on" } else { "off" })
    }
}

/// Sysbench's `zipfian` has an exponent of its own.
fn distribution(text: &str) -> Result<Distribution, PlanError> {
    if text == "zipfian" { Ok(Distribution::Zipfian { theta: 0.8 }) } else { text.parse() }
}

/// What the tables are
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct OltpOptions {
    #[arg(long, value_name = "NAME", help = or_default("Schema of the tables; public for those of sysbench", OltpDataset::default().schema))]
    schema: Option<String>,
    #[arg(long, value_name = "N", help = or_default("Tables, sbtest1 and on", OltpDataset::default().tables))]
    tables: Option<u32>,
    #[arg(long, value_name = "N", help = or_default("Rows of each table", OltpDataset::default().table_size))]
    table_size: Option<Count>,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help = or_default("Use auto-increment ids", Switch(OltpDataset::default().auto_inc)))]
    auto_inc: Option<Switch>,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help = or_default("Make a plain index on id instead of the primary key", Switch(OltpDataset::default().secondary)))]
    secondary: Option<Switch>,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help = or_default("Make an index on k", Switch(OltpDataset::default().create_secondary)))]
    create_secondary: Option<Switch>,
    #[arg(
        long,
        value_name = "N",
        help = "Numbers of the id's sequence that a session takes at once [default: 1000 on YugabyteDB, else the server's]"
    )]
    serial_cache_size: Option<u32>,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help = or_default("YugabyteDB: shard by ranges of the id instead of its hash", Switch(OltpDataset::default().range_key_partitioning)))]
    range_key_partitioning: Option<Switch>,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help = or_default("YugabyteDB: with ranges, split at equal steps", Switch(OltpDataset::default().manual_range_splitting)))]
    manual_range_splitting: Option<Switch>,
    #[arg(long, value_name = "N", help = or_default("YugabyteDB: with ranges, tablets of a table", OltpDataset::default().num_table_splits))]
    num_table_splits: Option<u32>,
}

impl OltpOptions {
    /// The parameters that were given.
    fn given(&self) -> Parameters {
        let switch = |given: Option<Switch>| given.map(|switch| Value::from(switch.0));
        given([
            ("schema", self.schema.clone().map(Value::from)),
            ("tables", self.tables.map(Value::from)),
            ("table_size", self.table_size.map(|count| count.0.into())),
            ("auto_inc", switch(self.auto_inc)),
            ("secondary", switch(self.secondary)),
            ("create_secondary", switch(self.create_secondary)),
            ("serial_cache_size", self.serial_cache_size.map(Value::from)),
            ("range_key_partitioning", switch(self.range_key_partitioning)),
            ("manual_range_splitting", switch(self.manual_range_splitting)),
            ("num_table_splits", self.num_table_splits.map(Value::from)),
        ])
    }
}

/// Sysbench's tables
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareOltp {
    #[command(flatten)]
    dataset: OltpOptions,
    #[command(flatten)]
    prepare: PrepareOptions,
}

impl PrepareWorkload for PrepareOltp {
    fn order(&self) -> Result<Prepare> {
        // How many numbers the id's sequence hands out by default depends on the server.
        let optional = [("serial_cache_size", self.dataset.serial_cache_size.is_some())];
        self.prepare.order(&OltpDataset::default().into(), self.dataset.given(), &optional)
    }

    fn options(&self) -> &PrepareOptions {
        &self.prepare
    }
}

/// Sysbench's transactions, on sysbench's tables
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunOltp {
    #[arg(
        value_name = "TEST",
        help = or_default("Which test: read-write, read-only, write-only, point-select, update-index, update-non-index, insert, delete, multi-insert, multi-value-insert, random-points, random-ranges, sequential-scan, primarykey-scan, index-scan, sum-scan, join; or by sysbench's name (oltp_read_write)", OltpTest::default())
    )]
    test: Option<OltpTest>,
    /// The same as an option
    #[arg(long = "test", value_name = "TEST", conflicts_with = "test", help_heading = "Work")]
    named_test: Option<OltpTest>,
    #[command(flatten)]
    mix: MixOptions,
    /// Which ids: uniform, zipfian:THETA, hotspot:KEYS%:ACCESSES%, or sysbench's special, gaussian,
    /// pareto
    #[arg(long, visible_alias = "rand-type", value_name = "KIND", help_heading = "Work", default_value_t = OltpRun::default().distribution, value_parser = distribution)]
    distribution: Distribution,
    /// Send the statements of a transaction together instead of one after the other
    #[arg(long, help_heading = "Work")]
    pipeline: bool,
    #[command(flatten)]
    caches: CacheOptions,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drive: LoopOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    dataset: OltpOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunOltp {
    fn work(&self) -> OltpRun {
        let mix = &self.mix;
        OltpRun {
            test: self.test.or(self.named_test).unwrap_or_default(),
            range_size: mix.range_size,
            point_selects: mix.point_selects,
            simple_ranges: mix.simple_ranges,
            sum_ranges: mix.sum_ranges,
            order_ranges: mix.order_ranges,
            distinct_ranges: mix.distinct_ranges,
            range_selects: mix.range_selects.0,
            index_updates: mix.index_updates,
            non_index_updates: mix.non_index_updates,
            delete_inserts: mix.delete_inserts,
            skip_trx: mix.skip_trx.0,
            num_rows_in_insert: mix.num_rows_in_insert,
            batch_insert_count: mix.batch_insert_count,
            random_points: mix.random_points,
            number_of_ranges: mix.number_of_ranges,
            delta: mix.delta,
            pipeline: self.pipeline,
            distribution: self.distribution,
            caches: self.caches.caches(),
        }
    }
}

impl RunWorkload for RunOltp {
    fn plan(&self) -> Result<Plan> {
        Ok(Plan {
            dataset: self.dataset.given(),
            prepare: self.prepare.policy(),
            ..self.run.looped(&self.drive, self.work().into())?
        })
    }

    fn keep(&self) -> &KeepOptions {
        &self.run.keep
    }

    fn picture(&self) -> Option<&PictureOptions> {
        Some(&self.run.picture)
    }

    fn target(&self) -> &TargetOptions {
        &self.target
    }
}

/// What a transaction is made of
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
struct MixOptions {
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().range_size, help = "Rows of each range query")]
    range_size: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().point_selects, help = "Selects of a row by its id in a transaction")]
    point_selects: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().simple_ranges, help = "Selects of a range")]
    simple_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().sum_ranges, help = "Sums over a range")]
    sum_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().order_ranges, help = "Selects of a range in the order of a text")]
    order_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().distinct_ranges, help = "Selects of the different texts of a range")]
    distinct_ranges: u32,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value_t = Switch(OltpRun::default().range_selects), help = "Send any of these four")]
    range_selects: Switch,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().index_updates, help = "Updates of the indexed column")]
    index_updates: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().non_index_updates, help = "Updates of a text")]
    non_index_updates: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().delete_inserts, help = "Rows that are deleted and inserted again")]
    delete_inserts: u32,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value_t = Switch(OltpRun::default().skip_trx), help = "Commit every statement by itself")]
    skip_trx: Switch,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().num_rows_in_insert, help = "Test multi-insert: inserts of a transaction")]
    num_rows_in_insert: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().batch_insert_count, help = "Test multi-value-insert: rows of a statement")]
    batch_insert_count: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().random_points, help = "Test random-points: values in the list")]
    random_points: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().number_of_ranges, help = "Test random-ranges: ranges in the condition")]
    number_of_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().delta, help = "Test random-ranges: difference between the ends of a range")]
    delta: u32,
}
