//! The statements that the server executed around a stage, from `pg_stat_statements`: differences of its counters, which are
//! never reset.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::reading::{leave_untracked, schema};
use crate::server::{Connection, ConnectionError};
use riops_model::record::StatementUse;

const STATEMENTS: &str = include_str!("../../sql/probe/statements.sql");
const TEXTS: &str = include_str!("../../sql/probe/statement_texts.sql");
/// Maximum number of statements that are read: more take too long.
const READ_MAX: usize = 10_000;
/// Maximum number of statements in the result, of the run and of others, the longest first.
const SHOWN_MAX: usize = 20;

/// A row of `pg_stat_statements`. Times are in milliseconds; the names of earlier versions are aliases.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Row {
    /// Absent for statements of other roles, if the role may not read them.
    queryid: Option<i64>,
    userid: String,
    toplevel: Option<bool>,
    /// When the counting began; PostgreSQL 17 or later.
    stats_since: Option<String>,
    calls: u64,
    rows: u64,
    #[serde(alias = "total_time")]
    total_exec_time: f64,
    total_plan_time: f64,
    jit_generation_time: f64,
    jit_inlining_time: f64,
    jit_optimization_time: f64,
    jit_emission_time: f64,
    shared_blks_hit: u64,
    shared_blks_read: u64,
    shared_blks_dirtied: u64,
    shared_blks_written: u64,
    temp_blks_read: u64,
    temp_blks_written: u64,
    wal_bytes: Option<u64>,
    wal_fpi: Option<u64>,
    generic_plan_calls: Option<u64>,
    custom_plan_calls: Option<u64>,
}

/// Key of a row in one database.
type Key = (Option<i64>, String, Option<bool>);

/// The counters of all statements at one point in time.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading(BTreeMap<Key, Row>);

/// Reads the statements, if the extension is installed.
#[derive(Debug)]
pub(super) struct Statements {
    schema: String,
    /// Normalized texts of the statements of the run.
    own: BTreeSet<String>,
}

impl Statements {
    /// Returns the probe for a run with these statements; `None` without the extension. The queries of a connection that
    /// `is_dedicated` are no longer counted, if the role may change this setting.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection fails.
    pub(super) fn new(
        connection: &mut Connection,
        own: &BTreeSet<String>,
        is_dedicated: bool,
    ) -> Result<Option<Self>, ConnectionError> {
        let Some(schema) = schema(connection, "pg_stat_statements")? else {
            return Ok(None);
        };
        if is_dedicated {
            leave_untracked(connection)?;
        }
        Ok(Some(Self { schema, own: own.iter().map(|sql| normalized(sql)).collect() }))
    }

    /// Reads all counters; `None` if the server does not return them, or if there are too many.
    pub(super) fn read(&self, connection: &mut Connection) -> Option<Reading> {
        let sql =
            STATEMENTS.replace("{schema}", &self.schema).replace("{most}", &READ_MAX.to_string());
        let rows = connection.query(&sql).ok()?;
        let rows = rows.into_iter().flatten().flatten();
        let rows = rows.map(|json| serde_json::from_str::<Row>(&json).ok());
        let rows: Option<Vec<Row>> = rows.collect();
        let key = |row: &Row| (row.queryid, row.userid.clone(), row.toplevel);
        Some(Reading(rows?.into_iter().map(|row| (key(&row), row)).collect()))
    }

    /// Returns the statements that were executed between two readings: statements of the run first, then by descending
    /// execution time.
    pub(super) fn between(
        &self,
        connection: &mut Connection,
        from: &Reading,
        to: &Reading,
    ) -> Vec<StatementUse> {
        let mut by_id: BTreeMap<Option<i64>, StatementUse> = BTreeMap::new();
        for (key, row) in &to.0 {
            if let Some(change) = row.since(from.0.get(key)) {
                by_id.entry(key.0).or_default().add(&change);
            }
        }
        let ids: Vec<String> = by_id.keys().flatten().map(i64::to_string).collect();
        let texts = self.texts(connection, &ids.join(","));
        let mut uses: Vec<StatementUse> = by_id
            .into_iter()
            .map(|(id, counted)| {
                let text = id.and_then(|id| texts.get(&id.to_string()));
                let query = text.cloned().unwrap_or_else(|| "(of other roles)".to_owned());
                StatementUse { is_own: self.is_own(&normalized(&query)), query, ..counted }
            })
            .collect();
        uses.sort_by(|a, b| b.is_own.cmp(&a.is_own).then(b.exec_us.total_cmp(&a.exec_us)));
        let (own, others): (Vec<_>, Vec<_>) = uses.into_iter().partition(|usage| usage.is_own);
        own.into_iter().take(SHOWN_MAX).chain(others.into_iter().take(SHOWN_MAX)).collect()
    }

