//! The command line as typed. Options that are not given stay `None`, because the plan owns the defaults.

mod cbc;
pub(crate) mod cells;
mod compare;
pub(crate) mod fleet;
pub(crate) mod gate;
pub(crate) mod groups;
mod load;
mod observe;
mod oltp;
pub(crate) mod output;
mod parsers;
mod ping;
mod point;
mod rows;
pub(crate) mod run;
pub(crate) mod runs;
mod script;
mod shared;
pub(crate) mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use riops::plan::{DatasetPlan, LoadDataset, OltpDataset, Parameters, RowsDataset, WorkPlan};
use riops::report::glossary_text;
use riops::units::{Size, Span};

use crate::failure::ErrorForm;
use crate::hints::Given;

pub(crate) use compare::{Compare, FailOn, FailOnVerdict, History, parse_share};
pub(crate) use fleet::ManifestOptions;
pub(crate) use load::GenerateCsv;
pub(crate) use output::{AnswerOptions, OutputOptions};
pub(crate) use parsers::TYPED_ONLY;
pub(crate) use run::{GraphOptions, LiveOptions, PlanOptions, ResultOptions, RunWorkload};
pub(crate) use runs::{
    Export, FilterOptions, Import, LastOptions, ListOptions, MergeOptions, RemoveOptions, Report,
    Serve, TagOptions,
};
pub(crate) use script::{CheckScript, InitializeScript, LATENCY_PERCENTILES, ScriptCommand};
pub(crate) use shared::{
    ChangeOptions, EmbeddedOptions, PrepareOf, PrepareOptions, PrepareWorkload, StoreOptions,
    TargetOptions, TrustOption,
};
pub(crate) use sweep::{Ab, ExperimentOptions, Sweep, TestOptions};

/// Benchmark PostgreSQL-compatible databases
#[derive(Debug, Parser)]
#[command(name = "riops", version, long_version = build(), max_term_width = 100, after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\nTerms:\n{}", glossary_text(HELP_COLUMNS)))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Read options from a TOML file (long names without the dashes) or a pgio.conf
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    // Notices about the options that were read.
    #[arg(skip)]
    pub(crate) notices: Vec<String>,
    // How errors are printed.
    #[arg(skip)]
    pub(crate) error_form: ErrorForm,
    // The options that commands in messages repeat.
    #[arg(skip)]
    pub(crate) given: Given,
    // The words of `riops run` for each cell of an experiment.
    #[arg(skip)]
    pub(crate) cell_words: Vec<OsString>,
}

/// Returns the version, and the commit, target and features of the build.
fn build() -> String {
    let features = if cfg!(feature = "embedded") { "embedded" } else { "none" };
    let commit = Some(env!("BUILD_COMMIT")).filter(|commit| !commit.is_empty());
    format!(
        "{}\ncommit: {}\ntarget: {}\nfeatures: {features}",
        env!("CARGO_PKG_VERSION"),
        commit.unwrap_or("unknown"),
        env!("BUILD_TARGET"),
    )
}

/// Returns the command line of riops. Deriving and cloning it take milliseconds, so it is done once.
pub(crate) fn command() -> &'static clap::Command {
    static COMMAND: LazyLock<clap::Command> = LazyLock::new(derived_command);
    &COMMAND
}

/// Returns the command line with the subcommands that these words name; other subcommands are empty. It accepts the same words in
/// much less time, because clap clones the whole command for each command line that it parses.
pub(crate) fn command_for(words: &[OsString]) -> &'static clap::Command {
    type Names = BTreeSet<String>;
    static NAMES: OnceLock<Names> = OnceLock::new();
    static REDUCED: Mutex<BTreeMap<Names, &'static clap::Command>> = Mutex::new(BTreeMap::new());
    let mut derived = None;
    let known = NAMES.get_or_init(|| {
        let mut names = Names::new();
        collect_names(derived.insert(derived_command()), &mut names);
        names
    });
    let named: Names = words.iter().filter_map(|word| known.get(word.to_str()?).cloned()).collect();
    let mut reduced = REDUCED.lock().unwrap_or_else(PoisonError::into_inner);
    reduced.entry(named.clone()).or_insert_with(|| {
        let full_command = derived.unwrap_or_else(derived_command);
        Box::leak(Box::new(with_only(full_command, &named)))
    })
}

