//! The settings of the connections over which riops executes its own statements.
//!
//! The defaults of a role, a database, the connection string or `PGOPTIONS` apply to every session. A timeout would end a
//! statement of riops, and a format would change what it reads. Sessions that are measured keep the defaults, because these
//! are part of the result. `default_transaction_read_only` is kept everywhere: it says that nothing may be written.

/// Settings with the values that riops needs to read results, and 0 for no timeout. Older servers do not have all of
/// them.
const SETTINGS: [(&str, &str); 14] = [
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("transaction_timeout", "0"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_deferrable", "off"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("extra_float_digits", "3"),
    ("bytea_output", "hex"),
    ("standard_conforming_strings", "on"),
    ("quote_all_identifiers", "off"),
    ("client_min_messages", "notice"),
];

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Statements of riops around a measurement.
    Control,
    /// Statements that are measured.
    Measured,
}

impl Purpose {
    /// Returns the columns of a query that set what a connection for this purpose needs; empty, or with a comma at the
    /// start.
    pub(super) fn columns(self) -> String {
        let settings = SETTINGS.iter().filter(|_| self == Self::Control);
        let column = |(name, value): &(&str, &str)| {
            format!(
                ", case when pg_catalog.current_setting('{name}', true) is not null then pg_catalog.set_config('{name}', '{value}', false) end"
            )
        };
        settings.map(column).collect()
    }
}
