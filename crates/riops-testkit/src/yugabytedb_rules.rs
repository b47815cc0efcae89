//! How releases of YugabyteDB differ from PostgreSQL: syntax, missing features, plans. Source: the pages of the
//! vendor's documentation and its source code, as listed in the design notes of riops.

use serde_json::{Value, json};

/// A release line of YugabyteDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// 2.20, on PostgreSQL 11.
    V2_20,
    /// 2024.2, on PostgreSQL 11.
    V2024_2,
    /// 2025.1, on PostgreSQL 15.
    V2025_1,
    /// Not YugabyteDB, but a product that riops does not know. It differs from PostgreSQL in its name only.
    Unknown,
}

impl Release {
    /// All release lines of YugabyteDB.
    pub const ALL: [Self; 3] = [Self::V2_20, Self::V2024_2, Self::V2025_1];

    /// The parameter `server_version`.
    pub fn server_version(self) -> &'static str {
        match self {
            Self::V2_20 => "11.2-YB-2.20.7.0-b0",
            Self::V2024_2 => "11.2-YB-2024.2.0.0-b0",
            Self::V2025_1 => "15.12-YB-2025.1.0.0-b0",
            Self::Unknown => "16.3-AcmeDB-1.2",
        }
    }

    /// The error of a change of the catalog that conflicts with another one.
    pub(crate) fn conflict(self) -> ErrorFields {
        if self == Self::V2_20 { MISMATCH_IN_DETAIL } else { CONFLICT }
    }

    fn has_advisory_locks(self) -> bool {
        matches!(self, Self::V2025_1 | Self::Unknown)
    }

    fn sequential_scan(self) -> &'static str {
        if self == Self::V2025_1 { "Seq Scan" } else { "YB Seq Scan" }
    }

    /// Relations, functions and settings that riops may look for and that the release lacks.
    fn missing(self) -> &'static [&'static str] {
        match self {
            Self::Unknown => &[],
            Self::V2025_1 => &["pg_stat_io", "pg_stat_checkpointer"],
            Self::V2024_2 | Self::V2_20 => &["pg_stat_io", "pg_stat_checkpointer", "pg_stat_wal"],
        }
    }
}

/// The fields of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorFields {
    /// SQLSTATE.
    pub sqlstate: &'static str,
    /// Message.
    pub message: &'static str,
    /// Detail, or nothing.
    pub detail: &'static str,
    /// Context, or nothing.
    pub context: &'static str,
}

impl ErrorFields {
    /// An error without detail and context.
    pub const fn new(sqlstate: &'static str, message: &'static str) -> Self {
        Self { sqlstate, message, detail: "", context: "" }
    }
}

/// How a statement fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The server answers it with an error.
    Error(ErrorFields),
    /// The connection breaks before it is executed.
    CloseBefore,
    /// The connection breaks after it was executed, without a reply.
    CloseAfter,
    /// As if the client were killed before it: the connection breaks, and no new one is accepted.
    Kill,
}

/// Which statement does not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The one with this number, from 1 and over all sessions.
    Number(usize),
    /// The first one that begins with this text.
    First(&'static str),
}

/// The behavior of a gateway.
#[derive(Debug, Clone)]
pub struct Behavior {
    /// Release that it imitates.
    pub release: Release,
    /// Whether its sessions cannot be asked to report their statistics, as in real releases before 2025.1. riops then waits, so
    /// only the tests of this wait set it.
    pub reports_late: bool,
    /// One statement that does not succeed.
    pub failure: Option<(Which, Failure)>,
}

/// A concurrent change of the catalog.
const CONFLICT: ErrorFields =
    ErrorFields::new("40001", "could not serialize access due to concurrent update");
/// The failure of a request to the storage.
pub const LOST_REQUEST: ErrorFields = ErrorFields::new(
    "XX000",
    "Network error: recvmsg got EOF from remote: connection reset by peer (system error 104)",
);
/// A concurrent change of the catalog, in the context of the error.
pub const MISMATCH_IN_CONTEXT: ErrorFields = ErrorFields {
    sqlstate: "XX000",
    message: "Invalid argument: Query error",
    detail: "",
    context: "Catalog Version Mismatch: A DDL occurred while processing this query. Try again.",
};
/// The same in its detail.
pub const MISMATCH_IN_DETAIL: ErrorFields = ErrorFields {
    sqlstate: "XX000",
    message: "Query error: A DDL occurred while processing this query.",
    detail: "Catalog Version Mismatch: A DDL occurred while processing this query. Try again.",
    context: "",
};
/// The catalog has changed since a transaction began.
pub(crate) const INVALIDATED: ErrorFields = ErrorFields::new(
    "XX000",
    "The catalog snapshot used for this transaction has been invalidated: expected: 3, got: 2: MISMATCHED_SCHEMA",
);
const NO_ADVISORY_LOCKS: ErrorFields =
    ErrorFields::new("0A000", "advisory locks are not yet implemented");
