//! The formats, how they are recognized, and how their results are imported.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;

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
    /// Returns the format of a text that starts with `head`; `None` if it is unknown.
    pub fn of(head: &str) -> Option<Self> {
        let first = head.lines().find(|line| !line.trim().is_empty())?;
        if first.trim_start().starts_with(['{', '[']) && !is_sysbench_interval(first) {
            return Some(Self::Json);
        }
        if first.contains("job_id") && first.contains("num_rows") || ybio_separator(first).is_some()
        {
            return Some(Self::Ybio);
        }
        if let Some(format) = of_numbers(first) {
            return Some(format);
        }
        let text = |line| unquoted(line).trim_start_matches("- ");
        let has = |start: &str| head.lines().any(|line| text(line).starts_with(start));
        if has("transaction type: ")
            || has("pgbench (")
            || has("number of transactions actually processed: ")
        {
            Some(Self::Pgbench)
        } else if has("sysbench ")
            || has("SQL statistics:")
            || has("OLTP test statistics:")
            || head.lines().any(is_sysbench_interval)
        {
            Some(Self::Sysbench)
        } else if has("progress: ") {
            Some(Self::Pgbench)
        } else {
            None
        }
    }
}

/// `[ 1s ] thds: 4 tps: …`, in version 0.5 `[   1s] threads: 4, tps: …`
fn is_sysbench_interval(line: &str) -> bool {
    line.starts_with('[') && (line.contains(" thds: ") || line.contains(" threads: "))
}

/// Returns a line without indentation and the marks of a quotation: reports are cut out of mails, pages and notes.
pub(super) fn unquoted(line: &str) -> &str {
    let line = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end();
    line.trim_end_matches("<br>").trim_end()
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
fn of_numbers(line: &str) -> Option<Format> {
    let fields: Vec<&str> = line.split(' ').collect();
    let is_number = |field: &str| field.parse::<f64>().is_ok();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let (first, seconds) = (number(0), number(4));
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
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| format!("unknown format \"{text}\""))
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
    /// Label of the runs; of records, it replaces theirs.
    pub label: Option<String>,
    /// Tags of the runs, in addition to those of records.
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
        let of = |head: &str| Format::of(head).map(Format::as_str);
        assert_eq!(of("\n{\"schema\": 1}"), Some("json"));
        assert_eq!(of("[{\"schema\": 1}]"), Some("json"));
        assert_eq!(of("job_id,start_time,end_time,num_batches,num_rows\n"), Some("ybio"));
        assert_eq!(of(" job_id | start_time | num_rows \n---+---\n"), Some("ybio"));
        assert_eq!(of("0 1 4097 0 1795414448 499094\n"), Some("pgbench-log"));
        assert_eq!(of("2 1 failed 0 1795414461 684485 1\n"), Some("pgbench-log"));
        assert_eq!(of("1795414455 2303 820850 1279557884 26 6979\n"), Some("pgbench-aggregate"));
        assert_eq!(of("pgbench (15.18)\ntransaction type: x\n"), Some("pgbench"));
        assert_eq!(of("progress: 1.0 s, 192.0 tps\n"), Some("pgbench"));
        assert_eq!(of("sysbench 1.0.20 (using …)\n"), Some("sysbench"));
        assert_eq!(of("[ 1s ] thds: 4 tps: 1840.97\n"), Some("sysbench"));
        for text in ["", "\n\n", "a,b,c\n", "1 2 3\n", "1 2 3 4 5 6\n"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
