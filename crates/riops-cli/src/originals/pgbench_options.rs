//! The options of pgbench 18.

use clap::{ArgAction, Parser};

use crate::args::LATENCY_PERCENTILES;

/// The headings of pgbench's help, which also say in which mode an option is accepted.
pub(super) const INITIALIZATION: &str = "Initialization options";
pub(super) const SCRIPTS: &str = "Options to select what to run";
pub(super) const BENCHMARKING: &str = "Benchmarking options";
const COMMON: &str = "Common options";

/// pgbench is a benchmarking tool for PostgreSQL, here executed by riops
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of pgbench")]
#[expect(clippy::doc_markdown, reason = "help texts have no markup")]
#[command(
    name = "riops pgbench",
    disable_help_flag = true,
    disable_version_flag = true,
    allow_negative_numbers = true,
    args_override_self = true,
    infer_long_args = true,
    after_help = "Report bugs to the project riops."
)]
pub(super) struct CommandLine {
    /// Create the tables
    #[arg(short, long, help_heading = INITIALIZATION)]
    pub(super) initialize: bool,
    /// Steps of the initialization, in order [default: dtgvp]
    #[arg(short = 'I', long, value_name = "[dtgGvpf]+", help_heading = INITIALIZATION)]
    pub(super) init_steps: Option<String>,
    /// Fill factor, 10 to 100
    #[arg(short = 'F', long, value_name = "NUM", help_heading = INITIALIZATION, value_parser = clap::value_parser!(u32).range(10..=100))]
    pub(super) fillfactor: Option<u32>,
    /// Print less progress
    #[arg(short, long, help_heading = INITIALIZATION)]
    pub(super) quiet: bool,
    /// Create foreign keys
    #[arg(long, help_heading = INITIALIZATION)]
    pub(super) foreign_keys: bool,
    /// Tablespace of the indexes
    #[arg(long, value_name = "TABLESPACE", help_heading = INITIALIZATION)]
    pub(super) index_tablespace: Option<String>,
    /// Partition the accounts by this method: range, hash
    #[arg(long, value_name = "METHOD", help_heading = INITIALIZATION, value_parser = ["range", "hash"])]
    pub(super) partition_method: Option<String>,
    /// Number of partitions of the accounts
    #[arg(long, value_name = "NUM", help_heading = INITIALIZATION)]
    pub(super) partitions: Option<u32>,
    /// Tablespace of the tables
    #[arg(long, value_name = "TABLESPACE", help_heading = INITIALIZATION)]
    pub(super) tablespace: Option<String>,
    /// Create unlogged tables
    #[arg(long, help_heading = INITIALIZATION)]
    pub(super) unlogged_tables: bool,

    /// Built-in script with its weight; list prints the names
    #[arg(short, long, value_name = "NAME[@W]", help_heading = SCRIPTS, action = ArgAction::Append)]
    pub(super) builtin: Vec<String>,
    /// Script with its weight
    #[arg(short, long, value_name = "FILENAME[@W]", help_heading = SCRIPTS, action = ArgAction::Append, allow_hyphen_values = true)]
    pub(super) file: Vec<String>,
    /// The same as -b simple-update
    #[arg(short = 'N', long, help_heading = SCRIPTS, action = ArgAction::Count)]
    pub(super) skip_some_updates: u8,
    /// The same as -b select-only
    #[arg(short = 'S', long, help_heading = SCRIPTS, action = ArgAction::Count)]
    pub(super) select_only: u8,
    /// Print a built-in script
    #[arg(long, value_name = "NAME", help_heading = SCRIPTS)]
    pub(super) show_script: Option<String>,

