//! The options of a workload, for a run and for the cells of an experiment.

use anyhow::Result;
use clap::Args;
use riops::plan::{CleanStart, Plan, Vacuum};

use super::output::{Forms, STUDY};
use super::parsers::{OrDefault, choice};
use super::run::{CommandOptions, RunWorkload, seconds};

/// Runs of each cell without `--repeat`: the smallest number with which a difference can be shown at 5%.
pub(crate) const REPEATS: u32 = 6;

/// Options of `riops run` that show or store a single run, and have no meaning for an experiment.
pub(crate) const SINGLE_RUN_ONLY: [&str; 15] = [
    "dump-plan",
    "no-store",
    "note",
    "settle",
    "graph",
    "graph-scale",
    "session-detail",
    "print-histogram",
    "histogram-buckets",
    "metrics-listen",
    "metrics-token",
    "metrics-token-file",
    "metrics-push",
    "metrics-push-token-file",
    "interval-json",
];

/// Adapts the options of a workload of `riops run` to `riops sweep` or `riops ab`.
pub(super) fn adapted(experiment: &str, command: clap::Command) -> clap::Command {
    let is_sweep = experiment == "sweep";
    let command = command
        .mut_arg("repeat", |arg| {
            if is_sweep { arg.help("Runs of each cell").or_default(REPEATS) } else { arg }
        })
        .mut_arg("output", |arg| arg.value_parser(Forms::new(STUDY)));
    command.mut_args(|arg| {
        let is_single =
            |long: &str| SINGLE_RUN_ONLY.contains(&long) || !is_sweep && long == "repeat";
        let is_hidden = arg.is_hide_set() || arg.get_long().is_some_and(is_single);
        arg.hide(is_hidden)
    })
}

// A workload and its options, and the state before its run. An experiment has other options for that. A comment of documentation
// would replace the description of each workload.
#[derive(Debug, Args)]
pub(crate) struct RunOf<T: Args> {
    /// CHECKPOINT before the warm-up
    #[arg(long, help_heading = "Before the run")]
    checkpoint: bool,
    /// VACUUM of the tables before the warm-up
    #[arg(long, value_name = "HOW", help_heading = "Before the run", num_args = 0..=1, require_equals = true, default_missing_value = "analyze", value_parser = choice::<Vacuum>(&["plain", "analyze", "freeze"]))]
    vacuum: Option<Vacuum>,
    #[command(flatten)]
    run: T,
}

impl<T: Args + RunWorkload> RunWorkload for RunOf<T> {
    fn plan(&self) -> Result<Plan> {
        let Self { checkpoint, vacuum, run } = self;
        let is_clean = *checkpoint || vacuum.is_some();
        let settle = run.options().keep.repeat.settle.filter(|_| is_clean);
        let clean_start =
            CleanStart { vacuum: *vacuum, checkpoint: *checkpoint, settle_s: settle.map(seconds) };
        Ok(Plan { clean_start, ..run.plan()? })
    }

    fn options(&self) -> CommandOptions<'_> {
        self.run.options()
    }

    fn notice(&self) -> Option<String> {
        self.run.notice()
    }
}

/// A workload and its options, and the experiment.
#[derive(Debug, Args)]
pub(crate) struct ExperimentOf<E: Args, T: Args> {
    #[command(flatten)]
    pub(crate) experiment: E,
    #[command(flatten)]
    pub(crate) run: T,
}