fn collect_names(command: &clap::Command, names: &mut BTreeSet<String>) {
    for inner in command.get_subcommands() {
        names.extend(names_of(inner).map(str::to_owned));
        collect_names(inner, names);
    }
}

/// Returns the name of a command and its aliases.
fn names_of(command: &clap::Command) -> impl Iterator<Item = &str> {
    std::iter::once(command.get_name()).chain(command.get_all_aliases())
}

fn with_only(command: clap::Command, named: &BTreeSet<String>) -> clap::Command {
    command.mut_subcommands(|inner| {
        if names_of(&inner).any(|name| named.contains(name)) {
            with_only(inner, named)
        } else {
            clap::Command::new(inner.get_name().to_owned())
        }
    })
}

/// Returns the command line with `--help` and the global options in every subcommand.
pub(crate) fn built() -> &'static clap::Command {
    static BUILT: LazyLock<clap::Command> = LazyLock::new(|| {
        let mut command = command().clone();
        command.build();
        command
    });
    &BUILT
}

/// The command line, derived except for the output forms: each workload lists its own.
fn derived_command() -> clap::Command {
    let full_command = Arguments::command().mut_subcommand("observe", |observe| {
        observe.mut_arg("output", |output| output::of_run("observe", output))
    });
    let full_command =
        WorkPlan::executable_names().into_iter().fold(full_command, |command, workload| {
            let command = command.mut_subcommand("run", |run| {
                run.mut_subcommand(workload.clone(), |inner| {
                    inner.mut_arg("output", |output| output::of_run(&workload, output))
                })
            });
            ["sweep", "ab"].into_iter().fold(command, |command, experiment| {
                let adapted = |inner| cells::adapted(experiment, inner);
                command.mut_subcommand(experiment, |outer| {
                    outer.mut_subcommand(workload.clone(), adapted)
                })
            })
        });
    groups::grouped(full_command)
}

/// Columns of the terms in the help, which a narrow terminal has, too.
const HELP_COLUMNS: usize = 78;

const EXAMPLES: &str = "\
Every option can also be set in the environment (RIOPS_SESSIONS=60) or in a file (--config).
The command line overrides the environment, and the environment overrides the file.

Exit codes: 0 done, 1 failed, 2 usage error, 3 invalid result, 99 threshold breached, 130 interrupted.

