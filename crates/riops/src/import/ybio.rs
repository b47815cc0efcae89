//! The table `benchruns` of ybio: a run per row.
//!
//! Read from CSV, from the text of COPY, or from the output of psql, with or without a header. ybio stores `timestamp` without a time zone, which is read as UTC.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::error::ImportError;
use super::format::{YBIO_COLUMNS_MIN, YBIO_SEPARATORS, ybio_separator};
use super::found::Found;
use super::number::number;
use crate::plan::{ImportedRun, Protocol};
use crate::record::{LoopRecord, ReportedLatency, ReportedPercentile};

/// Name of the tool in records.
const TOOL: &str = "ybio";

/// The columns of the table, in the order of `create table`. The last six exist only in the ybio of riops.
pub(super) const COLUMNS: [&str; 21] = [
    "job_id",
    "start_time",
    "end_time",
    "num_batches",
    "num_rows",
    "pct_update",
    "max_scratch",
    "prepared",
    "index_only",
    "tab_rows",
    "batch_size",
    "table_name",
    "table_rows",
    "table_scratch",
    "comments",
    "updated_rows",
    "retries",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "access_path",
];

/// Columns that are stored as they are.
const FACTS: [&str; 11] = [
    "job_id",
    "pct_update",
    "max_scratch",
    "index_only",
    "tab_rows",
    "batch_size",
    "table_name",
    "table_rows",
    "table_scratch",
    "comments",
    "updated_rows",
];

/// A row: the values that are not null, by column.
pub(super) type Row = BTreeMap<String, String>;

/// Returns the runs in a text.
pub(super) fn read(text: &str, name: &str) -> Result<Vec<Found>, ImportError> {
    let mut runs = Vec::new();
    for (line, row) in rows(text, name)? {
        runs.extend(run(&row, name).map_err(|reason| ImportError::line(name, line, reason))?);
    }
    Ok(runs)
}

/// Returns the rows with the numbers of their lines.
fn rows(text: &str, name: &str) -> Result<Vec<(u64, Row)>, ImportError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let of_row = ybio_separator(first);
    let has_header = of_row.is_none();
    match of_row.or_else(|| YBIO_SEPARATORS.into_iter().find(|each| first.contains(*each))) {
        Some('|') => aligned(text, name, has_header),
        Some('\t') => copied(text, name, has_header),
        _ => comma_separated(text, name, has_header),
    }
}

fn comma_separated(
    text: &str,
    name: &str,
    has_header: bool,
) -> Result<Vec<(u64, Row)>, ImportError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(has_header).from_reader(text.as_bytes());
    let damaged = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        ImportError::line(name, line, error.to_string())
    };
    let header = if has_header {
        reader.headers().map_err(|error| damaged(&error))?.clone()
    } else {
        COLUMNS.to_vec().into()
    };
    let header: Vec<&str> = header.iter().collect();
    require_columns(&header, name)?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| damaged(&error))?;
        let line = record.position().map_or(1, csv::Position::line);
        let values = header.iter().zip(&record).filter(|(_, value)| !value.is_empty());
        rows.push((
            line,
            values.map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect(),
        ));
    }
    Ok(rows)
}

/// The text format of COPY: tabs, `\N` for null, backslash escapes.
fn copied(text: &str, name: &str, has_header: bool) -> Result<Vec<(u64, Row)>, ImportError> {
    let mut lines =
        (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && *line != "\\.").peekable();
    let header: Vec<&str> = match lines.next_if(|_| has_header) {
        Some((_, line)) => line.split('\t').collect(),
        None => COLUMNS.to_vec(),
    };
    require_columns(&header, name)?;
    let row = |(line, text): (u64, &str)| {
        let values: Vec<&str> = text.split('\t').collect();
        if values.len() > header.len() || values.len() < header.len().min(YBIO_COLUMNS_MIN) {
            let reason = format!("expected {} columns, found {}", header.len(), values.len());
            return Err(ImportError::line(name, line, reason));
        }
        let known = header.iter().zip(values).filter(|(_, value)| *value != "\\N");
        Ok((line, known.map(|(name, value)| ((*name).to_owned(), unescaped(value))).collect()))
    };
    lines.map(row).collect()
}

fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => text.push(match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            }),
            (other, false) => text.push(other),
        }
    }
    text
}

/// The output of psql: `a | b`, a line of dashes, rows, `(2 rows)`.
fn aligned(text: &str, name: &str, has_header: bool) -> Result<Vec<(u64, Row)>, ImportError> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut header: Vec<String> =
        if has_header { Vec::new() } else { COLUMNS.map(str::to_owned).to_vec() };
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let is_frame = text.trim().is_empty() || text.starts_with("--") || text.starts_with('(');
        if is_frame {
            continue;
        }
        if header.is_empty() {
            header = cells(text);
            require_columns(&header.iter().map(String::as_str).collect::<Vec<_>>(), name)?;
            continue;
        }
        let values = cells(text);
        let least = if has_header { header.len() } else { YBIO_COLUMNS_MIN };
        if !(least..=header.len()).contains(&values.len()) {
            let reason = format!("expected {} columns, found {}", header.len(), values.len());
            return Err(ImportError::line(name, line, reason));
        }
        let known = header.iter().cloned().zip(values).filter(|(_, value)| !value.is_empty());
        rows.push((line, known.collect()));
    }
    Ok(rows)
}

