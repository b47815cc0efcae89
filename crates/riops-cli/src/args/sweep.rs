//! Options of `riops sweep`, `riops ab` and `riops experiments`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use riops::study::{Order, Reset, Search};
use riops::units::Span;

use super::WorkloadOf;
use super::cells::REPEATS;
use super::compare::{Share, parse_share};
use super::fleet::FleetOptions;
use super::output::{AnswerOptions, Forms, OutputOptions, STUDY};
use super::parsers::{OrDefault, choice, parse_pair};
use super::runs::NoteOptions;
use super::shared::{ChangeOptions, StoreOptions, TargetOptions, TrustOption};

/// Measure all combinations of options, or find the saturation point
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("resume", |arg| arg.conflicts_with_all(DEFINED).conflicts_with_all(DEFINED_OF_SWEEP)),
    mut_arg("list", |arg| arg.conflicts_with_all(DEFINED).conflicts_with_all(DEFINED_OF_SWEEP).conflicts_with_all(NOT_LISTED))
)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    pub(crate) workload: Option<WorkloadOf<ExperimentOptions>>,
    /// Experiment file, or name of a ready experiment; further options override the file
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
    /// List the stored experiments
    #[arg(long, conflicts_with_all = ["file", "resume"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) changes: ChangeOptions,
    #[command(flatten)]
    pub(crate) own: OwnOptions,
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Options that are stored with an experiment and cannot change when it is continued.
const DEFINED: [&str; 9] = [
    "set",
    "seed",
    "effect",
    "checkpoint",
    "vacuum",
    "idle_device",
    "cool_down",
    "reset",
    "own_database",
];
const DEFINED_OF_SWEEP: [&str; 6] =
    ["axis", "run_order", "baseline", "find_saturation", "sessions_max", "repeat"];

/// Options that have no meaning for a list.
const NOT_LISTED: [&str; 2] = ["time_limit", "dry_run"];

/// Continuation of an experiment
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    /// Continue an experiment: start or end of its id, its name, or `last`
    #[arg(long, value_name = "EXPERIMENT", num_args = 0..=1, default_missing_value = "last")]
    pub(crate) resume: Option<String>,
    /// With --resume: measure failed cells again
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// With --resume: continue although the machine, the server or its settings changed
    #[arg(long, requires = "resume")]
    pub(crate) allow_changed: bool,
}

/// Options that `riops run` has as well
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment", mut_arg("output", |arg| arg.value_parser(Forms::new(STUDY))))]
pub(crate) struct OwnOptions {
    /// Replace an option of the file (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Runs of each cell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), or_default = REPEATS)]
    pub(crate) repeat: Option<u32>,
    /// Random seed of the order and of the keys [default: from the operating system]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) fleet: FleetOptions,
}

const EXAMPLES: &str = "\
Examples:
  riops sweep rows --axis sessions=1,2,4,8 --axis batch=10,100
  riops sweep rows --batch 1 --update-percent 100 --axis set.commit_delay=0,100,1000
  riops sweep rows --axis server-set=shared_buffers=128MB,shared_buffers=2GB
  riops sweep oltp read-only --find-saturation sessions --threshold 'p99<20ms'
  riops sweep ybio-batch-size --dry-run
  riops sweep --resume";