    /// Number of clients
    #[arg(short, long, value_name = "NUM", help_heading = BENCHMARKING, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) client: u32,
    /// Open a connection for each transaction
    #[arg(short = 'C', long, help_heading = BENCHMARKING)]
    pub(super) connect: bool,
    /// Define a variable
    #[arg(short = 'D', long, value_name = "VARNAME=VALUE", help_heading = BENCHMARKING, action = ArgAction::Append)]
    pub(super) define: Vec<String>,
    /// Number of threads
    #[arg(short, long, value_name = "NUM", help_heading = BENCHMARKING, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) jobs: u32,
    /// Log transactions to files
    #[arg(short, long, help_heading = BENCHMARKING)]
    pub(super) log: bool,
    /// Count transactions that take longer than this many milliseconds as late
    #[arg(short = 'L', long, value_name = "NUM", help_heading = BENCHMARKING)]
    pub(super) latency_limit: Option<f64>,
    /// simple, extended or prepared
    #[arg(short = 'M', long, value_name = "PROTOCOL", help_heading = BENCHMARKING, default_value = "simple", value_parser = ["simple", "extended", "prepared"])]
    pub(super) protocol: String,
    /// Do not vacuum
    #[arg(short, long, help_heading = BENCHMARKING)]
    pub(super) no_vacuum: bool,
    /// Print the progress every NUM seconds
    #[arg(short = 'P', long, value_name = "NUM", help_heading = BENCHMARKING, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) progress: Option<u32>,
    /// Print the latency of each command
    #[arg(short, long, help_heading = BENCHMARKING)]
    pub(super) report_per_command: bool,
    /// Start this many transactions per second
    #[arg(short = 'R', long, value_name = "NUM", help_heading = BENCHMARKING)]
    pub(super) rate: Option<f64>,
    /// Scale: of the tables, or of scripts that are not built in
    #[arg(short, long, value_name = "NUM", help_heading = BENCHMARKING, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) scale: Option<u64>,
    /// Transactions of each client [default: 10]
    #[arg(short, long, value_name = "NUM", help_heading = BENCHMARKING, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) transactions: Option<u64>,
    /// Duration in seconds
    #[arg(short = 'T', long, value_name = "NUM", help_heading = BENCHMARKING, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) time: Option<u32>,
    /// Vacuum all four tables before the run
    #[arg(short, long, help_heading = BENCHMARKING)]
    pub(super) vacuum_all: bool,
    /// Log the sums of intervals of NUM seconds
    #[arg(long, value_name = "NUM", help_heading = BENCHMARKING, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) aggregate_interval: Option<u32>,
    /// Print percentiles of the latency [default: 50,95,99]
    #[arg(long, value_name = "LIST", help_heading = BENCHMARKING, num_args = 0..=1, require_equals = true, default_missing_value = LATENCY_PERCENTILES, conflicts_with = "percentile")]
    pub(super) latency_percentiles: Option<String>,
    /// The same option of Neon's pgbench [default: 50,90,99,99.9,99.99]
    #[arg(long, value_name = "LIST", help_heading = BENCHMARKING, num_args = 0..=1, require_equals = true, default_missing_value = "50,90,99,99.9,99.99")]
    pub(super) percentile: Option<String>,
    /// An error of a client ends the run
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) exit_on_abort: bool,
    /// An error ends only its transaction
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) continue_on_error: bool,
    /// Report failures by their type
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) failures_detailed: bool,
    /// Beginning of the names of the log files [default: pgbench_log]
    #[arg(long, value_name = "PREFIX", help_heading = BENCHMARKING)]
    pub(super) log_prefix: Option<String>,
    /// Number of tries of a transaction; 0 for no limit
    #[arg(long, value_name = "NUM", help_heading = BENCHMARKING, default_value_t = 1)]
    pub(super) max_tries: u32,
    /// Print the progress with the time since 1970
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) progress_timestamp: bool,
    /// time, rand, or a number
    #[arg(long, value_name = "SEED", help_heading = BENCHMARKING)]
    pub(super) random_seed: Option<String>,
    /// Share of the transactions that are logged
    #[arg(long, value_name = "NUM", help_heading = BENCHMARKING)]
    pub(super) sampling_rate: Option<f64>,
    /// Print errors that repeat a transaction or end it after the last try
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) verbose_errors: bool,

    /// Name of the database, or a connection string
    #[arg(short, long, value_name = "DBNAME", help_heading = COMMON)]
    pub(super) dbname: Option<String>,
    /// Host, or directory of the socket
    #[arg(short = 'h', long, value_name = "HOSTNAME", help_heading = COMMON)]
    pub(super) host: Option<String>,
    /// Port
    #[arg(short, long, value_name = "PORT", help_heading = COMMON)]
    pub(super) port: Option<String>,
    /// User
    #[arg(short = 'U', long, value_name = "USERNAME", help_heading = COMMON)]
    pub(super) username: Option<String>,
    /// Accepted: \shell and \setshell are always allowed
    #[arg(long, help_heading = BENCHMARKING)]
    pub(super) allow_shell: bool,
    /// Print each command of each client
    #[arg(long, help_heading = COMMON)]
    pub(super) debug: bool,
    /// Print the version
    #[arg(short = 'V', long)]
    pub(super) version: bool,
    /// Print help
    #[arg(short = '?', long, action = ArgAction::Help)]
    pub(super) help: Option<bool>,
    /// Name of the database, or a connection string
    #[arg(value_name = "DBNAME")]
    pub(super) database: Option<String>,
}
