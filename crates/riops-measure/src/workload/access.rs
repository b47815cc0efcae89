//! Access paths: compares the expected access path of a statement with the plan of the server.
//!
//! Pure: parses the output of EXPLAIN (FORMAT JSON). It must not talk to the server.

use std::fmt::{self, Write as _};

use serde_json::Value;

use super::statements::{Statement, with_literals};
use crate::server::{Dialect, Feature};
use riops_model::record::StorageRequests;

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Name of the table.
    pub table: String,
    /// Name of the index.
    pub name: String,
}

impl fmt::Display for Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.name, self.table)
    }
}

/// The expected access path of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessPath {
    /// The index finds the keys, and each row is fetched from the table.
    IndexScan(Index),
    /// All columns come from the index.
    IndexOnlyScan {
        /// The index.
        index: Index,
        /// Whether heap fetches of recently updated rows are allowed.
        heap_fetches_allowed: bool,
    },
    /// The index finds the rows to update.
    UpdateByIndex(Index),
    /// The index finds the rows to delete.
    DeleteByIndex(Index),
    /// A bitmap combines several ranges of the index.
    BitmapScan(Index),
    /// The index finds the rows, by an index scan or a bitmap heap scan.
    ByIndex(Index),
    /// The whole table is read sequentially.
    SeqScan {
        /// Name of the table.
        table: String,
    },
    /// Both tables of a join are read through one index each.
    JoinByIndex([Index; 2]),
    /// Rows are inserted without reading a table.
    Insert {
        /// Name of the table.
        table: String,
    },
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexScan(index) => write!(formatter, "Index Scan using {index}"),
            Self::IndexOnlyScan { index, heap_fetches_allowed: false } => {
                write!(formatter, "Index Only Scan using {index}")
            }
            Self::IndexOnlyScan { index, .. } => {
                write!(formatter, "Index Only Scan using {index}, heap fetches allowed")
            }
            Self::UpdateByIndex(Index { table, name }) => {
                write!(formatter, "Update on {table}, Index Scan using {name}")
            }
            Self::DeleteByIndex(Index { table, name }) => {
                write!(formatter, "Delete on {table}, Index Scan using {name}")
            }
            Self::BitmapScan(index) => write!(formatter, "Bitmap Heap Scan using {index}"),
            Self::ByIndex(index) => {
                write!(formatter, "Index Scan or Bitmap Heap Scan using {index}")
            }
            Self::SeqScan { table } => write!(formatter, "Seq Scan on {table}"),
            Self::JoinByIndex([Index { table, name }, Index { table: other, name: its_name }]) => {
                write!(
                    formatter,
                    "join of {table} and {other}, Index Scan using {name} and {its_name}"
                )
            }
            Self::Insert { table } => write!(formatter, "Insert on {table}, no table read"),
        }
    }
}

/// A statement of a session with its expected access path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Name of the prepared statement.
    pub statement: String,
    /// Text of the statement.
    pub sql: String,
    /// Parameter values for EXPLAIN, as SQL literals.
    pub arguments: Vec<String>,
    /// Number of rows that the statement reads or updates with these parameters.
    pub rows: u64,
    /// Expected access path.
    pub expected: AccessPath,
    /// Dialect of the server that executes EXPLAIN.
    pub dialect: Dialect,
    /// Whether the server may execute the statement with parallel workers. They would do work that no session
    /// of the run accounts for.
    pub parallel_allowed: bool,
}

/// Result of comparing a plan with the expected access path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether the access path is as expected.
    pub is_expected: bool,
    /// The plan, one node per line.
    pub outline: String,
    /// Requests to the storage during the execution, if the server reports them.
    pub storage: Option<StorageRequests>,
    /// The plan that was found first, if no access path is expected.
    pub first: Option<String>,
}

/// Maximum depth of a plan; plans of riops statements are never as deep. Plans are untrusted input.
const DEPTH_MAX: usize = 32;

impl Access {
    /// Creates the access of a statement that reads or changes one row with these parameters, without parallel workers.
    pub fn new(
        Statement { name: statement, sql, .. }: Statement,
        arguments: Vec<String>,
        expected: AccessPath,
        dialect: Dialect,
    ) -> Self {
        Self { statement, sql, arguments, rows: 1, expected, dialect, parallel_allowed: false }
    }

