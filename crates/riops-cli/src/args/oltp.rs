//! Options of `oltp`, with sysbench's names.

use anyhow::Result;
use clap::Args;
use riops::plan::{
    Distribution, ErrorPolicy, OltpDataset, OltpRun, OltpTest, Parameters, Plan, PlanError,
};
use riops::run::Prepare;
use riops::units::Count;
use serde::Serialize;
use serde_json::{Value, from_value, to_value};

use super::parsers::{OrDefault, Switch};
use super::run::{CommandOptions, LoopOptions, RunWorkload};
use super::shared::{
    CacheOptions, PrepareFirst, PrepareOptions, PrepareWorkload, TargetOptions, given,
};

/// Parses a distribution. sysbench's `zipfian` without an exponent means 0.8.
fn distribution(text: &str) -> Result<Distribution, PlanError> {
    if text == "zipfian" { Ok(Distribution::Zipfian { theta: 0.8 }) } else { text.parse() }
}

/// The tables
#[derive(Debug, Clone, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct OltpOptions {
    /// Schema of the tables; public for tables of sysbench
    #[arg(long, value_name = "NAME", or_default = OltpDataset::default().schema)]
    schema: Option<String>,
    /// Number of tables, from sbtest1
    #[arg(long, value_name = "N", or_default = OltpDataset::default().tables)]
    tables: Option<u32>,
    /// Rows per table
    #[arg(long, value_name = "N", or_default = OltpDataset::default().table_size)]
    table_size: Option<Count>,
    /// Use auto-increment ids
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", or_default = Switch(OltpDataset::default().auto_inc))]
    auto_inc: Option<Switch>,
    /// Create a secondary index on id instead of the primary key
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", or_default = Switch(OltpDataset::default().secondary))]
    secondary: Option<Switch>,
    /// Create an index on k
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", or_default = Switch(OltpDataset::default().create_secondary))]
    create_secondary: Option<Switch>,
    /// Text after CREATE TABLE (…), for example "WITH (fillfactor=70)"
    #[arg(long, value_name = "SQL")]
    create_table_options: Option<String>,
    /// Empty tables of two columns, for the test bulk-insert
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", or_default = Switch(OltpDataset::default().bulk_insert))]
    bulk_insert: Option<Switch>,
    /// Cache size of the id sequence per session [default: 1000 on YugabyteDB, otherwise the server's]
    #[arg(long, value_name = "N")]
    serial_cache_size: Option<u32>,
    /// Shard by ranges of id instead of its hash
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help_heading = "YugabyteDB", or_default = Switch(OltpDataset::default().range_key_partitioning))]
    range_key_partitioning: Option<Switch>,
    /// With range sharding: split at equal intervals
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", help_heading = "YugabyteDB", or_default = Switch(OltpDataset::default().manual_range_splitting))]
    manual_range_splitting: Option<Switch>,
    /// With range sharding: tablets per table
    #[arg(long, value_name = "N", help_heading = "YugabyteDB", or_default = OltpDataset::default().num_table_splits)]
    num_table_splits: Option<u32>,
}

impl OltpOptions {
    /// Returns the parameters that were given.
    pub(crate) fn given(&self) -> Parameters {
        let mut parameters = given(self);
        if self.bulk_insert.is_some_and(|switch| switch.0) {
            parameters.entry("table_size").or_insert(0.into());
        }
        parameters
    }

    /// Returns the parameters that were given, and those that the test requires.
    fn given_for(&self, test: OltpTest, sessions: u32) -> Parameters {
        if test != OltpTest::BulkInsert {
            return self.given();
        }
        // Like sysbench's threads, each session has its own table.
        let tables = Some(self.tables.unwrap_or(sessions));
        Self { bulk_insert: Some(Switch(true)), tables, ..self.clone() }.given()
    }
}

/// The dataset of `riops prepare oltp`
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PrepareOltp {
    #[command(flatten)]
    dataset: OltpOptions,
    /// Distribution of the values of k
    #[arg(long, visible_alias = "distribution", value_name = "KIND", help_heading = "Dataset", value_parser = distribution, or_default = OltpDataset::default().rand_type)]
    rand_type: Option<Distribution>,
}

impl PrepareWorkload for PrepareOltp {
    fn order(&self, options: &PrepareOptions) -> Result<Prepare> {
        let optional = [
            // The default depends on the server.
            ("serial_cache_size", self.dataset.serial_cache_size.is_some()),
            // Tables of earlier versions of riops are accepted.
            ("rand_type", self.rand_type.is_some()),
        ];
        let mut requested = self.dataset.given();
        let rand_type = self.rand_type.map(|kind| Value::from(kind.to_string()));
        requested.extend(rand_type.map(|kind| ("rand_type".to_owned(), kind)));
        options.order(&OltpDataset::default().into(), requested, &optional)
    }
}

