//! Options of `riops runs export` and `riops runs import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use riops::import::{Column7, Format};
use riops::report::export::{CsvRows, ExportFormat};

use super::parsers::parse_pair;
use super::target::StoreOptions;
use crate::failure::UsageError;

// The format of an export. No doc comments: clap would print them as long help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportName {
    Json,
    Csv,
    Openmetrics,
}

/// What to export
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Start or end of a run id, a label, a tag (KEY=VALUE or KEY), or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Export all runs, oldest first
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    /// Output format; csv: a row per stage; openmetrics: the time series, for promtool
    #[arg(long, value_enum, default_value = "json")]
    format: ExportName,
    /// With --format csv: a row per interval
    #[arg(long, conflicts_with = "latencies")]
    series: bool,
    /// With --format csv: a row per bucket of the latency histograms
    #[arg(long)]
    latencies: bool,
    /// Output file; replaced if it exists; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

impl Export {
    /// The format with its kind of rows.
    pub(crate) fn format(&self) -> Result<ExportFormat, UsageError> {
        let rows = match (self.series, self.latencies) {
            (true, _) => CsvRows::Series,
            (_, true) => CsvRows::Latencies,
            _ => CsvRows::Stages,
        };
        match self.format {
            ExportName::Csv => Ok(ExportFormat::Csv(rows)),
            _ if rows != CsvRows::Stages => {
                Err(UsageError("--series and --latencies require --format csv".to_owned()))
            }
            ExportName::Json => Ok(ExportFormat::Json),
            ExportName::Openmetrics => Ok(ExportFormat::OpenMetrics),
        }
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
