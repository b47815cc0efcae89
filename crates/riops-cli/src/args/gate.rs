//! Options of `riops gate` and `riops bisect`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use riops::study::limits::MACHINES;
use riops::units::Span;

use super::fleet::AGENTS_WITHIN;
use super::output::{AnswerOptions, FINDINGS, Forms, GATE};
use super::parsers::OrDefault;
use super::shared::{StoreOptions, TargetOptions, TrustOption};

/// Fail if a variant is slower than another one: two servers, databases, settings or builds
#[derive(Debug, Args)]
#[command(after_help = GATE_EXAMPLES, mut_arg("output", |arg| arg.value_parser(Forms::new(GATE))))]
pub(crate) struct Gate {
    /// File with the workloads and the variants
    pub(crate) file: PathBuf,
    /// Commit of the base [default: the merge base of HEAD and the default branch of origin]
    #[arg(long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Commit that is judged
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub(crate) head: String,
    /// How the exit code says that the result is inconclusive; bisect: 125, as `git bisect run` expects
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) exit_code: ExitCodes,
    /// Print annotations of GitHub to standard error [default: on in GitHub Actions]
    #[arg(long)]
    pub(crate) annotations: bool,
    #[command(flatten)]
    pub(crate) both: JudgedOptions,
    #[command(flatten)]
    pub(crate) machines: MachinesOptions,
}

/// Find the commit of a git repository that made a workload slower
#[derive(Debug, Args)]
#[command(after_help = BISECT_EXAMPLES)]
pub(crate) struct Bisect {
    /// File of a gate, with the workloads and a build
    pub(crate) file: PathBuf,
    /// Commit that is not slow
    #[arg(long, value_name = "REV")]
    pub(crate) good: String,
    /// Commit that is slow
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub(crate) bad: String,
    #[command(flatten)]
    pub(crate) both: JudgedOptions,
}

const BISECT_EXAMPLES: &str = "\
Example:
  riops bisect gate.toml --good v1.2 --bad main --trust
The same command continues after an interruption: all measurements are stored.";

/// Result, builds, store and server
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.value_parser(Forms::new(FINDINGS))))]
pub(crate) struct JudgedOptions {
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
    #[command(flatten)]
    pub(crate) build: BuildOptions,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// What the exit code of a gate says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExitCodes {
    /// 0, 99 or 3 for an inconclusive result, as the file says
    #[default]
    Ci,
    /// 125 for an inconclusive result or a failed build, 128 and more to end the bisection
    Bisect,
}

/// Several machines
#[derive(Debug, Args)]
#[command(next_help_heading = "Machines")]
pub(crate) struct MachinesOptions {
    /// Judge the results of several machines, which meet under this name in the PostgreSQL store; another gate needs another name
    #[arg(long, value_name = "NAME", requires = "machines")]
    pub(crate) fleet: Option<String>,
    /// Number of machines
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(machines()))]
    pub(crate) machines: Option<u32>,
    /// Number of this machine, starting at 0 [default: from Kubernetes, Slurm, MPI or Flux]
    #[arg(long, value_name = "K", requires = "fleet")]
    pub(crate) machine: Option<u32>,
    /// Maximum wait for a machine that does not measure
    #[arg(long, value_name = "TIME", requires = "fleet", or_default = AGENTS_WITHIN)]
    pub(crate) machines_within: Option<Span>,
}

/// The limits of the number of machines.
fn machines() -> RangeInclusive<i64> {
    let (first, last) = MACHINES.into_inner();
    first.into()..=last.into()
}

/// How a commit becomes a variant
#[derive(Debug, Args)]
#[command(next_help_heading = "Build")]
pub(crate) struct BuildOptions {
    /// Command that builds the files of a commit and installs them into $PREFIX [default: from the file]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: PathBuf,
    /// Directory where builds are stored [default: builds in --cache-dir]
    #[arg(long, value_name = "DIR")]
    pub(crate) builds: Option<PathBuf>,
    /// Stop before the run that would exceed this time [default: from the file]
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Span>,
}

impl BuildOptions {
    /// Returns the time limit that was given, in seconds.
    pub(crate) fn time_limit_s(&self) -> Option<f64> {
        self.time_limit.map(|limit| limit.0.as_secs_f64())
    }
}

const GATE_EXAMPLES: &str = "\
Example:
  riops gate gate.toml --base origin/main --trust -o markdown=summary.md -o junit=gate.xml

  # gate.toml
  effect = \"3%\"
  build = \"./configure --prefix=$PREFIX && make -j4 install\"
  [options]
  server-dir = \"{prefix}\"
  duration = \"10s\"
  [[workload]]
  run = \"oltp read-only\"";