/// Run sysbench's OLTP transactions on sysbench's tables
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunOltp {
    #[arg(
        value_name = "TEST",
        help = "Test: read-write, read-only, write-only, point-select, update-index, update-non-index, insert, delete, multi-insert, multi-value-insert, random-points, random-ranges, sequential-scan, primarykey-scan, index-scan, sum-scan, join, simple-ranges, bulk-insert, select-one; sysbench's names work too (oltp_read_write)",
        or_default = OltpTest::default()
    )]
    test: Option<OltpTest>,
    /// Test, as an option
    #[arg(long = "test", value_name = "TEST", conflicts_with = "test", help_heading = "Workload")]
    named_test: Option<OltpTest>,
    #[command(flatten)]
    mix: MixOptions,
    /// Distribution of ids: uniform, zipfian:THETA, hotspot:KEYS%:ACCESSES%, special, gaussian, pareto
    #[arg(long, visible_alias = "rand-type", value_name = "KIND", help_heading = "Workload", default_value_t = OltpRun::default().distribution, value_parser = distribution)]
    distribution: Distribution,
    /// Send all statements of a transaction at once
    #[arg(long, help_heading = "Workload")]
    pipeline: bool,
    /// With --output sysbench: report and reset the counts and latencies at these times, in seconds
    #[arg(long, value_name = "S,…", value_delimiter = ',', help_heading = "Output")]
    report_checkpoints: Vec<f64>,
    /// Draw new random values for each retry, without a pause, as sysbench does
    #[arg(long, help_heading = "Run")]
    redraw: bool,
    #[command(flatten)]
    caches: CacheOptions,
    #[command(flatten)]
    run: LoopOptions,
    #[command(flatten)]
    prepare: PrepareFirst,
    #[command(flatten)]
    dataset: OltpOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunOltp {
    fn work(&self) -> Result<OltpRun> {
        Ok(OltpRun {
            test: self.test.or(self.named_test).unwrap_or_default(),
            pipeline: self.pipeline,
            distribution: self.distribution,
            caches: self.caches.caches(),
            ..from_value(to_value(&self.mix)?)?
        })
    }
}

impl RunWorkload for RunOltp {
    fn plan(&self) -> Result<Plan> {
        let work = self.work()?;
        let test = work.test;
        let plan = self.run.plan(work.into())?;
        Ok(Plan {
            dataset: self.dataset.given_for(test, plan.sessions),
            prepare: self.prepare.policy(),
            checkpoints_s: self.report_checkpoints.clone(),
            errors: ErrorPolicy { redraw: self.redraw, ..plan.errors },
            ..plan
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.common.with(&self.target)
    }
}

/// The statements of a transaction, with the names of their parameters
#[derive(Debug, Args, Serialize)]
#[command(next_help_heading = "Workload")]
struct MixOptions {
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().range_size, help = "Rows per range query")]
    range_size: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().point_selects, help = "Point selects per transaction")]
    point_selects: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().simple_ranges, help = "Simple range selects per transaction")]
    simple_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().sum_ranges, help = "SUM() range selects per transaction")]
    sum_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().order_ranges, help = "ORDER BY range selects per transaction")]
    order_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().distinct_ranges, help = "DISTINCT range selects per transaction")]
    distinct_ranges: u32,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value_t = Switch(OltpRun::default().range_selects), help = "Enable all four kinds of range selects")]
    range_selects: Switch,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().index_updates, help = "Updates of the indexed column per transaction")]
    index_updates: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().non_index_updates, help = "Updates of a non-indexed column per transaction")]
    non_index_updates: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().delete_inserts, help = "DELETE/INSERT pairs per transaction")]
    delete_inserts: u32,
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value_t = Switch(OltpRun::default().skip_trx), help = "Commit each statement separately")]
    skip_trx: Switch,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().num_rows_in_insert, help = "Test multi-insert: INSERTs per transaction")]
    num_rows_in_insert: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().batch_insert_count, help = "Tests multi-value-insert and bulk-insert: rows per statement")]
    batch_insert_count: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().random_points, help = "Test random-points: values in the IN list")]
    random_points: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().number_of_ranges, help = "Test random-ranges: ranges in the WHERE clause")]
    number_of_ranges: u32,
    #[arg(long, value_name = "N", default_value_t = OltpRun::default().delta, help = "Test random-ranges: size of each range")]
    delta: u32,
}