Examples:
  riops run rows                          random row reads on the embedded server
  riops run rows -c 32 --batch 1          32 sessions, one row per statement
  riops run load --rows 1e6 --method insert,copy-binary
  riops run point --op mixed:90/10 --graph latency.png
  riops run oltp read-only --tables 10 --table-size 100000
  riops run cbc --size 20GB
  riops prepare rows --rows 50e6 -d postgresql://me@db.example/bench
  riops server start && psql \"$(riops server url)\"";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create the dataset of a workload
    #[command(subcommand)]
    Prepare(Prepare),
    /// Measure a workload
    Run(Box<Run>),
    Observe(Box<observe::RunObserve>),
    Sweep(Box<Sweep>),
    Ab(Box<Ab>),
    Gate(Box<gate::Gate>),
    Bisect(Box<gate::Bisect>),
    /// Write a static site of stored runs: pages, records, experiments, comparisons, histories
    Gallery(runs::GalleryOptions),
    /// Verify that all acknowledged writes are present
    #[command(subcommand)]
    Verify(Verify),
    /// Read a dataset into the caches
    #[command(subcommand)]
    Warm(Warm),
    /// Drop the objects that riops created
    #[command(subcommand)]
    Cleanup(Cleanup),
    /// Generate files for a load
    #[command(subcommand)]
    Generate(Generate),
    Last(LastOptions),
    /// List, show, tag, remove, rerun, export or import runs
    #[command(subcommand)]
    Runs(Runs),
    /// List, show or remove experiments: sweeps, A/B tests, gates
    #[command(subcommand)]
    Experiments(sweep::Experiments),
    /// Compare two groups of runs: what changed, and by how much the results differ
    Compare(Compare),
    /// Write an HTML page of stored runs: results and time series
    Report(Report),
    /// Show stored runs and runs in progress in a browser
    Serve(Serve),
    /// Explain a term of the output, with an example
    Explain {
        /// A term, or the beginning of one; without it, all terms are listed
        term: Vec<String>,
    },
    /// Check a server, its disk or this client before a measurement
    Doctor(Box<Doctor>),
    /// Manage the embedded server
    #[command(subcommand)]
    Server(Server),
    /// Check pgbench scripts, or create pgbench's tables step by step
    #[command(subcommand)]
    Script(ScriptCommand),
    /// Several clients that run one plan together: run … --fleet
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Print the completion script of a shell, also for stored runs: source <(riops completions bash)
    Completions {
        shell: Shell,
    },
    Man(Man),
    /// Accept the command line of sysbench: TEST prepare|run|cleanup|help, with sysbench's options
    Sysbench(Original),
    /// Accept the command line of ysql-bench: -o insert,select with its options
    YsqlBench(Original),
    /// Accept the commands of PGIO's scripts, with its pgio.conf: setup, run
    Pgio(Original),
    /// Accept the command line of pgbench, with its options and reports
    Pgbench(Original),
}

// A shell that can complete command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// Print the manual page of a command: riops man run rows | man -l -
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command, such as run rows [default: riops]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) all: Option<PathBuf>,
}

