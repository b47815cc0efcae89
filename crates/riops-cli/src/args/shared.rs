//! Options that several commands share: each is defined once and flattened where it is used.

use anyhow::Result;
use clap::Args;
use riops::plan::{
    Caches, DatasetPlan, Distribution, LoadDataset, Parameters, Plan, PreparePolicy,
};
use riops::run::Prepare;
use riops::units::Span;
use serde_json::Value;

use super::parsers::or_default;
use super::target::TargetOptions;

/// The parameters that were given.
pub(crate) fn given<const N: usize>(parameters: [(&str, Option<Value>); N]) -> Parameters {
    let given = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    parameters.into_iter().filter_map(given).collect()
}

/// A seed from the operating system, small enough for every JSON reader.
pub(crate) fn random_seed() -> Result<u64> {
    use anyhow::Context as _;
    riops::host::random_seed().context("no random numbers from the operating system")
}

/// Which keys
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct KeyOptions {
    #[arg(long, value_name = "KIND", default_value_t = Distribution::default(), help = "Which keys: uniform, zipfian:THETA, or hotspot:KEYS%:ACCESSES%")]
    pub(crate) distribution: Distribution,
}

/// The caches before a stage
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct CacheOptions {
    #[arg(
        long,
        conflicts_with = "warm",
        help = "Empty the caches of the dataset before each stage: shared buffers (PostgreSQL 17 or later) and, where the server's files can be read, the page cache"
    )]
    cold: bool,
    /// Read the dataset into the caches before each stage
    #[arg(long)]
    warm: bool,
}

impl CacheOptions {
    pub(crate) fn caches(self) -> Caches {
        match (self.cold, self.warm) {
            (true, _) => Caches::Cold,
            (_, true) => Caches::Warm,
            _ => Caches::AsFound,
        }
    }
}

/// How many transactions at once
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct PipelineOptions {
    /// Transactions that a session may have in flight at once
    #[arg(long, value_name = "N", default_value_t = Plan::default().pipeline)]
    pub(crate) pipeline: u32,
}

/// What happens to a missing dataset
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct PrepareFirst {
    /// Prepare the dataset first if it is missing (always on the embedded server)
    #[arg(long)]
    prepare: bool,
}

impl PrepareFirst {
    pub(crate) fn policy(self) -> PreparePolicy {
        if self.prepare { PreparePolicy::IfMissing } else { PreparePolicy::Embedded }
    }
}

/// How a dataset is prepared
#[derive(Debug, Args)]
pub(crate) struct PrepareOptions {
    /// Random seed of the contents [default: from the operating system]
    #[arg(long, visible_alias = "rand-seed", value_name = "N", help_heading = "Dataset")]
    pub(crate) seed: Option<u64>,
    /// Drop an existing dataset first
    #[arg(long, visible_alias = "drop")]
    pub(crate) recreate: bool,
    /// Parallel connections [default: the number of cores]
    #[arg(long, visible_aliases = ["sessions", "threads"], short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,
    /// Keep trying to connect for this long
    #[arg(long, value_name = "TIME")]
    pub(crate) thread_init_timeout: Option<Span>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

impl PrepareOptions {
    /// Prepares a dataset with the `wanted` parameters, or keeps one that has the same. The `optional` ones
    /// have to be the same only where they were given.
    pub(crate) fn order(
        &self,
        default: &DatasetPlan,
        mut wanted: Parameters,
        optional: &[(&str, bool)],
    ) -> Result<Prepare> {
        let seed = self.seed.map_or_else(random_seed, Ok)?;
        wanted.insert("seed".to_owned(), seed.into());
        let dataset = default.with(&wanted)?;
        dataset.spec().validate()?;
        let compared = dataset.parameters();
        let mut compared = compared.as_object().cloned().unwrap_or_default();
        let seed = ("seed", self.seed.is_some());
        for (name, _) in optional.iter().chain([&seed]).filter(|(_, given)| !given) {
            compared.remove(*name);
        }
        Ok(Prepare { dataset, compared, recreate: self.recreate, connections: self.connections })
    }
}

/// The texts of load's table
#[derive(Debug, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct TextOptions {
    #[arg(
        short,
        long,
        visible_alias = "fields-length",
        value_name = "N",
        help = or_default("Characters of each of the four texts of a row", LoadDataset::default().field_length)
    )]
    pub(crate) field_length: Option<u32>,
}

/// Transactions of YugabyteDB
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct TransactionOptions {
    /// YugabyteDB: write without distributed transactions
    #[arg(short, long, visible_aliases = ["nontransactional", "non-transactional-writes"])]
    pub(crate) non_transactional: bool,
}

/// The size of a row
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct RowSizeOptions {
    /// Print the size of one row in bytes too
    #[arg(long)]
    pub(crate) show_rowsize: bool,
}

/// The options of one workload of `riops prepare`.
pub(crate) trait PrepareWorkload {
    /// What is to be prepared.
    fn order(&self) -> Result<Prepare>;

    /// Those that all workloads have.
    fn options(&self) -> &PrepareOptions;
}