    /// Returns whether a normalized text is a statement of the run, or begins with the call of a loop in the server.
    fn is_own(&self, text: &str) -> bool {
        // An empty text is the beginning of all.
        let is_start = |own: &String| own.ends_with('(') || own.is_empty();
        let is_call = |own: &String| is_start(own) && text.starts_with(own.as_str());
        self.own.contains(text) || self.own.iter().any(is_call)
    }

    fn texts(&self, connection: &mut Connection, ids: &str) -> BTreeMap<String, String> {
        let sql = TEXTS.replace("{schema}", &self.schema).replace("{ids}", ids);
        let rows = connection.query(&sql).unwrap_or_default();
        let text = |row: Vec<Option<String>>| match <[Option<String>; 2]>::try_from(row) {
            Ok([Some(id), Some(query)]) => Some((id, query)),
            _ => None,
        };
        rows.into_iter().filter_map(text).collect()
    }
}

impl Row {
    /// Returns what was counted since an earlier reading; `None` if nothing was, or if the counters were reset.
    fn since(&self, earlier: Option<&Self>) -> Option<StatementUse> {
        let none = Self::default();
        let before = earlier.unwrap_or(&none);
        if earlier.is_some_and(|earlier| earlier.stats_since != self.stats_since) {
            return None;
        }
        let calls = self.calls.checked_sub(before.calls).filter(|&calls| calls > 0)?;
        let count = |pick: fn(&Self) -> u64| pick(self).saturating_sub(pick(before));
        let us = |pick: fn(&Self) -> f64| ((pick(self) - pick(before)) * 1e3).max(0.0);
        let known = |pick: fn(&Self) -> Option<u64>| {
            Some(pick(self)?.saturating_sub(pick(before).unwrap_or_default()))
        };
        Some(StatementUse {
            query: String::new(),
            is_own: false,
            calls,
            rows: count(|row| row.rows),
            exec_us: us(|row| row.total_exec_time),
            plan_us: us(|row| row.total_plan_time),
            jit_us: us(|row| {
                row.jit_generation_time
                    + row.jit_inlining_time
                    + row.jit_optimization_time
                    + row.jit_emission_time
            }),
            blocks_hit: count(|row| row.shared_blks_hit),
            blocks_read: count(|row| row.shared_blks_read),
            blocks_dirtied: count(|row| row.shared_blks_dirtied),
            blocks_written: count(|row| row.shared_blks_written),
            temporary_blocks: count(|row| row.temp_blks_read + row.temp_blks_written),
            wal_bytes: known(|row| row.wal_bytes),
            wal_full_page_images: known(|row| row.wal_fpi),
            generic_plan_calls: known(|row| row.generic_plan_calls),
            custom_plan_calls: known(|row| row.custom_plan_calls),
        })
    }
}

