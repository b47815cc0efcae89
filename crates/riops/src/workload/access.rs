//! Access paths: compares the expected access path of a statement with the plan of the server.
//!
//! Pure: parses the output of EXPLAIN (FORMAT JSON). It must not talk to the server.

use std::fmt;

use serde_json::Value;

use super::transaction::with_literals;
use crate::record::StorageRequests;
use crate::server::{Dialect, Feature};

/// The expected access path of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessPath {
    /// The index finds the keys, and each row is fetched from the table.
    IndexScan {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// All columns come from the index.
    IndexOnlyScan {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
        /// Whether heap fetches of recently updated rows are allowed.
        heap_fetches_allowed: bool,
    },
    /// The index finds the rows to update.
    UpdateByIndex {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The index finds the rows to delete.
    DeleteByIndex {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// A bitmap combines several ranges of the index.
    BitmapScan {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The index finds the rows, by an index scan or a bitmap heap scan.
    ByIndex {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The whole table is read sequentially.
    SeqScan {
        /// Name of the table.
        table: String,
    },
    /// Both tables of a join are read through their indexes.
    JoinByIndex {
        /// Both tables.
        tables: [String; 2],
        /// One index of each table.
        indexes: [String; 2],
    },
    /// Rows are inserted without reading a table.
    Insert {
        /// Name of the table.
        table: String,
    },
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, table, index) = self.parts();
        match self {
            Self::UpdateByIndex { .. } => {
                write!(formatter, "Update on {table}, {kind} using {index}")
            }
            Self::DeleteByIndex { .. } => {
                write!(formatter, "Delete on {table}, {kind} using {index}")
            }
            Self::SeqScan { .. } => write!(formatter, "{kind} on {table}"),
            Self::ByIndex { .. } => {
                write!(formatter, "Index Scan or Bitmap Heap Scan using {index} on {table}")
            }
            Self::JoinByIndex { tables: [one, other], indexes: [index, other_index] } => {
                write!(
                    formatter,
                    "join of {one} and {other}, {kind} using {index} and {other_index}"
                )
            }
            Self::Insert { .. } => write!(formatter, "Insert on {table}, no table read"),
            Self::IndexOnlyScan { heap_fetches_allowed: true, .. } => {
                write!(formatter, "{kind} using {index} on {table}, heap fetches allowed")
            }
            _ => write!(formatter, "{kind} using {index} on {table}"),
        }
    }
}

impl AccessPath {
    /// Returns the operation on the rows that it finds.
    fn change(&self) -> Option<&'static str> {
        match self {
            Self::UpdateByIndex { .. } => Some("Update"),
            Self::DeleteByIndex { .. } => Some("Delete"),
            _ => None,
        }
    }

    /// Returns the node type of the scan, the table and the index.
    fn parts(&self) -> (&'static str, &str, &str) {
        match self {
            Self::IndexScan { table, index }
            | Self::ByIndex { table, index }
            | Self::UpdateByIndex { table, index }
            | Self::DeleteByIndex { table, index } => ("Index Scan", table, index),
            Self::BitmapScan { table, index } => ("Bitmap Heap Scan", table, index),
            Self::SeqScan { table } => ("Seq Scan", table, ""),
            Self::JoinByIndex { tables: [table, _], indexes: [index, _] } => {
                ("Index Scan", table, index)
            }
            Self::IndexOnlyScan { table, index, .. } => ("Index Only Scan", table, index),
            Self::Insert { table } => ("", table, ""),
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

/// Maximum depth of a plan, greater than that of any statement of riops. Plans are untrusted input.
const DEPTH_MAX: usize = 32;

impl Access {
    /// Returns the EXPLAIN statement for the plan that this session would use now. With `by_name` it
    /// explains the prepared statement, with a custom or generic plan; otherwise the text with literals for
    /// the parameters, as the simple protocol sends it and as an unnamed statement is planned.
    #[must_use]
    pub fn explain_sql(&self, by_name: bool) -> String {
        let analyze = match (&self.expected, self.dialect.has(Feature::StorageCounters)) {
            // ANALYZE would change rows.
            (
                AccessPath::UpdateByIndex { .. }
                | AccessPath::DeleteByIndex { .. }
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
    #[must_use]
    pub fn judge(&self, json: &str) -> Finding {
        let Ok(document) = serde_json::from_str::<Value>(json) else {
            let outline = "the plan is not valid JSON".to_owned();
            return Finding { is_expected: false, outline, storage: None, first: None };
        };
        let root = document.get(0).and_then(|first| first.get("Plan")).unwrap_or(&Value::Null);
        let mut nodes = Vec::new();
        collect(root, 0, &mut nodes);
        let is_expected = self.matches(&nodes);
        Finding {
            is_expected,
            outline: outline(root),
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
        let (kind, table, index) = self.expected.parts();
        let mut scans = nodes.iter().filter(|node| node.reads_a_table());
        let is = |node: &Node<'_>, kind: &str, table: &str, index: &str| {
            node.kind() == kind
                && node.text("Relation Name") == table
                && node.text("Index Name") == index
        };
        let by_index = |node: &Node<'_>| !node.text("Index Cond").is_empty();
        match &self.expected {
            AccessPath::ByIndex { table, index } => {
                let (table, index) = (table.clone(), index.clone());
                let either = |expected| Self { expected, ..self.clone() }.matches(nodes);
                return either(AccessPath::IndexScan {
                    table: table.clone(),
                    index: index.clone(),
                }) || either(AccessPath::BitmapScan { table, index });
            }
            AccessPath::Insert { .. } => {
                let inserts = nodes.first().is_some_and(|node| {
                    node.text("Operation") == "Insert" && node.text("Relation Name") == table
                });
                return inserts && scans.next().is_none();
            }
            AccessPath::SeqScan { .. } => {
                let expected_scan = scans.next().is_some_and(|scan| is(scan, kind, table, ""));
                return expected_scan && scans.next().is_none();
            }
            AccessPath::BitmapScan { .. } => {
                let expected_scan = scans.next().is_some_and(|scan| is(scan, kind, table, ""));
                let ranges: Vec<_> = scans.collect();
                let range =
                    |node: &&Node<'_>| is(node, "Bitmap Index Scan", "", index) && by_index(node);
                return expected_scan && !ranges.is_empty() && ranges.iter().all(range);
            }
            AccessPath::JoinByIndex { tables: [_, other], indexes: [_, other_index] } => {
                let scans: Vec<_> = scans.filter(|scan| by_index(scan)).collect();
                let one = |scan: &Node<'_>| is(scan, kind, table, index);
                let two = |scan: &Node<'_>| is(scan, kind, other, other_index);
                return match scans.as_slice() {
                    [first, second] => {
                        nodes.iter().filter(|node| node.reads_a_table()).count() == 2
                            && (one(first) && two(second) || two(first) && one(second))
                    }
                    _ => false,
                };
            }
            _ => {}
        }
        let expected_scan =
            scans.next().is_some_and(|scan| is(scan, kind, table, index) && by_index(scan));
        let operation =
            nodes.iter().map(|node| node.text("Operation")).find(|text| !text.is_empty());
        let has_heap_fetches = nodes.iter().any(|node| node.heap_fetches() > 0);
        let heap_fetches_allowed =
            !matches!(self.expected, AccessPath::IndexOnlyScan { heap_fetches_allowed: false, .. });
        expected_scan
            && scans.next().is_none()
            && operation == self.expected.change()
            && (heap_fetches_allowed || !has_heap_fetches)
    }

    /// Whether the plan changes a row with a known primary key without reading it.
    fn changes_without_reading(&self, nodes: &[Node<'_>]) -> bool {
        let (_, table, index) = self.expected.parts();
        let (Some(operation), [change, result]) = (self.expected.change(), nodes) else {
            return false;
        };
        self.dialect.has(Feature::BlindChanges)
            && index.ends_with("_pkey")
            && change.text("Operation") == operation
            && change.text("Relation Name") == table
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
    #[must_use]
    pub fn as_text(statement: &str, text: String) -> Self {
        Self { statement: statement.to_owned(), by_name: None, text, first: None }
    }

    /// Creates an execution with these values, as SQL literals, of a statement that is prepared if `has_name`.
    #[must_use]
    pub fn with_values(statement: &str, sql: &str, values: &[String], has_name: bool) -> Self {
        let by_name = has_name.then(|| execute_sql(statement, values));
        Self { by_name, ..Self::as_text(statement, with_literals(sql, values)) }
    }

    /// Returns the EXPLAIN statement for the plan that the session would use now.
    #[must_use]
    pub fn explain_sql(&self) -> String {
        let statement = self.by_name.as_ref().unwrap_or(&self.text);
        format!("explain (format json, costs off) {statement}")
    }

    /// Explains the text from now on, because the prepared statement does not exist. Returns whether this is a change.
    pub fn forget_name(&mut self) -> bool {
        self.by_name.take().is_some()
    }

    /// Compares the result of [`Self::explain_sql`] with the first one; `None` if it is no plan.
    pub fn judge(&mut self, json: &str) -> Option<Finding> {
        let document: Value = serde_json::from_str(json).ok()?;
        let mut nodes = Vec::new();
        collect(document.get(0)?.get("Plan")?, 0, &mut nodes);
        // The conditions contain the values, and differ between custom and generic plans.
        let outline = nodes.iter().map(Node::shape).collect::<Vec<_>>().join("\n");
        let first = self.first.get_or_insert_with(|| outline.clone()).clone();
        Some(Finding { is_expected: first == outline, outline, storage: None, first: Some(first) })
    }
}

/// Formats a plan of EXPLAIN (FORMAT JSON), one node per line.
pub(super) fn outline(root: &Value) -> String {
    let mut nodes = Vec::new();
    collect(root, 0, &mut nodes);
    nodes.iter().map(Node::line).collect::<Vec<_>>().join("\n")
}

/// A node of a plan with its depth.
struct Node<'a> {
    depth: usize,
    fields: &'a Value,
    /// Whether it is a part of a task of Citus: its tables and indexes are those of a shard.
    of_shard: bool,
}

fn collect<'a>(fields: &'a Value, depth: usize, nodes: &mut Vec<Node<'a>>) {
    collect_nodes(fields, (depth, false), nodes);
}

fn collect_nodes<'a>(
    fields: &'a Value,
    (depth, of_shard): (usize, bool),
    nodes: &mut Vec<Node<'a>>,
) {
    if !fields.is_object() || depth > DEPTH_MAX {
        return;
    }
    let list = |fields: &'a Value, name: &str| {
        fields.get(name).and_then(Value::as_array).into_iter().flatten()
    };
    // Citus executes a task on the node of a shard. The plan of a single one is that of the statement.
    let job = fields.pointer("/Distributed Query/Job").unwrap_or(&Value::Null);
    let is_single = job.get("Task Count").and_then(Value::as_u64) == Some(1);
    if !is_single {
        nodes.push(Node { depth, fields, of_shard });
    }
    for task in list(job, "Tasks") {
        let plans = list(task, "Remote Plan").filter_map(Value::as_array).flatten();
        for plan in plans.filter_map(|plan| plan.get("Plan")) {
            collect_nodes(plan, (depth + usize::from(!is_single), true), nodes);
        }
    }
    for child in list(fields, "Plans") {
        collect_nodes(child, (depth + 1, of_shard), nodes);
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
        if self.text("Node Type").starts_with("Index") && self.text("Index Cond").is_empty() {
            line.push_str(", whole index");
        }
        line
    }

    fn line(&self) -> String {
        use std::fmt::Write as _;
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
        use std::fmt::Write as _;
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