    /// Returns the EXPLAIN statement for the plan that this session would use now. With `by_name` it
    /// explains the prepared statement, with a custom or generic plan; otherwise the text with literals for
    /// the parameters, as the simple protocol sends it and as an unnamed statement is planned.
    pub fn explain_sql(&self, by_name: bool) -> String {
        let analyze = match (&self.expected, self.dialect.has(Feature::StorageCounters)) {
            // ANALYZE would change rows.
            (
                AccessPath::UpdateByIndex(_)
                | AccessPath::DeleteByIndex(_)
                | AccessPath::Insert { .. },
                _,
            ) => "",
            // Only DIST shows the requests to the storage.
            (_, true) => "analyze, dist, ",
            // Only ANALYZE shows the heap fetches of an index-only scan.
            (AccessPath::IndexOnlyScan { .. }, _) => "analyze, timing off, summary off, ",
            _ => "",
        };
        let statement = if by_name {
            execute_sql(&self.statement, &self.arguments)
        } else {
            with_literals(&self.sql, &self.arguments)
        };
        format!("explain ({analyze}format json, costs off) {statement}")
    }

    /// Compares the result of [`Self::explain_sql`] with the expected access path.
    pub fn judge(&self, json: &str) -> Finding {
        let Ok(document) = serde_json::from_str::<Value>(json) else {
            let outline = "the plan is not valid JSON".to_owned();
            return Finding { is_expected: false, outline, storage: None, first: None };
        };
        let nodes = nodes(document.pointer("/0/Plan").unwrap_or(&Value::Null));
        Finding {
            is_expected: self.matches(&nodes),
            outline: outline(&nodes),
            storage: self.storage(&document),
            first: None,
        }
    }

    /// Returns the totals that DIST adds to the plan. DIST omits zeros.
    fn storage(&self, document: &Value) -> Option<StorageRequests> {
        let total = |label: &str| document.get(0)?.get(label)?.as_u64();
        Some(StorageRequests {
            reads: total("Storage Read Requests")?,
            rows_scanned: total("Storage Rows Scanned"),
            rows: self.rows,
        })
    }

    fn matches(&self, nodes: &[Node<'_>]) -> bool {
        if !self.parallel_allowed && nodes.iter().any(Node::is_parallel) {
            return false;
        }
        if self.changes_without_reading(nodes) {
            return true;
        }
        let scans: Vec<_> = nodes.iter().filter(|node| node.reads_a_table()).collect();
        let changed = nodes.iter().map(|node| node.text("Operation")).find(|text| !text.is_empty());
        let by_index = |kind, operation: Option<&str>, index| {
            changed == operation && matches!(*scans, [scan] if scan.is_by_index(kind, index))
        };
        match &self.expected {
            AccessPath::IndexScan(index) => by_index("Index Scan", None, index),
            AccessPath::UpdateByIndex(index) => by_index("Index Scan", Some("Update"), index),
            AccessPath::DeleteByIndex(index) => by_index("Index Scan", Some("Delete"), index),
            AccessPath::IndexOnlyScan { index, heap_fetches_allowed } => {
                by_index("Index Only Scan", None, index)
                    && (*heap_fetches_allowed || nodes.iter().all(|node| node.heap_fetches() == 0))
            }
            AccessPath::BitmapScan(index) => is_bitmap_scan(&scans, index),
            AccessPath::ByIndex(index) => {
                by_index("Index Scan", None, index) || is_bitmap_scan(&scans, index)
            }
            AccessPath::SeqScan { table } => {
                matches!(*scans, [scan] if scan.is("Seq Scan", table, ""))
            }
            AccessPath::JoinByIndex([one, other]) => {
                let are = |[first, second]: [&Node<'_>; 2]| {
                    first.is_by_index("Index Scan", one) && second.is_by_index("Index Scan", other)
                };
                matches!(*scans, [one, other] if are([one, other]) || are([other, one]))
            }
            AccessPath::Insert { table } => {
                let is_insert = |node: &Node<'_>| {
                    node.text("Operation") == "Insert" && node.text("Relation Name") == table
                };
                scans.is_empty() && nodes.first().is_some_and(is_insert)
            }
        }
    }