const STALENESS: ErrorFields = ErrorFields::new(
    "22023",
    "cannot set yb_follower_read_staleness_ms below 2 * max_clock_skew (1000 ms)",
);
const DDL_IN_BLOCK: ErrorFields = ErrorFields::new(
    "25001",
    "this statement would commit separately here, which the tests of riops do not accept",
);

/// Relations, functions and settings that a server with this behavior lacks.
fn missing(behavior: &Behavior) -> impl Iterator<Item = &'static str> {
    let flush = behavior.reports_late.then_some("pg_stat_force_next_flush");
    behavior.release.missing().iter().copied().chain(flush)
}

/// Returns the error with which a release answers a statement in any case.
pub(crate) fn refusal(behavior: &Behavior, sql: &str, in_block: bool) -> Option<ErrorFields> {
    let release = behavior.release;
    if sql.contains("advisory") && !release.has_advisory_locks() {
        return Some(NO_ADVISORY_LOCKS);
    }
    let staleness = sql.split("set yb_follower_read_staleness_ms = ").nth(1);
    let staleness = staleness.and_then(|rest| rest.split([';', ' ']).next()?.parse::<u64>().ok());
    if staleness.is_some_and(|ms| ms < 1_000) {
        return Some(STALENESS);
    }
    // A name in a string is only looked up, and not found.
    let outside_strings: String = sql.split('\'').step_by(2).collect();
    if missing(behavior).any(|name| outside_strings.contains(name)) {
        return Some(ErrorFields::new("42P01", "relation does not exist"));
    }
    let several = sql.trim_end_matches(';').contains(';') && !sql.contains("language plpgsql");
    let is_plain = changes_catalog(sql).is_some() && !is_temporary(sql);
    (is_plain && (in_block || several)).then_some(DDL_IN_BLOCK)
}

fn is_temporary(sql: &str) -> bool {
    sql.contains("temporary") || sql.contains("pg_temp")
}

/// Returns whether a statement that changes the catalog increments its version; `None` for other statements.
pub(crate) fn changes_catalog(sql: &str) -> Option<bool> {
    let mut words = sql.split_whitespace();
    match (words.next()?, words.next().unwrap_or_default()) {
        ("create", "index" | "unique") | ("drop" | "alter", _) => Some(true),
        ("create" | "comment" | "grant" | "revoke", _) => Some(false),
        _ => None,
    }
}

/// Returns the statement in the syntax of PostgreSQL.
pub(crate) fn translated(behavior: &Behavior, sql: &str) -> String {
    let release = behavior.release;
    if sql == "checkpoint" {
        // YugabyteDB has no shared buffers to write. The server behind the gateway has the dirty buffers of all tests.
        return "set yb.checkpoint = done".to_owned();
    }
    let mut text = sql.to_owned();
    if sql.starts_with("create table") {
        // The fill factor preserves the order of the key for `yb_get_indexdef`.
        for (order, mark) in [("hash", 71), ("asc", 72)] {
            let (declared, marked) =
                (format!(" {order})"), format!(") with (fillfactor = {mark})"));
            if let Some((before, key)) = text.split_once("primary key (") {
                text = format!("{before}primary key ({}", key.replacen(&declared, &marked, 1));
            }
        }
    }
    if sql.starts_with("create index") {
        text = text.replacen("index nonconcurrently", "index", 1).replacen(" hash)", ")", 1);
    }
    if sql.starts_with("create")
        && !sql.contains("language")
        && let Some((before, _)) = text.split_once(" split ")
    {
        text = String::from(before.trim_end());
    }
    let version = format!("'PostgreSQL {}'::text", release.server_version());
    for (theirs, ours) in [
        ("set yb_", "set yb."),
        (", rows_per_transaction 0", ""),
        (" with (rows_per_transaction 0)", ""),
        ("analyze, dist, ", "analyze, "),
        ("pg_get_indexdef(", "pg_catalog.yb_get_indexdef("),
        ("yb_hash_code(", "hashint8("),
        ("version()", version.as_str()),
    ] {
        text = text.replace(theirs, ours);
    }
    for name in missing(behavior) {
        text = text.replace(&format!("{name}'"), &format!("missing_{name}'"));
    }
    if release == Release::V2_20 {
        text = text.replace("'plan_cache_mode'", "'missing_plan_cache_mode'");
    }
    text
}

