//! The table `benchruns` of ybio: a run per row.
//!
//! Read from its database, from CSV, from the text of COPY, or from the output of psql, with or without a header. ybio stores
//! `timestamp` without a time zone, which is read as UTC.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::error::ImportError;
use super::format::{Format, Settings, YBIO_COLUMNS_MIN, YBIO_SEPARATORS, is_ybio, ybio_separator};
use super::numbers::{Limited, parse_number};
use super::results::{ImportSource, Imports, RunResults};
use crate::host::Interrupt;
use crate::plan::{ImportedRun, Protocol};
use crate::record::{LoopRecord, ReportedLatency, ReportedPercentile, TargetRecord};
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::units::sql::identifier;
use crate::workload::fill;

const BENCHRUNS: &str = include_str!("../../sql/import/benchruns.sql");

/// Name of the tool in records.
const TOOL: &str = "ybio";

/// The columns of the table, in the order of `create table`. The last six exist only in the ybio of riops.
const COLUMNS: [&str; 21] = [
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
type Row = BTreeMap<String, String>;

/// Returns the runs of the table `benchruns` in the search path of a database. `now` is the time of the import.
///
/// # Errors
/// [`ImportError::Database`] if the table cannot be read, [`ImportError::Line`] with the number of the row.
pub fn ybio_runs(
    conninfo: &ConnInfo,
    settings: &Settings,
    now: Timestamp,
    interrupt: &Interrupt,
) -> Result<Imports, ImportError> {
    let mut connection = Connection::open(conninfo, interrupt)?;
    let target = TargetRecord {
        flavor: connection.dialect().flavor(),
        server_version: connection.server_version().to_owned(),
        version_text: connection.query_value("select version()")?.unwrap_or_default(),
        address: connection.address().to_owned(),
        database: conninfo.database.clone(),
        ..TargetRecord::default()
    };
    let name = "benchruns";
    let mut runs = Vec::new();
    let sql = benchruns_sql(&mut connection)?;
    let rows = connection.query(&sql)?;
    for (line, row) in (1..).zip(rows) {
        let json = row.into_iter().next().flatten().unwrap_or_default();
        let run = row_of(&json).and_then(|row| self::run(&row, name));
        let run = run.map_err(|reason| ImportError::line(name, line, reason))?;
        runs.extend(run.map(|run| RunResults { target: target.clone(), ..run }));
    }
    let mut imports = Imports::default();
    let origin = ImportSource { files: &[], modified: None, now };
    let runs = runs.into_iter().map(|run| (Format::Ybio, run)).collect();
    imports.add(runs, &origin, settings)?;
    Ok(imports)
}

/// Returns the query for the table that the search path of the role finds.
fn benchruns_sql(connection: &mut Connection) -> Result<String, ConnectionError> {
    let sql = "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                where c.relname = 'benchruns' and c.relkind in ('r', 'p')";
    let schemas: Vec<String> = connection.query(sql)?.into_iter().flatten().flatten().collect();
    let path = connection.schemas_of_role()?;
    let schema = path.iter().find(|schema| schemas.contains(schema)).or(path.first());
    Ok(fill(BENCHRUNS, &[("schema", &identifier(schema.map_or("public", String::as_str)))]))
}

/// Returns the values of a row, which has one JSON object of texts.
fn row_of(json: &str) -> Result<Row, String> {
    let values: BTreeMap<String, Option<String>> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok(values.into_iter().filter_map(|(column, value)| Some((column, value?))).collect())
}

/// Returns the runs in a text. Lines before the table, such as the command that printed it, are ignored.
pub(super) fn read(text: &str, name: &str) -> Result<Vec<RunResults>, ImportError> {
    let mut runs = Vec::new();
    let before: usize =
        text.split_inclusive('\n').take_while(|line| !is_ybio(line)).map(str::len).sum();
    let (before, table) =
        text.split_at_checked(before).filter(|(_, table)| !table.is_empty()).unwrap_or(("", text));
    let skipped = before.lines().count() as u64;
    for (line, row) in rows(table, name)? {
        let line = line + skipped;
        runs.extend(run(&row, name).map_err(|reason| ImportError::line(name, line, reason))?);
    }
    Ok(runs)
}

/// A line of the table: its number, and its cells; `None` is null.
type Line = (u64, Vec<Option<String>>);

/// Returns the rows with the numbers of their lines.
fn rows(text: &str, name: &str) -> Result<Vec<(u64, Row)>, ImportError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let of_row = ybio_separator(first);
    let separator =
        of_row.or_else(|| YBIO_SEPARATORS.into_iter().find(|candidate| first.contains(*candidate)));
    let mut lines = match separator {
        Some('|') => aligned(text),
        Some('\t') => copied(text),
        _ => comma_separated(text, name)?,
    }
    .into_iter();
    let header: Vec<String> = match of_row {
        Some(_) => COLUMNS.map(str::to_owned).to_vec(),
        None => match lines.next() {
            Some((_, header)) => header.into_iter().map(Option::unwrap_or_default).collect(),
            // The frame of a table without rows.
            None if separator == Some('|') => return Ok(Vec::new()),
            None => Vec::new(),
        },
    };
    require_columns(&header, name)?;
    let least = match separator {
        // The reader of CSV has checked them.
        Some(',') | None => 0,
        Some('|') if of_row.is_none() => header.len(),
        Some(_) => header.len().min(YBIO_COLUMNS_MIN),
    };
    let row = |(line, values): Line| {
        let count = values.len();
        if least > 0 && !(least..=header.len()).contains(&count) {
            let reason = format!("expected {} columns, found {count}", header.len());
            return Err(ImportError::line(name, line, reason));
        }
        let known = header.iter().cloned().zip(values);
        Ok((line, known.filter_map(|(name, value)| Some((name, value?))).collect()))
    };
    lines.map(row).collect()
}

