//! The command line as it is typed. What is left out stays `None`: defaults belong to the plan.

mod cbc;
mod load;
mod oltp;
mod parsers;
mod ping;
mod point;
mod rows;
pub(crate) mod run;
mod shared;
mod target;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use riops::units::{Size, Span};

pub(crate) use load::GenerateCsv;
pub(crate) use run::{KeepOptions, PictureOptions, RunOutputOptions, RunWorkload};
pub(crate) use shared::{PrepareFirst, PrepareOptions, PrepareWorkload};
pub(crate) use target::{EmbeddedOptions, StoreOptions, TargetOptions};

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
  riops run load --rows 1e6 --method insert,copy-binary
  riops run point --op mixed:90/10 --graph latency.png
  riops run oltp read-only --tables 10 --table-size 100000
  riops run cbc --size 20GB
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
    Run(Box<Run>),
    /// Verify that all acknowledged writes are present
    Verify {
        #[command(subcommand)]
        workload: Verify,
    },
    /// Drop what prepare made, and nothing else
    Cleanup {
        #[command(subcommand)]
        workload: Cleanup,
    },
    /// Make files for a load
    Generate {
        #[command(subcommand)]
        what: Generate,
    },
    /// Stored runs: list, show, rerun
    Runs {
        #[command(subcommand)]
        action: Runs,
    },
    /// Write stored runs as one page of HTML, with their counters over time
    Report(Report),
    /// Examine a server, its disk, or this client, before something is measured
    Doctor(Box<Doctor>),
    /// Manage the embedded server
    Server {
        #[command(subcommand)]
        action: Server,
    },
}

/// Declares the subcommands for workloads: a line each, and the common view of all.
macro_rules! workloads {
    ($(#[$meta:meta])* $list:ident: $options:ident { $($(#[$each:meta])* $variant:ident($parameters:ty),)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Subcommand)]
        pub(crate) enum $list { $($(#[$each])* $variant(Box<$parameters>),)+ }

        impl $list {
            /// Its options.
            pub(crate) fn options(&self) -> &dyn $options {
                match self { $(Self::$variant(options) => options.as_ref(),)+ }
            }
        }
    };
}

workloads! {
    Prepare: PrepareWorkload {
        Rows(rows::PrepareRows),
        #[command(visible_alias = "point")]
        Load(load::PrepareLoad),
        Oltp(oltp::PrepareOltp),
    }
}

workloads! {
    RunList: RunWorkload {
        Rows(rows::RunRows),
        Load(load::RunLoad),
        Point(point::RunPoint),
        Oltp(oltp::RunOltp),
        Cbc(cbc::RunCbc),
        Ping(ping::RunPing),
    }
}

/// What to run
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(subcommand)]
    pub(crate) workload: Option<RunList>,
    /// Run the plan in this file: one that --dump-plan has printed
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) again: AgainOptions,
}

/// How a plan that is there already is run
#[derive(Debug, Args)]
pub(crate) struct AgainOptions {
    #[command(flatten)]
    pub(crate) prepare: PrepareFirst,
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    #[command(flatten)]
    pub(crate) picture: PictureOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// CSV files for run load --method copy-file, one for each session
    Csv(GenerateCsv),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verify {
    /// Row count, key range, and the sum of all increments
    Rows(VerifyOptions),
    /// Row count, distinct ids, lengths of the texts, and a checksum for each range of ids
    #[command(visible_alias = "point")]
    Load(VerifyOptions),
    /// Row count, the sum of k where nothing was deleted, lengths of the texts
    Oltp(VerifyOptions),
}

impl Verify {
    /// The dataset's name, and the options.
    pub(crate) fn named(&self) -> (&'static str, &VerifyOptions) {
        match self {
            Self::Rows(options) => ("rows", options),
            Self::Load(options) => ("load", options),
            Self::Oltp(options) => ("oltp", options),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cleanup {
    /// The tables of the workload rows
    Rows(TargetOptions),
    /// The table of the workloads load and point
    #[command(visible_alias = "point")]
    Load(TargetOptions),
    /// The tables of the workload oltp
    Oltp(TargetOptions),
    /// The table of the workload cbc, and the database that it has of its own
    Cbc(TargetOptions),
}

impl Cleanup {
    /// The dataset's name, and which database.
    pub(crate) fn named(&self) -> (&'static str, &TargetOptions) {
        match self {
            Self::Rows(target) => ("rows", target),
            Self::Load(target) => ("load", target),
            Self::Oltp(target) => ("oltp", target),
            Self::Cbc(target) => ("cbc", target),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// What to print on standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
}

/// Which runs, and where to
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The beginning or the end of the id of each run, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// The file; - is standard output [default: riops-ID.html, here]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// What to look at
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Measure instead how much this client could do at most: against a server that does nothing
    #[arg(long, conflicts_with = "disk")]
    pub(crate) client: bool,
    /// Measure instead what the device of the server's data can do, with fio, and keep it: runs are held
    /// against it
    #[arg(long)]
    pub(crate) disk: bool,
    /// With --client: connections [default: the number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N", requires = "client", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) sessions: Option<u32>,
    /// With --client: threads that drive them [default: the number of cores]
    #[arg(short = 'j', long, value_name = "N", requires = "client")]
    pub(crate) workers: Option<u32>,
    /// With --client: how long to measure [default: 3s]; with --disk: each of four times [default: 5s]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// With --disk: a folder on the device [default: beside the server's data, where the server runs on
    /// this machine]
    #[arg(long, value_name = "DIR", requires = "disk")]
    pub(crate) disk_dir: Option<PathBuf>,
    /// With --disk: the file that is written and read [default: 2GB]
    #[arg(long, value_name = "SIZE", requires = "disk")]
    pub(crate) disk_size: Option<Size>,
    /// With --disk: where it is kept
    #[command(flatten)]
    pub(crate) store: StoreOptions,
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
    /// The stored runs, newest first
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
        #[command(flatten)]
        picture: PictureOptions,
    },
    /// Repeat a stored run with its plan and seed
    Rerun {
        /// The beginning or the end of its id, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Another random seed than that of the stored run
        #[arg(long, visible_alias = "rand-seed", value_name = "N")]
        seed: Option<u64>,
        #[command(flatten)]
        again: Box<AgainOptions>,
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
