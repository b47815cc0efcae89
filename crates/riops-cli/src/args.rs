//! The command line as it is typed. What is left out stays `None`: defaults belong to the plan.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use riops::plan::{Distribution, Order, Threshold};
use riops::units::{Count, Size, Span};

/// Measures PostgreSQL-compatible databases
#[derive(Debug, Parser)]
#[command(name = "riops", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print nothing but results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Read options from a TOML file (their long names, without the dashes) or from a pgio.conf
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    // What reading the options gave cause to say.
    #[arg(skip)]
    pub(crate) notices: Vec<String>,
}

const EXAMPLES: &str = "\
Every option can also be set in the environment (RIOPS_SESSIONS=60) or in the file of --config;
the command line wins over the environment, and the environment over the file.

Examples:
  riops run rows                          random row reads on a server of riops's own
  riops run rows -c 32 --batch 1          32 sessions, one row a statement
  riops prepare rows --rows 50e6 -d postgresql://me@db.example/bench
  riops server start && psql \"$(riops server url)\"";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the dataset of a workload
    Prepare {
        #[command(subcommand)]
        workload: Prepare,
    },
    /// Measure a workload
    Run {
        #[command(subcommand)]
        workload: Run,
    },
    /// Prove that the data hold what was acknowledged
    Verify {
        #[command(subcommand)]
        workload: Verify,
    },
    /// Drop what prepare made, and nothing else
    Cleanup {
        #[command(subcommand)]
        workload: Cleanup,
    },
    /// Look at the runs that are kept
    Runs {
        #[command(subcommand)]
        action: Runs,
    },
    /// Look at a target, or at this client, before something is measured
    Doctor(Box<Doctor>),
    /// Manage the embedded server
    Server {
        #[command(subcommand)]
        action: Server,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Prepare {
    /// Tables whose rows lie scattered behind an index
    Rows(PrepareRows),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Run {
    /// Random row reads and writes per second (RIOPS)
    Rows(Box<RunRows>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verify {
    /// Row count, key range, and the sum of all increments
    Rows(VerifyRows),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyRows {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cleanup {
    /// The tables of the workload rows
    Rows(TargetOptions),
}

/// Which database
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetOptions {
    /// URL, key=value connection string or name of a database, as libpq takes them; else the PG*
    /// variables where PGHOST, PGSERVICE or PGDATABASE is set; else the embedded server
    #[arg(short, long, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) embedded: EmbeddedOptions,
}

/// Which embedded server
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Embedded server")]
pub(crate) struct EmbeddedOptions {
    /// Use this installed PostgreSQL instead of the downloaded one (the folder above bin/postgres)
    #[arg(long, value_name = "DIR")]
    pub(crate) server_dir: Option<PathBuf>,
    /// Keep the server's data, socket and log here
    #[arg(long, value_name = "DIR")]
    pub(crate) server_data: Option<PathBuf>,
    /// Run the server as this user, where riops runs as root
    #[arg(long, value_name = "NAME")]
    pub(crate) server_user: Option<String>,
    /// Listen on this port of 127.0.0.1 instead of a free one
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) server_port: Option<u16>,
    /// Change a setting of the server (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) server_set: Vec<(String, String)>,
    /// Keep downloads, and servers without a folder of their own, here
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

impl EmbeddedOptions {
    /// Whether any of them decides about a server.
    pub(crate) fn names_a_server(&self) -> bool {
        self.server_dir.is_some()
            || self.server_data.is_some()
            || self.server_user.is_some()
            || self.server_port.is_some()
            || !self.server_set.is_empty()
    }
}

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
    /// Make the dataset first where it is missing (the embedded server does so by itself)
    #[arg(long, help_heading = "Dataset")]
    pub(crate) prepare: bool,
    #[command(flatten)]
    pub(crate) dataset: DatasetOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// How it is driven
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunOptions {
    /// Database connections that do the work [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N")]
    pub(crate) sessions: Option<u32>,
    /// Threads that drive them [default: the number of cores, at most one per session]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// How long to measure [default: 10s]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME", group = "stop")]
    pub(crate) duration: Option<Span>,
    /// Stop after exactly this many transactions, over all sessions
    #[arg(long, value_name = "N", group = "stop")]
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
    /// How statements are sent [default: prepared]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) protocol: Option<Protocol>,
    /// Transactions that a session may have under way at once [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) pipeline: Option<u32>,
    /// Make a new connection after every N transactions of a session
    #[arg(long, value_name = "N")]
    pub(crate) reconnect: Option<Count>,
    /// Send a transaction again up to N times after a serialization failure or deadlock [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// After any other error of a statement: end the run, or count it and go on [default: stop]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<OnError>,
    /// How long a session whose connection broke tries to get another one [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) reconnect_timeout: Option<Span>,
    /// What the result has to be, else exit with 99: 'p99<10ms', 'riops>50000', 'errors=0'
    /// (repeatable)
    #[arg(long, value_name = "CONDITION")]
    pub(crate) threshold: Vec<Threshold>,
    /// End the run as soon as a --threshold is breached
    #[arg(long, requires = "threshold")]
    pub(crate) abort_on_threshold: bool,
    /// Call a result that the client limited not valid
    #[arg(long)]
    pub(crate) strict: bool,
    /// How long to run before measuring [default: 2s]
    #[arg(long, visible_alias = "warmup-time", value_name = "TIME")]
    pub(crate) warmup: Option<Span>,
    /// Length of a point of the time series [default: 1s]
    #[arg(long, visible_alias = "report-interval", value_name = "TIME")]
    pub(crate) interval: Option<Span>,
    /// From which all random numbers are derived [default: random]
    #[arg(long, visible_alias = "rand-seed", value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Do not sum up the data after updates
    #[arg(long)]
    pub(crate) no_verify: bool,
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

#[derive(Debug, Args)]
pub(crate) struct RunOutputOptions {
    /// What to print on standard output; pgio is text that ends with PGIO's report
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: RunOutput,
}

// A form of a run's result. No doc comments here: they would turn every --help into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutput {
    Text,
    Json,
    Pgio,
}

// How rows fill blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    Packed,
    Block,
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

/// Where runs are kept
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// The file that runs are kept in [default: riops/runs.sqlite in the user's data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// What to print on standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
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

/// What to look at
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Measure instead how much this client could do at most: against a server that does nothing
    #[arg(long)]
    pub(crate) client: bool,
    /// With --client: connections [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N", requires = "client", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) sessions: Option<u32>,
    /// With --client: threads that drive them [default: the number of cores]
    #[arg(short = 'j', long, value_name = "N", requires = "client")]
    pub(crate) workers: Option<u32>,
    /// With --client: how long to measure [default: 3s]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME", requires = "client")]
    pub(crate) duration: Option<Span>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

// A form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    // For people. No doc comments here: they would turn every --help into its long form.
    Text,
    // One document, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// The runs that are kept, newest first
    List {
        /// How many at most
        #[arg(long, default_value = "20", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// One run, as it was printed at its end
    Show {
        /// The beginning or the end of its id, or `last`
        #[arg(default_value = "last")]
        run: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        output: RunOutputOptions,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Server {
    /// Start it, and leave it running for any client
    Start(EmbeddedOptions),
    /// Stop it
    Stop {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Also where another riops is using it
        #[arg(long)]
        force: bool,
    },
    /// Whether it is running, and where its files are
    Status(EmbeddedOptions),
    /// Its address, as any client takes it
    Url {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// The TCP address, with the password, instead of the socket
        #[arg(long)]
        tcp: bool,
    },
    /// Open psql on it
    Psql {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Arguments for psql, behind --
        #[arg(last = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Stop it and remove all its data
    Reset {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Also where another riops is using it
        #[arg(long)]
        force: bool,
    },
    /// What runs beside the server; started by riops itself
    #[command(hide = true)]
    Keep,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|rate: &f64| *rate > 0.0 && rate.is_finite())
        .ok_or_else(|| format!("`{text}` is no rate above 0 (examples: 1000, 2.5, 1e4)"))
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` has no form NAME=VALUE")),
    }
}