/// What an experiment measures, and under which conditions
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment")]
pub(crate) struct ExperimentOptions {
    /// Vary an option of riops run, or with set.NAME a setting of the server, over these values (repeatable)
    #[arg(long, value_name = "NAME=VALUE,…", value_parser = parse_pair)]
    pub(crate) axis: Vec<(String, String)>,
    /// Order of the runs; interleaved: rounds with one run of each cell in random order
    #[arg(long, value_name = "ORDER", value_parser = choice::<Order>(&["interleaved", "sequential"]), or_named = Order::default())]
    pub(crate) run_order: Option<Order>,
    /// Cell that the others are compared with, as 'sessions=1 batch=10' [default: the first]
    #[arg(long, value_name = "CELL")]
    pub(crate) baseline: Option<String>,
    /// Smallest relevant difference [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    pub(crate) effect: Option<Share>,
    /// Find the number of sessions with which the throughput saturates, or the highest rate that is sustained
    #[arg(long, value_name = "WHAT", value_parser = choice::<Search>(&["sessions", "rate"]))]
    pub(crate) find_saturation: Option<Search>,
    /// With --find-saturation: maximum number of sessions [default: 1024]
    #[arg(long, value_name = "N", requires = "find_saturation", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) sessions_max: Option<u32>,
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Print the cells and the estimated time, without running anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What happens between the runs
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Between runs")]
pub(crate) struct ConditionOptions {
    /// CHECKPOINT before each run
    #[arg(long)]
    pub(crate) checkpoint: bool,
    /// VACUUM (ANALYZE) of the tables before each run
    #[arg(long)]
    pub(crate) vacuum: bool,
    /// Wait before each run until the devices of the server are idle, at most this long
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_device: Option<Span>,
    /// Pause between two runs
    #[arg(long, value_name = "TIME")]
    pub(crate) cool_down: Option<Span>,
    /// Dataset of each run; restore: a copy of the database; prepare: recreated
    #[arg(long, value_name = "HOW", value_parser = choice::<Reset>(&["none", "restore", "prepare"]), or_named = Reset::default())]
    pub(crate) reset: Option<Reset>,
    /// On the embedded server: use a separate database with its own dataset
    #[arg(long)]
    pub(crate) own_database: bool,
    /// Stop before the run that would exceed this time; --resume continues
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Span>,
}

/// The two variants of an A/B test, and its conditions
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment")]
pub(crate) struct TestOptions {
    /// Option of riops run or setting of the server, and its values in A and in B
    #[arg(long, value_name = "NAME=A,B", value_parser = parse_pair)]
    pub(crate) vary: Option<(String, String)>,
    /// Maximum number of rounds, each with two runs of both variants
    #[arg(long, alias = "blocks-max", value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(4..=100))]
    pub(crate) rounds_max: u32,
    /// Smallest relevant difference [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    pub(crate) effect: Option<Share>,
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Print the cells and the estimated time, without running anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Compare two variants, and stop as soon as the result is certain
#[derive(Debug, Args)]
#[command(
    after_help = AB_EXAMPLES,
    mut_arg("resume", |arg| arg.conflicts_with_all(DEFINED).conflicts_with_all(["rounds_max", "vary"])),
    mut_arg("output", |arg| arg.value_parser(Forms::new(STUDY)))
)]
pub(crate) struct Ab {
    #[command(subcommand)]
    pub(crate) workload: Option<WorkloadOf<TestOptions>>,
    /// File with the workload and the options of variant A, as for --config; without B an experiment with two cells
    pub(crate) a: Option<PathBuf>,
    /// The same for variant B, which is judged relative to A
    pub(crate) b: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) test: TestOptions,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) changes: ChangeOptions,
    #[command(flatten)]
    pub(crate) resume: ResumeOptions,
    /// Replace an option of both files (repeatable)
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Experiment", value_parser = parse_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Random seed of the order and of the keys [default: from the operating system]
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) fleet: FleetOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiments {
    /// List the stored experiments, newest first
    List {
        #[command(flatten)]
        outputs: OutputOptions,
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Show the results of an experiment, also of one in progress
    #[command(mut_arg("output", |arg| arg.value_parser(Forms::new(STUDY))))]
    Show {
        /// Start or end of its id, its name, or `last`
        #[arg(default_value = "last")]
        experiment: String,
        #[command(flatten)]
        outputs: OutputOptions,
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Add a note to an experiment
    Note(NoteOptions),
    /// Remove an experiment, and the copy of a database that it may have left
    Rm(Box<RemoveExperiment>),
}

/// Which experiment
#[derive(Debug, Args)]
pub(crate) struct RemoveExperiment {
    /// Start or end of its id, its name, or `last`
    pub(crate) experiment: String,
    /// Remove its runs as well
    #[arg(long)]
    pub(crate) runs: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

const AB_EXAMPLES: &str = "\
Examples:
  riops ab rows --update-percent 100 --vary synchronous_commit=on,off
  riops ab oltp read-only --vary sessions=8,16
  printf 'workload = \"rows\"\\nserver-set = \"shared_buffers=128MB\"\\n' > a.toml
  printf 'workload = \"rows\"\\nserver-set = \"shared_buffers=2GB\"\\n' > b.toml
  riops ab a.toml b.toml --set duration=5s";