fn require_columns(header: &[&str], name: &str) -> Result<(), ImportError> {
    let needed = ["job_id", "start_time", "end_time", "num_batches", "num_rows"];
    match needed.into_iter().find(|column| !header.contains(column)) {
        None => Ok(()),
        Some(column) => Err(ImportError::contents(
            name,
            format!("the table has no column \"{column}\": expected the table benchruns of ybio"),
        )),
    }
}

/// Returns the run of a row; `None` for a run that has not ended.
pub(super) fn run(row: &Row, name: &str) -> Result<Option<Found>, String> {
    let text = |column: &str| row.get(column).map(String::as_str);
    let count = |column: &str| -> Result<Option<u64>, String> {
        let parse = |value: &str| {
            number(value).ok_or_else(|| format!("expected a number in {column}, found \"{value}\""))
        };
        text(column).map(parse).transpose()
    };
    let latency = |column: &str| -> Result<Option<f64>, String> {
        let parse = |value: &str| {
            number(value)
                .map(|ms: f64| ms * 1e3)
                .ok_or_else(|| format!("expected a number in {column}, found \"{value}\""))
        };
        text(column).map(parse).transpose()
    };
    let job = text("job_id").ok_or("the row has no job_id")?;
    let start = timestamp("start_time", text("start_time").ok_or("the row has no start_time")?)?;
    let ended = text("end_time").map(|value| timestamp("end_time", value)).transpose()?;
    let counts = (ended, count("num_batches")?, count("num_rows")?);
    let mut found = Found {
        run: ImportedRun {
            tool: TOOL.to_owned(),
            test: text("table_name").map(|table| format!("runit on {table}")),
            counts_rows: true,
            counts_statements: true,
            ..ImportedRun::default()
        },
        started_at: Some(start),
        ..Found::default()
    };
    let (Some(ended), Some(batches), Some(rows)) = counts else {
        return Ok(None);
    };
    let seconds = ended.duration_since(start).as_secs_f64();
    if seconds <= 0.0 {
        return Err(format!("job {job} of {name} ends at its start or before it"));
    }
    for column in FACTS {
        if let Some(value) = text(column) {
            found.fact(column, &value);
        }
    }
    if let Some(path) = text("access_path") {
        found.fact("access path as ybio saw it", &path);
    }
    found.protocol = (text("prepared") == Some("f")).then_some(Protocol::Extended);
    let stage = &mut found.stage;
    stage.seconds = seconds;
    stage.sessions = 1;
    // A batch is a transaction with one statement.
    (stage.transactions, stage.statements, stage.rows) = (batches, batches, rows);
    stage.session_loop = LoopRecord {
        batch: count("batch_size")?,
        reported_latency: reported(latency("p50_ms")?, latency("p99_ms")?, latency("max_ms")?),
        retries: count("retries")?.unwrap_or_default(),
        ..LoopRecord::default()
    };
    Ok(Some(found))
}

fn reported(p50: Option<f64>, p99: Option<f64>, max: Option<f64>) -> Option<ReportedLatency> {
    let percentile =
        |percent: f64, us: Option<f64>| us.map(|us| ReportedPercentile { percent, us });
    let percentiles: Vec<_> =
        [percentile(50.0, p50), percentile(99.0, p99)].into_iter().flatten().collect();
    let is_known = max.is_some() || !percentiles.is_empty();
    is_known.then(|| ReportedLatency { percentiles, max_us: max, ..ReportedLatency::default() })
}

/// A time with or without a time zone, as PostgreSQL prints it in `DateStyle` ISO.
fn timestamp(column: &str, text: &str) -> Result<Timestamp, String> {
    let failed = || {
        format!(
            "expected a time in {column}, found \"{text}\": export the table with set datestyle = iso"
        )
    };
    let with_zone = with_minutes(text).and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(at) = with_zone {
        return Ok(at);
    }
    let civil: DateTime = text.parse().map_err(|_| failed())?;
    civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| failed())
}

/// Returns the text with the minutes of its time zone, which PostgreSQL omits if they are zero: `+00:00`.
fn with_minutes(text: &str) -> Option<String> {
    let (_, time) = text.split_once([' ', 'T'])?;
    let (_, zone) = time.split_once(['+', '-'])?;
    Some(if zone.len() == 2 { format!("{text}:00") } else { text.to_owned() })
}
