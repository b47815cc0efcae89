//! The options of `riops run`: what is common to all workloads, and what each has of its own.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use riops::plan::{Distribution, Method, PointOperations, Spread, Threshold};
use riops::units::{Count, Span};

use super::dataset::{DatasetOptions, LoadTableOptions};
use super::{StoreOptions, TargetOptions, parse_pair};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunRows {
    /// Rows that one read touches; of several (1,10,100) each makes a stage of its own
    /// [default: 1000]
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Work")]
    pub(crate) batch: Vec<Count>,
    /// Who repeats the transactions: client sends each of them, server makes one call a session to
    /// a procedure that does; of both (client,server) each makes a stage of its own
    /// [default: client]
    #[arg(
        long = "loop",
        value_enum,
        value_name = "SIDE,…",
        value_delimiter = ',',
        help_heading = "Work"
    )]
    pub(crate) loop_sides: Vec<LoopSide>,
    /// Percent of the rows that are updated instead of read, 0 to 100 [default: 0]
    #[arg(long, value_name = "PERCENT", help_heading = "Work", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) update_percent: Option<u8>,
    /// Of what --update-percent is a share: rows or transactions [default: rows]
    #[arg(long, value_enum, value_name = "OF", help_heading = "Work")]
    pub(crate) update_share: Option<UpdateShare>,
    /// Rows that one update touches [default: as --batch]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub(crate) update_batch: Option<Count>,
    /// Stay in the index: range scans instead of row reads
    #[arg(long, help_heading = "Work")]
    pub(crate) index_only: bool,
    /// Each session keeps to one table
    #[arg(long, help_heading = "Work")]
    pub(crate) table_per_session: bool,
    /// Which keys: uniform, zipfian:THETA, or hotspot:KEYS%:ACCESSES% [default: uniform]
    #[arg(long, value_name = "KIND", help_heading = "Work")]
    pub(crate) distribution: Option<Distribution>,
    /// Before each stage, empty the caches of the dataset: shared buffers (PostgreSQL 17 or later)
    /// and, where the server's files can be read, the page cache
    #[arg(long, help_heading = "Work", conflicts_with = "warm")]
    pub(crate) cold: bool,
    /// Before each stage, read the dataset into the caches
    #[arg(long, help_heading = "Work")]
    pub(crate) warm: bool,
    /// YugabyteDB: let followers answer reads, with data as old as this
    #[arg(long, value_name = "TIME", help_heading = "Work")]
    pub(crate) follower_reads: Option<Span>,
    /// YugabyteDB: update without distributed transactions
    #[arg(long, help_heading = "Work")]
    pub(crate) non_transactional_writes: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) drive: LoopOptions,
    #[command(flatten)]
    pub(crate) pipeline: PipelineOptions,
    /// Make the dataset first where it is missing (the embedded server does so by itself)
    #[arg(long, help_heading = "Dataset")]
    pub(crate) prepare: bool,
    #[command(flatten)]
    pub(crate) dataset: DatasetOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunLoad {
    #[arg(
        long,
        value_name = "METHOD,…",
        value_delimiter = ',',
        help_heading = "Work",
        help = "How rows get into the table: insert, copy (copy_mem), copy-binary, copy-file, procedure, unnest; of several (insert,copy) each makes a stage of its own [default: insert]"
    )]
    pub(crate) method: Vec<Method>,
    /// Rows of one statement, which is one commit [default: 200]
    #[arg(short, long, visible_alias = "batch", value_name = "N", help_heading = "Work")]
    pub(crate) batch_size: Option<Count>,
    /// With --method copy-file: where the server finds the files that riops generate csv has
    /// written [default: /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    pub(crate) dir: Option<String>,
    /// YugabyteDB: load without distributed transactions
    #[arg(short, long, visible_aliases = ["nontransactional", "non-transactional-writes"], help_heading = "Work")]
    pub(crate) non_transactional: bool,
    /// Drop a table that is there already
    #[arg(long, help_heading = "Dataset")]
    pub(crate) drop: bool,
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
    /// Print the bytes of one row too
    #[arg(long, help_heading = "Output")]
    pub(crate) show_rowsize: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunPoint {
    /// Which statements: select, update, or mixed:SELECT%/UPDATE% (mixed:90/10) [default: select]
    #[arg(long, value_name = "OP", help_heading = "Work")]
    pub(crate) op: Option<PointOperations>,
    /// Which keys: uniform, zipfian:THETA, or hotspot:KEYS%:ACCESSES% [default: uniform]
    #[arg(long, value_name = "KIND", help_heading = "Work")]
    pub(crate) distribution: Option<Distribution>,
    /// Characters of each text that an update writes [default: those of the table]
    #[arg(short, long, visible_alias = "fields-length", value_name = "N", help_heading = "Work")]
    pub(crate) field_length: Option<u32>,
    /// Empty the caches of the table first: shared buffers (PostgreSQL 17 or later) and, where the
    /// server's files can be read, the page cache
    #[arg(long, help_heading = "Work", conflicts_with = "warm")]
    pub(crate) cold: bool,
    /// Read the table into the caches first
    #[arg(long, help_heading = "Work")]
    pub(crate) warm: bool,
    /// YugabyteDB: update without distributed transactions
    #[arg(short, long, visible_aliases = ["nontransactional", "non-transactional-writes"], help_heading = "Work")]
    pub(crate) non_transactional: bool,
    /// Print the bytes of one row too
    #[arg(long, help_heading = "Output")]
    pub(crate) show_rowsize: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) drive: LoopOptions,
    #[command(flatten)]
    pub(crate) pipeline: PipelineOptions,
    /// Load the table first where it is missing (the embedded server does so by itself)
    #[arg(long, help_heading = "Dataset")]
    pub(crate) prepare: bool,
    #[command(flatten)]
    pub(crate) table: LoadTableOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// How it is driven
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunOptions {
    /// Database connections that do the work [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N")]
    pub(crate) sessions: Option<u32>,
    /// Threads that drive them [default: the number of cores, at most one per session]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// How statements are sent [default: prepared]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) protocol: Option<Protocol>,
    /// Send a transaction again up to N times after a serialization failure or deadlock [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// What the result has to be, else exit with 99: 'p99<10ms', 'riops>50000', 'errors=0'
    /// (repeatable)
    #[arg(long, value_name = "CONDITION")]
    pub(crate) threshold: Vec<Threshold>,
    /// Call a result that the client limited not valid
    #[arg(long)]
    pub(crate) strict: bool,
    /// From which all random numbers are derived [default: random]
    #[arg(long, visible_alias = "rand-seed", value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The percentile of the interval lines, and of sysbench's report [default: 95]
    #[arg(long, value_name = "N")]
    pub(crate) percentile: Option<f64>,
    /// Do not read the data afterwards to prove that nothing was lost
    #[arg(long)]
    pub(crate) no_verify: bool,
    #[command(flatten)]
    pub(crate) record: RecordOptions,
    #[command(flatten)]
    pub(crate) nodes: NodeOptions,
    #[command(flatten)]
    pub(crate) picture: PictureOptions,
}