/// Functions that the gateway needs in each database. `nodes` are the addresses for `yb_servers()`.
pub fn functions_sql(nodes: &[(String, u16)]) -> String {
    let rows: Vec<String> = nodes
        .iter()
        .enumerate()
        .map(|(position, (host, port))| {
            format!("('{host}', {port}::int8, 0::int8, 'primary', 'cloud', 'region', 'zone{position}', '', 'uuid{position}')")
        })
        .collect();
    format!(
        "set allow_system_table_mods = on;
         create or replace view pg_catalog.yb_active_session_history as
           select pg_catalog.clock_timestamp() - interval '100 ms' * n as sample_time, component as wait_event_component,
                  class as wait_event_class, event as wait_event, 1::real as sample_weight
             from pg_catalog.generate_series(0, 100) as n,
                  (values ('YSQL', 'YSQLQuery', 'QueryProcessing'), ('TServer', 'Rpc', 'OnCpu_Active')) as e (component, class, event);
         create or replace function pg_catalog.yb_servers() returns table (host text, port int8, num_connections int8,
           node_type text, cloud text, region text, zone text, public_ip text, uuid text)
         language sql as $$ values {} $$;
         create or replace function pg_catalog.yb_get_indexdef(index oid) returns text language sql as $$
           select replace(replace(replace(pg_catalog.pg_get_indexdef(index), 'USING btree', 'USING lsm'),
             ') WITH (fillfactor=''71'')', ' HASH)'), ') WITH (fillfactor=''72'')', ' ASC)') $$",
        rows.join(", ")
    )
}

/// Properties of a table that the gateway knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sharding {
    pub(crate) by_hash: bool,
    pub(crate) has_secondary_index: bool,
}

/// Turns PostgreSQL's output of EXPLAIN (FORMAT JSON) into the output of a release.
pub(crate) fn plan(
    release: Release,
    sql: &str,
    sharding: &dyn Fn(&str) -> Sharding,
    text: &str,
) -> Option<String> {
    let mut document: Value = serde_json::from_str(text).ok()?;
    let first = document.get_mut(0)?;
    let root = first.get_mut("Plan")?;
    change_node(release, sql, sharding, root);
    let totals = first.as_object_mut()?;
    for label in ["Storage Read Requests", "Storage Rows Scanned", "Storage Write Requests"] {
        totals.insert(label.to_owned(), json!(1));
    }
    Some(document.to_string())
}

fn change_node(release: Release, sql: &str, sharding: &dyn Fn(&str) -> Sharding, node: &mut Value) {
    let text = |node: &Value, field: &str| {
        node.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let table = text(node, "Relation Name");
    let changes_one_row = match text(node, "Operation").as_str() {
        // No reference to a column, and the column has no index.
        "Update" => !sql.contains("+ 1") && !sql.contains("set k =") && !sql.contains("mykey"),
        "Delete" => !sharding(&table).has_secondary_index,
        _ => false,
    };
    if changes_one_row && sql.contains(" where id = ") {
        node["Plans"] = json!([{"Node Type": "Result"}]);
    }
    let by_range = text(node, "Index Cond").contains(">=");
    let on_hash = sharding(&table).by_hash || text(node, "Index Name").starts_with("k_");
    if text(node, "Node Type") == "Index Scan" && by_range && on_hash {
        node["Node Type"] = json!("Seq Scan");
        node["Filter"] = node["Index Cond"].take();
        if let Some(fields) = node.as_object_mut() {
            fields.remove("Index Name");
            fields.remove("Index Cond");
        }
    }
    if text(node, "Node Type") == "Seq Scan" {
        node["Node Type"] = json!(release.sequential_scan());
    }
    for child in node.get_mut("Plans").and_then(Value::as_array_mut).into_iter().flatten() {
        change_node(release, sql, sharding, child);
    }
}