fn comma_separated(text: &str, name: &str) -> Result<Vec<Line>, ImportError> {
    let line = |position: Option<&csv::Position>| position.map_or(1, csv::Position::line);
    let row = |record: csv::Result<csv::StringRecord>| {
        let record = record
            .map_err(|error| ImportError::line(name, line(error.position()), error.to_string()))?;
        Ok((line(record.position()), record.iter().map(not_empty).collect()))
    };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(row).collect()
}

fn not_empty(cell: &str) -> Option<String> {
    (!cell.is_empty()).then(|| cell.to_owned())
}

/// The text format of COPY: tabs, `\N` for null, backslash escapes.
fn copied(text: &str) -> Vec<Line> {
    let cell = |cell: &str| (cell != "\\N").then(|| unescaped(cell));
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && *line != "\\.");
    lines.map(|(position, line)| (position, line.split('\t').map(cell).collect())).collect()
}

fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        text.push(match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// The output of psql: `a | b`, a line of dashes, rows, `(2 rows)`.
fn aligned(text: &str) -> Vec<Line> {
    let is_frame =
        |line: &str| line.trim().is_empty() || line.starts_with("--") || line.starts_with('(');
    let cells = |line: &str| line.split('|').map(|cell| not_empty(cell.trim())).collect();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !is_frame(line));
    lines.map(|(position, line)| (position, cells(line))).collect()
}

fn require_columns(header: &[String], name: &str) -> Result<(), ImportError> {
    let needed = ["job_id", "start_time", "end_time", "num_batches", "num_rows"];
    match needed.into_iter().find(|needed| !header.iter().any(|column| column == needed)) {
        None => Ok(()),
        Some(column) => Err(ImportError::contents(
            name,
            format!("the table has no column \"{column}\": expected the table benchruns of ybio"),
        )),
    }
}

/// Returns the run of a row; `None` for a run that has not ended.
fn run(row: &Row, name: &str) -> Result<Option<RunResults>, String> {
    let text = |column: &str| row.get(column).map(String::as_str);
    let count = |column: &str| number_in::<u64>(row, column);
    let latency = |column: &str| Ok::<_, String>(number_in::<f64>(row, column)?.map(|ms| ms * 1e3));
    let job = text("job_id").ok_or("the row has no job_id")?;
    let start = timestamp("start_time", text("start_time").ok_or("the row has no start_time")?)?;
    let ended = text("end_time").map(|value| timestamp("end_time", value)).transpose()?;
    let counts = (ended, count("num_batches")?, count("num_rows")?);
    let mut results = RunResults {
        run: ImportedRun {
            tool: TOOL.to_owned(),
            test: text("table_name").map(|table| format!("runit on {table}")),
            counts_rows: true,
            counts_statements: true,
            ..ImportedRun::default()
        },
        started_at: Some(start),
        ..RunResults::default()
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
            results.fact(column, &value);
        }
    }
    if let Some(path) = text("access_path") {
        results.fact("access path as ybio saw it", &path);
    }
    results.protocol = (text("prepared") == Some("f")).then_some(Protocol::Extended);
    let stage = &mut results.stage;
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
    Ok(Some(results))
}

fn number_in<T: Limited>(row: &Row, column: &str) -> Result<Option<T>, String> {
    let parse = |value: &String| {
        parse_number(value)
            .ok_or_else(|| format!("expected a number in {column}, found \"{value}\""))
    };
    row.get(column).map(parse).transpose()
}

fn reported(p50: Option<f64>, p99: Option<f64>, max: Option<f64>) -> Option<ReportedLatency> {
    let percentile =
        |(percent, us): (f64, Option<f64>)| Some(ReportedPercentile { percent, us: us? });
    let percentiles: Vec<_> =
        [(50.0, p50), (99.0, p99)].into_iter().filter_map(percentile).collect();
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
    if let Some(at) = with_minutes(text).and_then(|text| text.parse().ok()) {
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