/// The command line of another tool. `main` reads it as the tool does, without clap.
#[derive(Debug, Args)]
pub(crate) struct Original {
    /// Arguments of the tool; `help` lists them
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

/// Declares the workloads: the subcommands of `riops run`, and the subcommands of `riops sweep` with their own descriptions.
macro_rules! workloads {
    ($($(#[$of_sweep:meta])* $workload:ident($options:ty),)+) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum RunList { $($workload(Box<cells::RunOf<$options>>),)+ }

        impl RunList {
            /// The options of the workload.
            pub(crate) fn options(&self) -> &dyn RunWorkload {
                match self { $(Self::$workload(options) => options.as_ref(),)+ }
            }
        }

        #[derive(Debug, Subcommand)]
        pub(crate) enum WorkloadOf<E: Args> { $($(#[$of_sweep])* $workload(Box<cells::ExperimentOf<E, $options>>),)+ }

        impl<E: Args> WorkloadOf<E> {
            /// The options of the experiment and of the workload.
            pub(crate) fn options(&self) -> (&E, &dyn RunWorkload) {
                match self { $(Self::$workload(options) => (&options.experiment, &options.run),)+ }
            }
        }
    };
}

workloads! {
    /// Random row reads and writes
    Rows(rows::RunRows),
    /// Bulk loads
    Load(load::RunLoad),
    /// Point selects and updates
    Point(point::RunPoint),
    /// OLTP transactions
    Oltp(oltp::RunOltp),
    /// Block I/O of a whole table
    Cbc(cbc::RunCbc),
    /// Round trips
    Ping(ping::RunPing),
    /// pgbench scripts
    Script(script::RunScript),
    /// Any command
    Observe(observe::RunObserve),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Prepare {
    /// Create tables with rows scattered relative to their index
    Rows(Box<PrepareOf<rows::PrepareRows>>),
    /// Create the table of the workloads load and point
    #[command(visible_alias = "point")]
    Load(Box<PrepareOf<load::PrepareLoad>>),
    /// Create sysbench's tables
    Oltp(Box<PrepareOf<oltp::PrepareOltp>>),
    /// Create pgbench's tables
    Script(Box<PrepareOf<script::PrepareScript>>),
}

impl Prepare {
    /// Returns the options of the dataset, and the options that all datasets share.
    pub(crate) fn options(&self) -> (&dyn PrepareWorkload, &PrepareOptions) {
        match self {
            Self::Rows(prepare) => (&prepare.workload, &prepare.options),
            Self::Load(prepare) => (&prepare.workload, &prepare.options),
            Self::Oltp(prepare) => (&prepare.workload, &prepare.options),
            Self::Script(prepare) => (&prepare.workload, &prepare.options),
        }
    }
}

/// The workload, or a plan from a file
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(subcommand)]
    pub(crate) workload: Option<RunList>,
    /// Run the plan in this file, as printed by --dump-plan
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) again: PlanOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Write CSV files for riops run load --method copy-file, one per session
    Csv(GenerateCsv),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verify {
    /// Check row count, key range and the sum of all updates
    Rows(VerifyOptions),
    /// Check row count, distinct ids, column lengths and a checksum per range of ids
    #[command(visible_alias = "point")]
    Load(VerifyOptions),
    /// Check row count, column lengths and, if no row was deleted, the sum of k
    Oltp(VerifyOptions),
    /// Check row counts, and the sums of balances against the history
    Script(VerifyOptions),
}

impl Verify {
    /// Name of the dataset, and the options.
    pub(crate) fn named(&self) -> (&'static str, &VerifyOptions) {
        match self {
            Self::Rows(options) => ("rows", options),
            Self::Load(options) => ("load", options),
            Self::Oltp(options) => ("oltp", options),
            Self::Script(options) => ("script", options),
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
pub(crate) enum Warm {
    /// Read the tables of the workload rows, or the first ones
    Rows(WarmOf<rows::DatasetOptions>),
    /// Read the table of the workloads load and point
    #[command(visible_alias = "point")]
    Load(WarmOf<load::LoadTableOptions>),
    /// Read the tables of the workload oltp, or the first ones
    Oltp(WarmOf<oltp::OltpOptions>),
}

#[derive(Debug, Args)]
pub(crate) struct WarmOf<D: Args> {
    #[command(flatten)]
    dataset: D,
    #[command(flatten)]
    target: TargetOptions,
}

impl Warm {
    /// Returns the dataset with all its parameters, and the parameters that were given.
    pub(crate) fn dataset(&self) -> Result<(DatasetPlan, Parameters)> {
        let (defaults, given): (DatasetPlan, Parameters) = match self {
            Self::Rows(options) => (RowsDataset::default().into(), options.dataset.given()?),
            Self::Load(options) => (LoadDataset::default().into(), shared::given(&options.dataset)),
            Self::Oltp(options) => (OltpDataset::default().into(), options.dataset.given()),
        };
        Ok((defaults.with(&given)?, given))
    }

    pub(crate) fn target(&self) -> &TargetOptions {
        match self {
            Self::Rows(options) => &options.target,
            Self::Load(options) => &options.target,
            Self::Oltp(options) => &options.target,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cleanup {
    /// Drop the tables of the workload rows
    Rows(TargetOptions),
    /// Drop the table of the workloads load and point
    #[command(visible_alias = "point")]
    Load(TargetOptions),
    /// Drop the tables of the workload oltp
    Oltp(CleanupOltp),
    /// Drop the tables of pgbench that riops created
    Script(TargetOptions),
    /// Drop the table of the workload cbc, and its database
    Cbc(TargetOptions),
}

impl Cleanup {
    /// Name of the dataset, and the server.
    pub(crate) fn named(&self) -> (&'static str, &TargetOptions) {
        match self {
            Self::Rows(target) => ("rows", target),
            Self::Load(target) => ("load", target),
            Self::Oltp(options) => ("oltp", &options.target),
            Self::Script(target) => ("script", target),
            Self::Cbc(target) => ("cbc", target),
        }
    }
}

/// The tables to drop
#[derive(Debug, Args)]
pub(crate) struct CleanupOltp {
    /// Only a dataset in this schema; fail if other tables of sysbench remain there
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
    #[command(flatten)]
    target: TargetOptions,
}

/// What to check
#[derive(Debug, Args)]
#[command(mut_arg("details", |arg| {
    arg.visible_alias("all").help("Print the settings and the machine, too")
}))]
pub(crate) struct Doctor {
    /// Measure the maximum throughput of this client, against a null server
    #[arg(long, conflicts_with = "disk")]
    pub(crate) client: bool,
    /// Measure the device of the server's data with fio, and store the result for later runs
    #[arg(long)]
    pub(crate) disk: bool,
    /// With --client: number of connections [default: number of cores]
    #[arg(short = 'c', long, visible_aliases = ["clients", "threads"], value_name = "N", requires = "client", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) sessions: Option<u32>,
    /// With --client: number of worker threads [default: number of cores]
    #[arg(short = 'j', long, value_name = "N", requires = "client")]
    pub(crate) workers: Option<u32>,
    /// Duration of the measurement with --client [default: 3s], or of each of the five tests of --disk, of which four first find the best number of fio jobs in steps of at most 5s [default: 5s]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// With --disk: directory on the device to test [default: the parent directory of a local server's data]
    #[arg(long, value_name = "DIR", requires = "disk")]
    pub(crate) disk_dir: Option<PathBuf>,
    /// With --disk: size of the test file [default: 2GB]
    #[arg(long, value_name = "SIZE", requires = "disk")]
    pub(crate) disk_size: Option<Size>,
    /// With --disk: where the result is stored
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List stored runs, newest first
    List(Box<ListOptions>),
    /// Show the results of a stored run
    #[command(mut_arg("output", |arg| arg.value_parser(output::of_runs())))]
    Show {
        /// Start or end of the run id, or `last`
        #[arg(default_value = "last")]
        run: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        outputs: OutputOptions,
        #[command(flatten)]
        graph_options: GraphOptions,
    },
    /// Show a figure over the stored runs, and where it changed
    History(History),
    /// Set or remove tags and the label of a stored run
    Tag(TagOptions),
    /// Add a note to a stored run
    Note(runs::NoteOptions),
    /// Accept that the level of the history changes with a run
    Ack(runs::AckOptions),
    /// Remove stored runs
    Rm(RemoveOptions),
    /// Repeat a stored run with the same plan and seed
    Rerun {
        /// Start or end of the run id, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Random seed [default: from the stored run]
        #[arg(long, visible_alias = "rand-seed", value_name = "N")]
        seed: Option<u64>,
        #[command(flatten)]
        again: Box<PlanOptions>,
    },
    /// Merge the simultaneous runs of several clients
    Merge(Box<MergeOptions>),
    /// Write stored runs as JSON, CSV or OpenMetrics
    Export(Box<Export>),
    /// Store runs that were exported elsewhere, and results of pgbench, sysbench and ybio
    Import(Box<Import>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Print Kubernetes manifests that run a `riops run` command in several pods
    Manifest(ManifestOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Server {
    /// Start the server and leave it running
    Start(EmbeddedOptions),
    /// Stop the server
    Stop {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Stop it even if another riops is using it
        #[arg(long)]
        force: bool,
    },
    /// Show whether the server is running, and its files
    Status(EmbeddedOptions),
    /// Print the connection URL of the server
    Url {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Print the TCP address with the password instead of the socket
        #[arg(long)]
        tcp: bool,
    },
    /// Connect with psql
    Psql {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Arguments for psql, after --
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Restore the settings of any server that a killed riops left changed
    Restore {
        #[command(flatten)]
        target: TargetOptions,
        #[command(flatten)]
        changes: ChangeOptions,
    },
    /// Stop the server and delete all its data
    Reset {
        #[command(flatten)]
        server: EmbeddedOptions,
        /// Stop it even if another riops is using it
        #[arg(long)]
        force: bool,
        /// Do not ask for confirmation
        #[arg(short, long, help_heading = TYPED_ONLY[1])]
        yes: bool,
    },
    /// Supervise the server; started by riops itself
    #[command(hide = true)]
    Keep,
}
