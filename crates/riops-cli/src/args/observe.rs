//! Options of `observe`.

use anyhow::Result;
use clap::Args;
use riops::plan::{NamedQuery, ObserveRun, Plan, Stop, Threshold};
use riops::units::Span;
use riops::units::secret::CommandLine;

use super::parsers::parse_threshold;
use super::run::{CommandOptions, NO_GRAPH, RecordOptions, ResultOptions, RunWorkload, seconds};
use super::shared::TargetOptions;
use crate::failure::refuse;

/// Measure a server around any command, or for a time, without load
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunObserve {
    /// Command to run and observe, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    arguments: Vec<String>,
    /// Command as a line for sh -c, for a file or an axis
    #[arg(long, value_name = "LINE", help_heading = "Observe", conflicts_with = "arguments")]
    command: Option<String>,
    /// Observe for this time instead of a command
    #[arg(long = "for", value_name = "TIME", help_heading = "Observe", conflicts_with_all = ["command", "arguments"])]
    time: Option<Span>,
    /// Number that a query returns before and after, for a rate: 'tx=select …'; the first one is the main
    /// figure (repeatable)
    #[arg(long, value_name = "NAME=QUERY", help_heading = "Observe")]
    count: Vec<NamedQuery>,
    /// Show the waits of all sessions of the database, not only of the command's sessions
    #[arg(long, help_heading = "Observe")]
    database_wide: bool,
    /// Exit with 99 unless the result meets this condition: 'tps>5000', 'probe{name=lag}<10' (repeatable)
    #[arg(long, value_name = "CONDITION", help_heading = "Run", value_parser = parse_threshold)]
    threshold: Vec<Threshold>,
    #[command(flatten)]
    record: RecordOptions,
    #[command(flatten)]
    keep: ResultOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunObserve {
    fn plan(&self) -> Result<Plan> {
        let command = match &self.command {
            Some(line) => CommandLine::of_shell(line.clone()),
            None => self.arguments.clone().into(),
        };
        let has_command = !command.is_empty();
        let work =
            ObserveRun { command, counts: self.count.clone(), database_wide: self.database_wide };
        let stop = match (self.time, has_command) {
            (Some(time), _) => Stop::DurationS(seconds(time)),
            (None, true) => Stop::Transactions(1),
            (None, false) => {
                return refuse(
                    "nothing to observe: specify a command after --, or a time with --for",
                );
            }
        };
        Ok(Plan {
            stop,
            warmup_s: 0.0,
            thresholds: self.threshold.clone(),
            ..self.record.named(work.into())
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        CommandOptions::new(&self.keep, &NO_GRAPH, &self.target)
    }
}
