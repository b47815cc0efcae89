//! The formats, and how they are recognized.

use std::str::FromStr;

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

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] = [
        Self::Json,
        Self::Ybio,
        Self::PgbenchLog,
        Self::PgbenchAggregate,
        Self::Pgbench,
        Self::Sysbench,
    ];

    /// Returns the name in `--from` and in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ybio => "ybio",
            Self::PgbenchLog => "pgbench-log",
            Self::PgbenchAggregate => "pgbench-aggregate",
            Self::Pgbench => "pgbench",
            Self::Sysbench => "sysbench",
        }
    }

    /// Returns the format of a text that starts with `head`; `None` if it is unknown.
    #[must_use]
    pub fn of(head: &str) -> Option<Self> {
        let first =
            head.lines().find(|line| !line.trim().is_empty())?.trim_start_matches('\u{feff}');
        if first.trim_start().starts_with(['{', '[']) && !is_sysbench_interval(first) {
            return Some(Self::Json);
        }
        if first.contains("job_id") && first.contains("num_rows") {
            return Some(Self::Ybio);
        }
        if let Some(format) = of_numbers(first) {
            return Some(format);
        }
        let has = |start: &str| head.lines().any(|line| line.starts_with(start));
        if has("transaction type: ") || has("pgbench (") {
            Some(Self::Pgbench)
        } else if has("sysbench ")
            || has("SQL statistics:")
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

/// `[ 1s ] thds: 4 tps: …`
fn is_sysbench_interval(line: &str) -> bool {
    line.starts_with("[ ") && line.contains("thds:")
}

/// The smallest epoch in a log: September 2001. No client has such a number.
const EPOCH_S_MIN: u64 = 1_000_000_000;

/// Lines of pgbench's logs, and of `copy benchruns to …` without a header.
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