impl RunOptions {
    /// What is kept and printed of the run, and drawn.
    pub(crate) fn kept(&self) -> (&RecordOptions, &PictureOptions) {
        (&self.record, &self.picture)
    }
}

/// What is kept of it, and in which form it is printed
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RecordOptions {
    /// Length of a point of the time series [default: 1s]
    #[arg(long, visible_alias = "report-interval", value_name = "TIME")]
    pub(crate) interval: Option<Span>,
    /// Keep trying to connect the sessions for this long before the first transaction
    #[arg(long, value_name = "TIME")]
    pub(crate) thread_init_timeout: Option<Span>,
    /// A name for the run
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// More names for the run (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) tag: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Do not keep the run
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) output: RunOutputOptions,
}

/// How many transactions at once
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct PipelineOptions {
    /// Transactions that a session may have under way at once [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) pipeline: Option<u32>,
}

/// Which nodes of a cluster
#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeOptions {
    #[arg(
        long,
        value_name = "HOW",
        help = "With several hosts, or those of yb_servers(), which node a session goes to: round-robin, least-connections, primary, replica, topology:CLOUD.REGION.ZONE:PRIORITY,… (zone * for any), or off, wherever the connection settings lead [default: round-robin]"
    )]
    pub(crate) spread: Option<Spread>,
    /// Let sessions go back to a node that has returned, and to one that has joined
    #[arg(long)]
    pub(crate) rebalance: bool,
    /// YugabyteDB: the port at which the nodes tell their metrics [default: 9000]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) metrics_port: Option<u16>,
}

