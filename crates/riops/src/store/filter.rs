//! Which runs a list contains, and in which order.

use jiff::Timestamp;

use super::error::StoreError;

/// The columns by which a list can be sorted, as in the table `runs`.
pub const SORT_COLUMNS: [&str; 26] = [
    "started_at",
    "workload",
    "title",
    "label",
    "status",
    "valid",
    "server",
    "client_host",
    "sessions",
    "rate_per_s",
    "update_percent",
    "distribution",
    "stages",
    "seconds",
    "batch",
    "rows_per_s",
    "transactions_per_s",
    "statements_per_s",
    "p99_us",
    "service_p50_us",
    "service_p99_us",
    "response_p50_us",
    "response_p99_us",
    "device_mb_s",
    "errors",
    "retries",
];

/// The titles of `riops runs list`, which also name columns.
const TITLES: [(&str, &str); 9] = [
    ("started", "started_at"),
    ("rows/s", "rows_per_s"),
    ("tx/s", "transactions_per_s"),
    ("p99", "p99_us"),
    ("MB/s", "device_mb_s"),
    ("rate", "rate_per_s"),
    ("update", "update_percent"),
    ("host", "client_host"),
    ("duration", "seconds"),
];

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    column: &'static str,
    descending: bool,
}

impl Sort {
    /// Parses `COLUMN`, `COLUMN:asc` or `COLUMN:desc`; the default is descending.
    ///
    /// # Errors
    /// [`StoreError::UnknownColumn`] for a column that is not in [`SORT_COLUMNS`], or another direction.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let (name, direction) = text.split_once(':').unwrap_or((text, "desc"));
        let title = TITLES.iter().find(|(title, _)| *title == name);
        let name = title.map_or(name, |(_, column)| column);
        let column = SORT_COLUMNS.into_iter().find(|column| *column == name);
        match (column, direction) {
            (Some(column), "asc") => Ok(Self { column, descending: false }),
            (Some(column), "desc") => Ok(Self { column, descending: true }),
            _ => Err(StoreError::UnknownColumn {
                given: text.to_owned(),
                columns: SORT_COLUMNS.to_vec(),
            }),
        }
    }

    /// Returns the column.
    pub fn column(self) -> &'static str {
        self.column
    }

    /// Returns whether large values precede small ones. Missing values are always last.
    pub fn is_descending(self) -> bool {
        self.descending
    }
}

impl Default for Sort {
    /// Newest first.
    fn default() -> Self {
        Self { column: "started_at", descending: true }
    }
}

/// Which runs a list contains. The default is all runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The full id of a run.
    pub id: Option<String>,
    /// Name of the workload, for example `oltp`, or its title, for example `oltp, point-select`.
    pub workload: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// Tags with their value, or any value. A run must have all of them.
    pub tags: Vec<(String, Option<String>)>,
    /// Facts about the server, in the same way.
    pub facts: Vec<(String, Option<String>)>,
    /// Earliest start.
    pub since: Option<Timestamp>,
    /// Latest start, exclusive.
    pub until: Option<Timestamp>,
    /// Only valid or only invalid runs.
    pub valid: Option<bool>,
    /// Also imported runs, which riops did not verify.
    pub unverified: bool,
    /// Order.
    pub sort: Sort,
    /// Number of runs to skip, in this order.
    pub offset: u32,
    /// Maximum number of runs; absent: all.
    pub limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_sorted_in_descending_order_unless_given_otherwise() {
        let parsed = |text| Sort::parse(text).map(|sort| (sort.column(), sort.is_descending()));
        assert_eq!(parsed("rows_per_s").unwrap(), ("rows_per_s", true));
        assert_eq!(parsed("p99:asc").unwrap(), ("p99_us", false));
        for text in ["", "id; drop table runs", "rows_per_s:up", "rows_per_s:"] {
            assert!(parsed(text).unwrap_err().to_string().contains("started_at"), "{text}");
        }
    }
}
