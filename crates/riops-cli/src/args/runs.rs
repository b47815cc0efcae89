//! The options of `riops runs`, and of other commands for stored runs.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use riops::import::{Column7, Format};
use riops::report::export::CsvRows;
use riops::serve::ListenAddress;
use riops::summary::Sort;

use super::output::{AnswerOptions, EXPORT, Forms, LIST, OutputOptions, REPORT, of_runs};
use super::parsers::{TYPED_ONLY, parse_instant, parse_pair, parse_period_end};
use super::shared::StoreOptions;
use crate::failure::UsageError;

/// Show the last run again, or the experiment that it belongs to
#[derive(Debug, Args)]
pub(crate) struct LastOptions {
    /// Print everything that is known, not only the answer
    #[arg(long)]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Which runs
// Not set by the environment: RIOPS_LABEL is the label of a run, and would hide all others.
#[derive(Debug, Args)]
pub(crate) struct FilterOptions {
    /// Only runs of this workload: its name (oltp), or its title in the list ("oltp, point-select")
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
#[command(mut_arg("output", |arg| arg.value_parser(Forms::new(LIST))))]
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
    #[command(flatten)]
    pub(crate) outputs: OutputOptions,
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

/// Subject, text and author of a note
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
#[command(mut_arg("output", |arg| arg.value_parser(of_runs())))]
pub(crate) struct MergeOptions {
    /// Start or end of the id of each run, a label, or KEY=VALUE of a tag
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Label of the merged run [default: the label of the first run]
    #[arg(long, value_name = "TEXT", help_heading = TYPED_ONLY[1])]
    pub(crate) label: Option<String>,
    /// Print the merged run without storing it
    #[arg(long, help_heading = TYPED_ONLY[1])]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
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

/// What to export
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.value_parser(Forms::new(EXPORT)).default_value("json")))]
pub(crate) struct Export {
    /// Start or end of a run id, a label, a tag (KEY=VALUE or KEY), or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Export all runs, oldest first
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) outputs: OutputOptions,
    /// In CSV: a row per interval instead of a row per stage
    #[arg(long, conflicts_with = "latencies")]
    series: bool,
    /// In CSV: a row per bucket of the latency histograms
    #[arg(long)]
    latencies: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

impl Export {
    /// The rows of the CSV.
    pub(crate) fn rows(&self) -> Result<CsvRows, UsageError> {
        let rows = match (self.series, self.latencies) {
            (true, _) => CsvRows::Series,
            (_, true) => CsvRows::Latencies,
            _ => return Ok(CsvRows::Stages),
        };
        if self.outputs.output.iter().all(|output| output.form != "csv") {
            return Err(UsageError("--series and --latencies require --output csv".to_owned()));
        }
        Ok(rows)
    }
}

/// What to import
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Files with results, or stores (SQLite); - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the files: auto, json (records of riops), ybio (table benchruns), pgbench-log (--log), pgbench-aggregate (--aggregate-interval), pgbench (its report) or sysbench (its report)
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = parse_format)]
    pub(crate) from: Source,
    /// With --from ybio and no file: read the table from this database
    #[arg(short, long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Label of the runs
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Tag of the runs (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) tag: Vec<(String, String)>,
    /// Start of the run, if its results do not contain it [default: from the time of the file]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) started_at: Option<Timestamp>,
    /// With pgbench-log: meaning of column 7, lag (--rate) or retries (--max-tries) [default: from its values]
    #[arg(long, value_name = "MEANING", value_parser = parse_column_7)]
    pub(crate) pgbench_column_7: Option<Column7>,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// The format of the files; `None`: recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source(pub(crate) Option<Format>);

fn parse_format(text: &str) -> Result<Source, String> {
    if text == "auto" {
        return Ok(Source(None));
    }
    text.parse().map(|format| Source(Some(format)))
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "not a time with a zone (example: 2026-11-23T06:14:48Z)".to_owned())
}

fn parse_column_7(text: &str) -> Result<Column7, String> {
    match text {
        "lag" => Ok(Column7::Lag),
        "retries" => Ok(Column7::Retries),
        _ => Err("expected lag or retries".to_owned()),
    }
}

const REPORT_HELP: &str = "Output format; with =FILE into a file, which is replaced (repeatable); png: into a folder [default: html=riops-ID.html]";

/// Which runs, and the file to write
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.value_parser(Forms::new(REPORT)).default_value(None).help(REPORT_HELP)))]
pub(crate) struct Report {
    /// Start or end of the id of each run, a label, a tag (`NAME` or `NAME=VALUE`), or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) outputs: OutputOptions,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Which runs, and the folder
#[derive(Debug, Args)]
pub(crate) struct GalleryOptions {
    /// Folder of the site: a new or an empty one, or a gallery, which is replaced
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterOptions,
    /// Add a comparison of two labels, tags or runs (repeatable)
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(crate) compare: Vec<String>,
    /// Title of the index
    #[arg(long, value_name = "TEXT", default_value = "riops")]
    pub(crate) title: String,
    /// Publish the names and addresses of hosts, which are host-1, host-2, … otherwise
    #[arg(long)]
    pub(crate) with_hosts: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// Address, rights and store
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: ListenAddress,
    /// Token that clients must send [default: a random one with --allow-edit or if other machines can connect, otherwise
    /// none]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Read the token from a file, which takes precedence over --token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Allow changes of labels and tags, and the removal of runs; requires the token
    #[arg(long)]
    pub(crate) allow_edit: bool,
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