/// When it starts and ends, and what it does about errors
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct LoopOptions {
    /// How long to measure [default: 10s]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME", group = "stop")]
    pub(crate) duration: Option<Span>,
    /// Stop after exactly this many transactions, over all sessions
    #[arg(long, visible_alias = "events", value_name = "N", group = "stop")]
    pub(crate) transactions: Option<Count>,
    /// Stop when this many rows have been read or written, over all sessions
    #[arg(long, value_name = "N", group = "stop")]
    pub(crate) total_rows: Option<Count>,
    /// Start this many transactions per second, over all sessions, whatever happens to those before
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    pub(crate) rate: Option<f64>,
    /// With --rate: start at random distances, as independent users do
    #[arg(long, requires = "rate")]
    pub(crate) poisson: bool,
    /// Count transactions as late whose response time is longer
    #[arg(long, value_name = "TIME")]
    pub(crate) latency_limit: Option<Span>,
    /// With --rate: do not send what is already later than --latency-limit, and count it
    #[arg(long, requires = "latency_limit")]
    pub(crate) skip_late: bool,
    /// Make a new connection after every N transactions of a session
    #[arg(long, value_name = "N")]
    pub(crate) reconnect: Option<Count>,
    /// After any other error of a statement: end the run, or count it and go on [default: stop]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<OnError>,
    /// How long a session whose connection broke tries to get another one [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) reconnect_timeout: Option<Span>,
    /// End the run as soon as a --threshold is breached
    #[arg(long, requires = "threshold")]
    pub(crate) abort_on_threshold: bool,
    /// How long to run before measuring [default: 2s]
    #[arg(long, visible_alias = "warmup-time", value_name = "TIME")]
    pub(crate) warmup: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct RunOutputOptions {
    /// What to print on standard output; pgio is text that ends with PGIO's report; sysbench is its report
    /// alone, and cbc the lines of its collector
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: RunOutput,
}

// A form of a run's result. No doc comments here: they would turn every --help into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutput {
    Text,
    Json,
    Pgio,
    Sysbench,
    Cbc,
}

/// What is printed and drawn beside the result
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PictureOptions {
    /// Print a histogram of the latencies behind the text; its buckets are of equal width, or with
    /// =log each is as many times the one before
    #[arg(long, value_enum, value_name = "SCALE", num_args = 0..=1, require_equals = true, default_missing_value = "linear")]
    pub(crate) print_histogram: Option<Scale>,
    /// Buckets of the histogram [default: 10]
    #[arg(long, value_name = "N", requires = "print_histogram", value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(crate) histogram_buckets: Option<u16>,
    /// Draw the latency of each transaction over time into this PNG file, a colour a session
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,
    /// With --graph: the scale of its latencies [default: log]
    #[arg(long, value_enum, value_name = "SCALE", requires = "graph")]
    pub(crate) graph_scale: Option<Scale>,
}

// How latencies are laid out. No doc comments here: they would turn every --help into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    Linear,
    Log,
}

// Who repeats the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoopSide {
    Client,
    Server,
}

// Of what the updates are a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpdateShare {
    Rows,
    Transactions,
}

// How statements are sent. No doc comments here: they would turn every --help into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    Prepared,
    Extended,
    Simple,
}

// What happens after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    Stop,
    Continue,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|rate: &f64| *rate > 0.0 && rate.is_finite())
        .ok_or_else(|| format!("`{text}` is no rate above 0 (examples: 1000, 2.5, 1e4)"))
}
