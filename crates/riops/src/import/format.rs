//! The formats, how they are recognized, and how their results are imported.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;

use super::lines;

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Records of riops: an object, an array, or several objects one after the other.
    Json,
    /// The table `benchruns` of ybio: CSV, the text of COPY, or the output of psql.
    Ybio,
    /// The transactions that `pgbench --log` writes.
    PgbenchLog,
    /// The intervals that `pgbench --log --aggregate-interval` writes.
    PgbenchAggregate,
    /// The report that pgbench prints.
    Pgbench,
    /// The report that sysbench prints.
    Sysbench,
}

crate::units::texts!(
    /// Returns the name in `--from` and in records.
    Format::as_str {
        Json: "json",
        Ybio: "ybio",
        PgbenchLog: "pgbench-log",
        PgbenchAggregate: "pgbench-aggregate",
        Pgbench: "pgbench",
        Sysbench: "sysbench",
    }
);

impl Format {
    /// Returns the format of a text that starts with `head`; `None` if only reports can be in it.
    pub(super) fn from_head(head: &str) -> Option<Self> {
        let mut lines = head.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next()?;
        if is_json(head) && !lines::is_message(first) {
            return Some(Self::Json);
        }
        if let Some(format) = Self::from_line(first) {
            return Some(format);
        }
        // The table may follow the command that printed it, but not a report.
        let start = lines.find(|line| is_ybio(line) || lines::is_start(line.trim_start()));
        start.filter(|line| is_ybio(line)).map(|_| Self::Ybio)
    }

    /// Returns the format whose results are in a single line.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        if line.starts_with('{') && line.contains("\"schema\"") {
            return Some(Self::Json);
        }
        if is_ybio(line) { Some(Self::Ybio) } else { format_of_numbers(line) }
    }
}
/// Whether a text begins as an object or an array of objects, unlike the prompt of a shell or a block of commands.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let next = |rest: &str, starts: [char; 2]| rest.is_empty() || rest.starts_with(starts);
    let object = text.strip_prefix('{').map(|rest| next(rest.trim_start(), ['"', '}']));
    let array = text.strip_prefix('[').map(|rest| next(rest.trim_start(), ['{', ']']));
    object.or(array).unwrap_or(false)
}

/// Whether a line is the header or a row of ybio's table.
pub(super) fn is_ybio(line: &str) -> bool {
    let has = |separator: char, name: &str| {
        line.split(separator).any(|cell| cell.trim().trim_matches('"') == name)
    };
    let is_header = |separator: &char| has(*separator, "job_id") && has(*separator, "num_rows");
    YBIO_SEPARATORS.iter().any(is_header) || ybio_separator(line).is_some()
}

/// Columns of the table of the original ybio.
pub(super) const YBIO_COLUMNS_MIN: usize = 15;
/// What separates the columns of ybio's table: in the text of COPY, in the output of psql, and in CSV.
pub(super) const YBIO_SEPARATORS: [char; 3] = ['\t', '|', ','];

/// Returns what separates the columns of a row of ybio's table: a number, a time, and others.
pub(super) fn ybio_separator(line: &str) -> Option<char> {
    YBIO_SEPARATORS.into_iter().find(|separator| {
        let mut cells = line.split(*separator).map(str::trim);
        let is_job = cells.next().is_some_and(|cell| cell.parse::<u64>().is_ok());
        let year = cells.next().and_then(|start| start.split_once('-'));
        let has_start = year.is_some_and(|(year, _)| year.parse::<u16>().is_ok());
        is_job && has_start && cells.count() + 2 >= YBIO_COLUMNS_MIN
    })
}

/// The smallest epoch in a log: September 2001. No client has such a number.
const EPOCH_S_MIN: u64 = 1_000_000_000;

/// Lines of pgbench's logs.
fn format_of_numbers(line: &str) -> Option<Format> {
    let fields: Vec<&str> = line.split(' ').collect();
    let is_number = |field: &str| field.parse::<f64>().is_ok();
    let integer = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let (first, seconds) = (integer(0), integer(4));
    if first? >= EPOCH_S_MIN && fields.len() >= 6 && fields.iter().all(|field| is_number(field)) {
        return Some(Format::PgbenchAggregate);
    }
    let is_log = (6..=8).contains(&fields.len())
        && fields.iter().enumerate().all(|(at, field)| at == 2 || is_number(field));
    (is_log && seconds? >= EPOCH_S_MIN).then_some(Format::PgbenchLog)
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let format = Self::ALL.into_iter().find(|format| format.as_str() == text);
        format.ok_or_else(|| format!("unknown format \"{text}\""))
    }
}

/// Meaning of column 7 in the log of pgbench, if there is no column 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column7 {
    /// The delay of the start (`--rate`).
    Lag,
    /// The number of retries (`--max-tries`).
    Retries,
}

/// How results are imported.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Format of all files; `None`: recognized from the contents.
    pub format: Option<Format>,
    /// Label of the runs; it replaces the label of records.
    pub label: Option<String>,
    /// Tags of the runs, in addition to the tags of records.
    pub tags: BTreeMap<String, String>,
    /// Start of the run, if its results do not contain it.
    pub started_at: Option<Timestamp>,
    /// Meaning of column 7 in the log of pgbench; `None`: derived from the values.
    pub column_7: Option<Column7>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_each_format_by_its_first_lines() {
        let recognized = |head: &str| Format::from_head(head).map(Format::as_str);
        assert_eq!(recognized("\n{\"schema\": 1}"), Some("json"));
        assert_eq!(recognized("[{\"schema\": 1}]"), Some("json"));
        assert_eq!(recognized("job_id,start_time,end_time,num_batches,num_rows\n"), Some("ybio"));
        assert_eq!(recognized(" job_id | start_time | num_rows \n---+---\n"), Some("ybio"));
        assert_eq!(recognized("0 1 4097 0 1795414448 499094\n"), Some("pgbench-log"));
        assert_eq!(recognized("2 1 failed 0 1795414461 684485 1\n"), Some("pgbench-log"));
        assert_eq!(
            recognized("1795414455 2303 820850 1279557884 26 6979\n"),
            Some("pgbench-aggregate")
        );
        // A command may precede the table; reports are read line by line.
        let table = " job_id | start_time | num_rows \n---+---\n";
        assert_eq!(
            recognized(&format!("[bench@db1 ~]$ psql -c 'table benchruns'\n{table}")),
            Some("ybio")
        );
        let reports = [
            "pgbench (15.18)\ntransaction type: x\n",
            "sysbench 1.0.20 (using …)\n",
            "[ 1s ] thds: 4 tps: 1840.97\n",
            "[bench@db1 ~]$ pgbench -c 8\n",
            "{\n  pgbench -c 8\n}\n",
            "{\"log\": \"pgbench (15.18)\\n\"}\n",
            "a job_id and num_rows in a sentence\n",
            "<pre>pgbench (15.18)\n",
        ];
        for text in reports.into_iter().chain(["", "\n\n", "a,b,c\n", "1 2 3\n", "1 2 3 4 5 6\n"]) {
            assert_eq!(recognized(text), None, "{text}");
        }
    }
}
