//! The order of a list of runs.

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
    /// [`UnknownColumn`] for a column that is not in [`SORT_COLUMNS`], or another direction.
    pub fn parse(text: &str) -> Result<Self, UnknownColumn> {
        let (name, direction) = text.split_once(':').unwrap_or((text, "desc"));
        let title = TITLES.iter().find(|(title, _)| *title == name);
        let name = title.map_or(name, |(_, column)| column);
        let column = SORT_COLUMNS.into_iter().find(|column| *column == name);
        match (column, direction) {
            (Some(column), "asc") => Ok(Self { column, descending: false }),
            (Some(column), "desc") => Ok(Self { column, descending: true }),
            _ => Err(UnknownColumn(text.to_owned())),
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

/// A list cannot be sorted by this.
#[derive(Debug, thiserror::Error)]
#[error(
    "unknown column \"{0}\" to sort by; expected COLUMN, COLUMN:asc or COLUMN:desc with one of {columns}",
    columns = SORT_COLUMNS.join(", ")
)]
pub struct UnknownColumn(pub String);

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