    /// Whether the plan changes a row with a known primary key without reading it.
    fn changes_without_reading(&self, nodes: &[Node<'_>]) -> bool {
        let (operation, index) = match &self.expected {
            AccessPath::UpdateByIndex(index) => ("Update", index),
            AccessPath::DeleteByIndex(index) => ("Delete", index),
            _ => return false,
        };
        let [change, result] = nodes else {
            return false;
        };
        self.dialect.has(Feature::BlindChanges)
            && index.name.ends_with("_pkey")
            && change.text("Operation") == operation
            && change.text("Relation Name") == index.table
            && result.kind() == "Result"
    }
}

/// Returns the statement that executes a prepared statement.
fn execute_sql(name: &str, arguments: &[String]) -> String {
    let arguments = match arguments {
        [] => String::new(),
        arguments => format!("({})", arguments.join(", ")),
    };
    format!("execute \"{name}\"{arguments}")
}

/// A statement that a session has executed, with the values of that execution. Nothing is known about its access path,
/// except that it must stay the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Name of the statement.
    pub statement: String,
    /// The EXECUTE of the prepared statement, whose plan is custom or generic.
    by_name: Option<String>,
    /// The text of the statement, with the values as literals.
    text: String,
    /// The plan that was found first.
    first: Option<String>,
}

impl Executed {
    /// Creates an execution of a statement that was sent as this text.
    pub fn as_text(statement: &str, text: String) -> Self {
        Self { statement: statement.to_owned(), by_name: None, text, first: None }
    }

    /// Creates an execution with these values, as SQL literals, of a statement that is prepared if `has_name`.
    pub fn with_values(statement: &str, sql: &str, values: &[String], has_name: bool) -> Self {
        let by_name = has_name.then(|| execute_sql(statement, values));
        Self { by_name, ..Self::as_text(statement, with_literals(sql, values)) }
    }

    /// Returns the EXPLAIN statement for the plan that the session would use now.
    pub fn explain_sql(&self) -> String {
        let statement = self.by_name.as_ref().unwrap_or(&self.text);
        format!("explain (format json, costs off) {statement}")
    }

    /// Explains the text from now on, because the prepared statement does not exist. Returns whether this is a change.
    pub fn forget_name(&mut self) -> bool {
        self.by_name.take().is_some()
    }

    /// Compares the result of [`Self::explain_sql`] with the first one; `None` if it is not a plan.
    pub fn judge(&mut self, json: &str) -> Option<Finding> {
        let document: Value = serde_json::from_str(json).ok()?;
        // The conditions contain the values, and differ between custom and generic plans.
        let nodes = nodes(document.pointer("/0/Plan")?);
        let outline = nodes.iter().map(Node::shape).collect::<Vec<_>>().join("\n");
        let first = self.first.get_or_insert_with(|| outline.clone()).clone();
        Some(Finding { is_expected: first == outline, outline, storage: None, first: Some(first) })
    }
}

/// Whether the only table read is by a bitmap of one or several ranges of the index.
fn is_bitmap_scan(scans: &[&Node<'_>], index: &Index) -> bool {
    let [heap, ranges @ ..] = scans else {
        return false;
    };
    let is_range =
        |scan: &&Node<'_>| scan.is("Bitmap Index Scan", "", &index.name) && scan.has_condition();
    heap.is("Bitmap Heap Scan", &index.table, "")
        && !ranges.is_empty()
        && ranges.iter().all(is_range)
}

/// Formats a plan of EXPLAIN (FORMAT JSON), one node per line.
pub(super) fn outline(nodes: &[Node<'_>]) -> String {
    nodes.iter().map(Node::line).collect::<Vec<_>>().join("\n")
}

/// A node of a plan with its depth.
pub(super) struct Node<'a> {
    depth: usize,
    pub(super) fields: &'a Value,
    /// Whether it is a part of a task of Citus: its tables and indexes belong to a shard.
    of_shard: bool,
}

/// Returns the nodes of a plan, each before those below it.
pub(super) fn nodes(root: &Value) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    collect(root, 0, false, &mut nodes);
    nodes
}

