//! Options that several commands share. Each is defined once and flattened into its commands.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use riops::host::random_seed;
use riops::plan::{
    Caches, DatasetPlan, Distribution, LoadDataset, Parameters, Plan, PreparePolicy,
};
use riops::run::Prepare;
use riops::server::Changes;
use riops::server::conninfo::ConnInfoError;
use riops::store::{StoreLocation, default_path};
use riops::units::Span;
use serde::Serialize;
use serde_json::Value;

use super::parsers::{OrDefault, parse_pair};
use crate::failure::refuse;

/// The server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetOptions {
    /// Connection URL, key=value string or database name, as in libpq [default: the PG* variables if
    /// one of PGHOST, PGHOSTADDR, PGPORT, PGDATABASE, PGUSER and PGSERVICE is set, otherwise the embedded server]
    #[arg(short, long, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) embedded: EmbeddedOptions,
}

/// The embedded server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Embedded server")]
pub(crate) struct EmbeddedOptions {
    /// Use the PostgreSQL installed in this directory (the parent of bin/postgres) instead of the downloaded one
    #[arg(long, value_name = "DIR")]
    pub(crate) server_dir: Option<PathBuf>,
    /// Directory of the server's data, socket and log
    #[arg(long, value_name = "DIR")]
    pub(crate) server_data: Option<PathBuf>,
    /// User that runs the server if riops runs as root
    #[arg(long, value_name = "NAME")]
    pub(crate) server_user: Option<String>,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) server_port: Option<u16>,
    /// Set a configuration parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) server_set: Vec<(String, String)>,
    /// Directory of downloads, and of servers without --server-data
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// The run store
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// SQLite file, or connection URL of a PostgreSQL database, with the stored runs [default: ~/.local/share/riops/runs.sqlite]
    #[arg(long, value_name = "FILE|URL")]
    // Not parsed by clap, whose errors show the value: it may contain a password.
    store: Option<OsString>,
}

impl StoreOptions {
    /// The file or URL that was given.
    pub(crate) fn given(&self) -> Option<&OsStr> {
        self.store.as_deref()
    }

    /// The store that was given, otherwise the default file.
    ///
    /// # Errors
    /// If the URL is invalid.
    pub(crate) fn location(&self) -> Result<StoreLocation, ConnInfoError> {
        let Some(given) = &self.store else {
            return Ok(StoreLocation::File(default_path()));
        };
        match given.to_str() {
            Some(text) => StoreLocation::parse(text, |name| std::env::var(name).ok()),
            None => Ok(StoreLocation::File(PathBuf::from(given))),
        }
    }
}

/// Permission for what is only data
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TrustOption {
    /// Allow the commands, programs, SQL expressions and files that a plan, stored run or experiment names, and changes of
    /// settings of a server that others use
    #[arg(long)]
    pub(crate) trust: bool,
}

/// How settings of the server may be changed
#[derive(Debug, Clone, Args)]
pub(crate) struct ChangeOptions {
    /// Command that restarts the server, for settings that take effect when it starts
    #[arg(long, value_name = "COMMAND", help_heading = "Server")]
    pub(crate) restart: Option<String>,
}

impl ChangeOptions {
    pub(crate) fn changes(&self, trust: TrustOption) -> Changes {
        Changes { restart: self.restart.clone(), of_shared: trust.trust }
    }
}

/// Returns the values of a parameter in the stages of a run: a list is stored only if it has several.
pub(super) fn several<T: Clone>(values: &[T]) -> Vec<T> {
    if values.len() > 1 { values.to_vec() } else { Vec::new() }
}

/// Returns the parameters that were given: the options of a dataset have the names of its parameters.
pub(crate) fn given(options: &impl Serialize) -> Parameters {
    let Ok(Value::Object(mut parameters)) = serde_json::to_value(options) else {
        return Parameters::new();
    };
    parameters.retain(|_, value| !value.is_null());
    parameters
}

/// The random seed
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SeedOptions {
    /// Random seed [default: from the operating system]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// sysbench's name for --seed; 0: from the operating system
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    rand_seed: Option<u64>,
}

impl SeedOptions {
    /// Returns the seed that was given.
    pub(crate) fn given(self) -> Option<u64> {
        self.seed.or(self.rand_seed.filter(|&seed| seed != 0))
    }

    /// Returns it, or one from the operating system that every JSON reader can represent.
    pub(crate) fn or_random(self) -> Result<u64> {
        let random =
            || random_seed().context("cannot read random numbers from the operating system");
        self.given().map_or_else(random, Ok)
    }
}

/// Distribution of the keys
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct KeyOptions {
    #[arg(long, value_name = "KIND", default_value_t = Distribution::default(), help = "Distribution of the keys: uniform, zipfian:THETA, hotspot:KEYS%:ACCESSES%, special, gaussian, or pareto")]
    pub(crate) distribution: Distribution,
}

