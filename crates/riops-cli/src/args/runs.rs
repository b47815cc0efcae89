//! The options of `riops runs list`, `tag` and `rm`.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use riops::store::Sort;

use super::parsers::{TYPED_ONLY, parse_instant, parse_pair, parse_period_end};
use super::run::RunOutputOptions;
use super::target::StoreOptions;

/// Which runs
// Not set by the environment: RIOPS_LABEL is the label of a run, and would hide all others.
#[derive(Debug, Args)]
pub(crate) struct FilterOptions {
    /// Only runs of this workload: its name, or as listed
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Only runs with this label
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Only runs with this tag, and with this value if given (repeatable: runs with all of them)
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "KEY[=VALUE]", value_parser = parse_tag)]
    pub(crate) tag: Vec<(String, Option<String>)>,
    /// Only runs whose server has this fact, and with this value if given (repeatable)
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "NAME[=VALUE]", value_parser = parse_tag)]
    pub(crate) fact: Vec<(String, Option<String>)>,
    /// Only runs that started at this time or later: a date, a date with time (UTC unless it has an offset), or a time before now (2h, 7d)
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "TIME", value_parser = parse_instant)]
    pub(crate) since: Option<Timestamp>,
    /// Only runs that started before this time; a date includes its day
    #[arg(long, help_heading = TYPED_ONLY[0], value_name = "TIME", value_parser = parse_period_end)]
    pub(crate) until: Option<Timestamp>,
    /// Only valid runs
    #[arg(long, help_heading = TYPED_ONLY[0], conflicts_with = "invalid")]
    pub(crate) valid: bool,
    /// Only invalid runs
    #[arg(long, help_heading = TYPED_ONLY[0])]
    pub(crate) invalid: bool,
}

/// Which runs, and how they are listed
#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    #[command(flatten)]
    pub(crate) filter: FilterOptions,
    /// Print a line for each stage, with its own figures
    #[arg(long)]
    pub(crate) stages: bool,
    #[arg(long, help = "Column of the JSON output to sort by, :asc for small values first [default: started_at:desc]", value_name = "COLUMN[:asc|desc]", value_parser = Sort::parse)]
    pub(crate) sort: Option<Sort>,
    /// Maximum number of runs
    #[arg(long, default_value = "20", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: ListOutput,
}

// An output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    // No doc comments here: clap would print them as long help.
    Text,
    Json,
    Csv,
}

/// Which run, and its new tags
#[derive(Debug, Args)]
pub(crate) struct TagOptions {
    /// Start or end of the run id, or `last`
    pub(crate) run: String,
    /// Tags to set
    #[arg(value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Remove a tag (repeatable)
    #[arg(long, value_name = "KEY", help_heading = TYPED_ONLY[1])]
    pub(crate) remove: Vec<String>,
    /// Set the label; an empty text removes it
    #[arg(long, value_name = "TEXT", help_heading = TYPED_ONLY[1])]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// What it is about, and the note
#[derive(Debug, Args)]
pub(crate) struct NoteOptions {
    /// Start or end of its id, or `last`; an experiment also by its name
    #[arg(value_name = "ID")]
    pub(crate) subject: String,
    /// Plain text; `-`: standard input
    pub(crate) text: String,
    #[arg(long, value_name = "NAME", help_heading = TYPED_ONLY[1], help = "Who writes it [default: the user]")]
    pub(crate) author: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Which run, and why
#[derive(Debug, Args)]
pub(crate) struct AckOptions {
    /// The first run of the new level: start or end of its id, or `last`
    pub(crate) run: String,
    /// Why the level changed
    pub(crate) reason: String,
    #[arg(long, value_name = "NAME", help_heading = TYPED_ONLY[1], help = "Who writes it [default: the user]")]
    pub(crate) author: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Which runs, and the label of the merged one
#[derive(Debug, Args)]
pub(crate) struct MergeOptions {
    /// Start or end of the id of each run, a label, or KEY=VALUE of a tag
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Label of the merged run [default: that of the first one]
    #[arg(long, value_name = "TEXT", help_heading = TYPED_ONLY[1])]
    pub(crate) label: Option<String>,
    /// Print the merged run without storing it
    #[arg(long, help_heading = TYPED_ONLY[1])]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) output: RunOutputOptions,
}

/// Which runs
#[derive(Debug, Args)]
pub(crate) struct RemoveOptions {
    /// Start or end of the id of each run, or `last`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Do not ask for confirmation
    #[arg(short, long, help_heading = TYPED_ONLY[1])]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

fn parse_tag(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    if key.trim().is_empty() {
        return Err("expected KEY or KEY=VALUE".to_owned());
    }
    Ok((key.trim().to_owned(), value.map(|value| value.trim().to_owned())))
}