fn collect<'a>(fields: &'a Value, depth: usize, of_shard: bool, nodes: &mut Vec<Node<'a>>) {
    if !fields.is_object() || depth > DEPTH_MAX {
        return;
    }
    let list = |fields: &'a Value, name: &str| {
        fields.get(name).and_then(Value::as_array).into_iter().flatten()
    };
    // Citus executes a task on the node of a shard. The plan of a single task is the plan of the statement.
    let job = fields.pointer("/Distributed Query/Job").unwrap_or(&Value::Null);
    let is_single = job.get("Task Count").and_then(Value::as_u64) == Some(1);
    if !is_single {
        nodes.push(Node { depth, fields, of_shard });
    }
    for task in list(job, "Tasks") {
        let plans = list(task, "Remote Plan").filter_map(Value::as_array).flatten();
        for plan in plans.filter_map(|plan| plan.get("Plan")) {
            collect(plan, depth + usize::from(!is_single), true, nodes);
        }
    }
    for child in list(fields, "Plans") {
        collect(child, depth + 1, of_shard, nodes);
    }
}

impl<'a> Node<'a> {
    fn text(&self, field: &str) -> &'a str {
        let text = self.fields.get(field).and_then(Value::as_str).unwrap_or("");
        if self.of_shard && field.ends_with(" Name") {
            // `accounts_102008` is a shard of `accounts`.
            let name = text.trim_end_matches(|last: char| last.is_ascii_digit());
            return name.strip_suffix('_').unwrap_or(text);
        }
        text
    }

    /// Whether it is a node of this type on a table and an index.
    fn is(&self, kind: &str, table: &str, index: &str) -> bool {
        self.kind() == kind
            && self.text("Relation Name") == table
            && self.text("Index Name") == index
    }

    /// Whether it finds rows by a condition on the index.
    fn is_by_index(&self, kind: &str, index: &Index) -> bool {
        self.is(kind, &index.table, &index.name) && self.has_condition()
    }

    fn has_condition(&self) -> bool {
        !self.text("Index Cond").is_empty()
    }

    /// Returns the node type. Older releases of YugabyteDB name a scan of the whole table differently.
    fn kind(&self) -> &'a str {
        match self.text("Node Type") {
            "YB Seq Scan" => "Seq Scan",
            other => other,
        }
    }

    /// Returns the number of rows that an index-only scan fetched from the table.
    fn heap_fetches(&self) -> u64 {
        self.fields.get("Heap Fetches").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns whether the node accesses a table or an index, regardless of its type. This includes bitmap
    /// index scans but not scans of another node's result.
    fn reads_a_table(&self) -> bool {
        let kind = self.text("Node Type");
        kind != "ModifyTable"
            && (!self.text("Relation Name").is_empty() || !self.text("Index Name").is_empty())
    }

    /// Returns whether parallel workers execute the node or the nodes below it.
    fn is_parallel(&self) -> bool {
        matches!(self.text("Node Type"), "Gather" | "Gather Merge") || self.is_parallel_aware()
    }

    fn is_parallel_aware(&self) -> bool {
        self.fields.get("Parallel Aware").and_then(Value::as_bool) == Some(true)
    }

    /// Returns the node without its conditions.
    fn shape(&self) -> String {
        let mut line = self.with_fields(&[(" using ", "Index Name"), (" on ", "Relation Name")]);
        if self.text("Node Type").starts_with("Index") && !self.has_condition() {
            line.push_str(", whole index");
        }
        line
    }

    fn line(&self) -> String {
        let mut line = self.with_fields(&[
            (" using ", "Index Name"),
            (" on ", "Relation Name"),
            (", ", "Index Cond"),
            (", filter ", "Filter"),
        ]);
        if self.heap_fetches() > 0 {
            let _ = write!(line, ", Heap Fetches: {}", self.heap_fetches());
        }
        line
    }

    /// Returns the node with these of its fields, each after its label.
    fn with_fields(&self, fields: &[(&str, &str)]) -> String {
        let mut line = "  ".repeat(self.depth);
        // As in the text format of EXPLAIN.
        if self.is_parallel_aware() {
            line.push_str("Parallel ");
        }
        line.push_str(match self.text("Operation") {
            "" => self.text("Node Type"),
            operation => operation,
        });
        for (label, field) in fields {
            if !self.text(field).is_empty() {
                let _ = write!(line, "{label}{}", self.text(field));
            }
        }
        line
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