/// The caches before a stage
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct CacheOptions {
    /// Empty shared buffers (PostgreSQL 17 or later) and the page cache before each stage, or with =try as far as
    /// permitted
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "on", conflicts_with = "warm", value_parser = parse_cold)]
    cold: Option<Caches>,
    /// Load the dataset into the caches before each stage
    #[arg(long)]
    warm: bool,
}

impl CacheOptions {
    pub(crate) fn caches(self) -> Caches {
        match self.cold.unwrap_or_default() {
            Caches::AsFound if self.warm => Caches::Warm,
            caches => caches,
        }
    }
}

/// Parses the value of `--cold`: whether the caches are emptied, or as far as permitted.
pub(super) fn parse_cold(text: &str) -> Result<Caches, String> {
    match text {
        // The spellings of a switch, as the environment and a file set it.
        "on" | "true" | "yes" | "1" => Ok(Caches::Cold),
        "off" | "false" | "no" | "0" => Ok(Caches::AsFound),
        "try" => Ok(Caches::ColdTry),
        _ => Err("expected no value, or try".to_owned()),
    }
}

/// Transactions in flight
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct PipelineOptions {
    /// Maximum number of transactions in flight per session
    #[arg(long, value_name = "N", default_value_t = Plan::default().pipeline)]
    pub(crate) pipeline: u32,
}

/// Preparation of a missing dataset
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct PrepareFirst {
    /// Prepare a missing dataset first (always on the embedded server); an existing one determines the defaults below
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
#[command(next_help_heading = "Dataset")]
pub(crate) struct PrepareOptions {
    #[command(flatten)]
    pub(crate) seed: SeedOptions,
    /// Drop an existing dataset first
    #[arg(long, visible_alias = "drop")]
    pub(crate) recreate: bool,
    /// Do not check the free disk space
    #[arg(long)]
    pub(crate) skip_space_check: bool,
    /// Number of parallel connections [default: number of cores]
    #[arg(long, visible_aliases = ["sessions", "threads"], short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,
    /// Retry failed connections for this long [default: no retry]
    #[arg(long, value_name = "TIME")]
    pub(crate) thread_init_timeout: Option<Span>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

impl PrepareOptions {
    /// Returns the order to prepare a dataset with the `requested` parameters, unless one with the same parameters
    /// exists. The `optional` parameters are compared only if they were given.
    pub(crate) fn order(
        &self,
        default: &DatasetPlan,
        mut requested: Parameters,
        optional: &[(&str, bool)],
    ) -> Result<Prepare> {
        if default.parameters().get("seed").is_some() {
            requested.insert("seed".to_owned(), self.seed.or_random()?.into());
        } else if self.seed.given().is_some() {
            let name = default.traits().name;
            let text =
                format!("--seed has no meaning for the dataset {name}: its rows are not random");
            return refuse(text);
        }
        let dataset = default.with(&requested)?;
        dataset.spec().validate()?;
        let compared = dataset.parameters();
        let mut compared = compared.as_object().cloned().unwrap_or_default();
        let seed = ("seed", self.seed.given().is_some());
        for (name, _) in optional.iter().chain([&seed]).filter(|(_, given)| !given) {
            compared.remove(*name);
        }
        Ok(Prepare {
            dataset,
            compared,
            recreate: self.recreate,
            connections: self.connections,
            skip_space_check: self.skip_space_check,
        })
    }
}

/// The text columns of the table of load
#[derive(Debug, Args, Serialize)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct TextOptions {
    /// Length of each of the four text columns, in characters
    #[arg(short, long, visible_alias = "fields-length", value_name = "N", or_default = LoadDataset::default().field_length)]
    pub(crate) field_length: Option<u32>,
}

/// Transactions of YugabyteDB
#[derive(Debug, Args)]
#[command(next_help_heading = "YugabyteDB")]
pub(crate) struct TransactionOptions {
    /// Write without distributed transactions
    #[arg(short, long, visible_aliases = ["nontransactional", "non-transactional-writes"])]
    pub(crate) non_transactional: bool,
}

/// The size of a row
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct RowSizeOptions {
    /// Also print the size of one row in bytes
    #[arg(long)]
    pub(crate) show_rowsize: bool,
}

/// The options of one workload of `riops prepare`.
pub(crate) trait PrepareWorkload {
    /// What to prepare.
    fn order(&self, options: &PrepareOptions) -> Result<Prepare>;
}

// The options of a workload, and those that all share. The commands have the descriptions.
#[derive(Debug, Args)]
pub(crate) struct PrepareOf<W: Args> {
    #[command(flatten)]
    pub(crate) workload: W,
    #[command(flatten)]
    pub(crate) options: PrepareOptions,
}