/// Returns a statement with `?` for each constant, parameter and variable of a script, and each list of them: as far as the
/// text of a client and the normalized text of the server can be compared.
fn normalized(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql.trim().trim_end_matches(';').trim_end();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_number = |c: char| is_word(c) || c == '.';
    while let Some(first) = rest.chars().next() {
        let after_word = text.ends_with(is_word);
        let value = match first {
            '\'' => Some(1 + quoted(rest.get(1..).unwrap_or_default())),
            '$' | ':' => Some(1 + length(rest.get(1..).unwrap_or_default(), is_word)),
            // A sign after an operator belongs to the number.
            '-' if text.trim_end().ends_with(['(', ',', '=', '<', '>', '+', '-', '*', '/']) => rest
                .get(1..)
                .filter(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
                .map(|rest| 1 + length(rest, is_number)),
            '0'..='9' if !after_word => Some(length(rest, is_number)),
            _ => None,
        };
        // A cast (`::`) and a lone sign are not values.
        if let Some(length) = value.filter(|&length| length > 1 || first.is_ascii_digit()) {
            if text.ends_with("?, ") {
                text.truncate(text.len() - 2);
            } else {
                text.push('?');
            }
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        // PostgreSQL 18 folds the constants of a list.
        if let Some(after) = rest.strip_prefix(" /*, ... */") {
            rest = after;
        } else if first.is_whitespace() {
            text.push(' ');
            rest = rest.trim_start();
        } else {
            let next = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            text.push_str(rest.get(..next).unwrap_or_default());
            rest = rest.get(next..).unwrap_or_default();
        }
    }
    text
}

/// Length of the start of a text whose characters `is`.
fn length(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

/// Length of a quoted text after its first quote, with the last one.
fn quoted(text: &str) -> usize {
    let mut at = 0;
    while let Some(quote) = text.get(at..).and_then(|rest| rest.find('\'')) {
        at += quote + 1;
        if !text.get(at..).unwrap_or_default().starts_with('\'') {
            return at;
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_statements_of_client_and_server_without_their_values() {
        let same = [
            ("select abalance from t where aid = :aid;", "select abalance from t where aid = $1"),
            ("update t set b = b + -5 where c = 'it''s'", "update t set b = b + $1 where c = $2"),
            ("insert into t1 (a)\n  values (1), (2)", "insert into t1 (a) values ($1), ($2)"),
            ("select 1 where a in (1, 2, 3)", "select $1 where a in ($2 /*, ... */)"),
            ("select x::int4, 1.5e3", "select x::int4, $1"),
            ("commit", "commit"),
        ];
        for (client, server) in same {
            assert_eq!(normalized(client), normalized(server));
        }
        assert_eq!(normalized("select a1 from t_2 where b = 'x"), "select a1 from t_2 where b = ?");
        assert_ne!(normalized("select a from t"), normalized("select b from t"));
        assert_eq!(normalized("select 'é', é"), "select ?, é");
    }

    #[test]
    fn the_columns_of_all_versions_are_read() {
        let row = |json: &str| serde_json::from_str::<Row>(json).unwrap();
        let old =
            row(r#"{"queryid": -7, "userid": "10", "calls": 3, "total_time": 1.5, "dbid": 5}"#);
        assert_eq!((old.queryid, old.calls, old.total_exec_time), (Some(-7), 3, 1.5));
        let new = row(
            r#"{"queryid": 7, "userid": "10", "toplevel": true, "calls": 5, "total_exec_time": 4.0, "wal_bytes": 8000,
                "stats_since": "a", "jit_generation_time": 0.5, "yb_latency_histogram": []}"#,
        );
        let earlier =
            Row { calls: 2, total_exec_time: 1.0, jit_generation_time: 0.25, ..new.clone() };
        let earlier = Row { wal_bytes: Some(2_000), ..earlier };
        let change = new.since(Some(&earlier)).unwrap();
        assert_eq!((change.calls, change.exec_us, change.jit_us), (3, 3_000.0, 250.0));
        assert_eq!((change.wal_bytes, old.since(None).unwrap().wal_bytes), (Some(6_000), None));
        assert_eq!(change.generic_plan_calls, None);
        let of_19 = |custom: u64, generic: u64| Row {
            calls: custom + generic,
            ..row(&format!(r#"{{"custom_plan_calls": {custom}, "generic_plan_calls": {generic}}}"#))
        };
        let change = of_19(5, 95).since(Some(&of_19(3, 0))).unwrap();
        assert_eq!((change.custom_plan_calls, change.generic_plan_calls), (Some(2), Some(95)));
        // Nothing was executed, or the counters were reset.
        assert_eq!(new.since(Some(&new)), None);
        assert_eq!(new.since(Some(&Row { calls: 9, ..new.clone() })), None);
        let before = Row { stats_since: Some("b".to_owned()), ..earlier };
        assert_eq!(new.since(Some(&before)), None);
    }
}
