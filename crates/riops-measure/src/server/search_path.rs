//! The search path of connections.

/// Where names are found. Without `pg_temp` at the end, temporary tables and types would come first.
macro_rules! path {
    () => {
        "pg_catalog, pg_temp"
    };
}

/// Sets the path of the session. No setting of the role or the database changes which functions this calls.
pub const PINNED: &str = concat!("set search_path = ", path!());
/// The same within a transaction.
const PINNED_LOCALLY: &str = concat!("set local search_path = ", path!());
/// As a query with one row, for the extended protocol, in which SET LOCAL is a warning in the log of the server.
const PIN_LOCALLY: &str =
    concat!("select pg_catalog.set_config('search_path', '", path!(), "', true)");

/// Returns the first query of a connection. It sets the path and the `others` and has a row if this is the process id of
/// the server process: otherwise, a pooler is in between.
pub(super) fn pin(process: i32, others: &str) -> String {
    let set = concat!("select pg_catalog.set_config('search_path', '", path!(), "', false)");
    format!("{set}{others} where pg_catalog.pg_backend_pid() operator(pg_catalog.=) {process}")
}

/// Statements that look up names, and may be in one transaction with the setting of the path.
const LOOKUPS: [&str; 7] = ["select", "with", "insert", "update", "delete", "values", "explain"];

/// How the search path of a connection is pinned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SearchPath {
    /// It is not: the server has not been asked yet.
    #[default]
    Unpinned,
    /// The server does not know this setting: it is not PostgreSQL.
    Unsupported,
    /// For the session.
    Session,
    /// For each transaction, because a pooler would pass a setting of the session to other clients.
    Transaction,
}

impl SearchPath {
    /// Returns the statements to send for these.
    pub(super) fn applied_to(self, sql: &str, in_transaction: bool) -> Option<String> {
        if self != Self::Transaction || in_transaction {
            return None;
        }
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with("--");
        let code = sql.lines().map(str::trim_start).find(is_code).unwrap_or_default();
        let code = code.trim_start_matches('(');
        let first: String = code.chars().take_while(char::is_ascii_alphabetic).collect();
        let first = first.to_ascii_lowercase();
        if first == "begin" {
            let (begin, rest) = sql.split_once(';').unwrap_or((sql, ""));
            return Some(format!("{begin}; {PINNED_LOCALLY}; {rest}"));
        }
        LOOKUPS.contains(&first.as_str()).then(|| format!("{PINNED_LOCALLY}; {sql}"))
    }

    /// Returns the query to send before one with parameters.
    pub(super) fn before_query(self, in_transaction: bool) -> Option<&'static str> {
        (self == Self::Transaction && !in_transaction).then_some(PIN_LOCALLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pooled_connection_pins_the_path_in_each_transaction_that_looks_up_names() {
        let sent = |sql| SearchPath::Transaction.applied_to(sql, false);
        assert_eq!(sent("select f()").unwrap(), format!("{PINNED_LOCALLY}; select f()"));
        assert_eq!(sent("\n  WITH a AS").unwrap(), format!("{PINNED_LOCALLY}; \n  WITH a AS"));
        let commented = "-- Why.\n\n  select f()";
        assert_eq!(sent(commented).unwrap(), format!("{PINNED_LOCALLY}; {commented}"));
        assert_eq!(sent("begin").unwrap(), format!("begin; {PINNED_LOCALLY}; "));
        assert_eq!(
            sent("begin read only; select 1").unwrap(),
            format!("begin read only; {PINNED_LOCALLY};  select 1")
        );
        // These cannot be in a transaction, or look up no functions.
        for sql in ["vacuum t", "commit", "rollback", "show work_mem", "copy t from stdin"] {
            assert_eq!(sent(sql), None);
        }
        assert_eq!(SearchPath::Transaction.applied_to("select 1", true), None);
        assert_eq!(SearchPath::Session.applied_to("select 1", false), None);
    }
}
