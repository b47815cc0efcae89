//! Access paths: compares the expected access path of a statement with the plan of the server.
//!
//! Pure: parses the output of EXPLAIN (FORMAT JSON). It must not talk to the server.

use std::fmt;

use serde_json::Value;

use super::transaction::with_literals;
use crate::server::Flavor;

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
    /// Flavor of the server that executes EXPLAIN.
    pub flavor: Flavor,
    /// Whether the server may execute the statement with parallel workers. They would do work that no session
    /// of the run accounts for.
    pub parallel_allowed: bool,
}

/// Requests to the storage nodes of `YugabyteDB` by one execution of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageRequests {
    /// Read requests.
    pub reads: u64,
    /// Rows scanned by these requests, if the server counts them.
    pub rows_scanned: Option<u64>,
    /// Rows that the statement reads.
    pub rows: u64,
}

/// Result of comparing a plan with the expected access path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether the access path is as expected.
    pub held: bool,
    /// The plan, one node per line.
    pub outline: String,
    /// Requests to the storage during the execution, if the server reports them.
    pub storage: Option<StorageRequests>,
}

/// Maximum depth of a plan, greater than that of any statement of riops. Plans are untrusted input.
const DEPTH_MAX: usize = 32;

impl Access {
    /// Returns the EXPLAIN statement for the plan that this session would use now. With `by_name` it
    /// explains the prepared statement, with a custom or generic plan; otherwise the text with literals for
    /// the parameters, as the simple protocol sends it and as an unnamed statement is planned.
    #[must_use]
    pub fn explain_sql(&self, by_name: bool) -> String {
        let analyze = match (&self.expected, self.flavor) {
            // ANALYZE would change rows.
            (
                AccessPath::UpdateByIndex { .. }
                | AccessPath::DeleteByIndex { .. }
                | AccessPath::Insert { .. },
                _,
            ) => "",
            // Only DIST shows the requests to the storage.
            (_, Flavor::YugabyteDb) => "analyze, dist, ",
            // Only ANALYZE shows the heap fetches of an index-only scan.
            (AccessPath::IndexOnlyScan { .. }, _) => "analyze, timing off, summary off, ",
            _ => "",
        };
        let statement = if by_name && self.arguments.is_empty() {
            format!("execute \"{}\"", self.statement)
        } else if by_name {
            format!("execute \"{}\"({})", self.statement, self.arguments.join(", "))
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
            return Finding { held: false, outline, storage: None };
        };
        let root = document.get(0).and_then(|first| first.get("Plan")).unwrap_or(&Value::Null);
        let mut nodes = Vec::new();
        collect(root, 0, &mut nodes);
        let outline = outline(root);
        Finding { held: self.matches(&nodes), outline, storage: self.storage(&document) }
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
        let (kind, table, index) = self.expected.parts();
        let mut scans = nodes.iter().filter(|node| node.reads_a_table());
        let is = |node: &Node<'_>, kind: &str, table: &str, index: &str| {
            node.text("Node Type") == kind
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
        let expected_operation = match self.expected {
            AccessPath::UpdateByIndex { .. } => Some("Update"),
            AccessPath::DeleteByIndex { .. } => Some("Delete"),
            _ => None,
        };
        let has_heap_fetches = nodes.iter().any(|node| node.heap_fetches() > 0);
        let heap_fetches_allowed =
            !matches!(self.expected, AccessPath::IndexOnlyScan { heap_fetches_allowed: false, .. });
        expected_scan
            && scans.next().is_none()
            && operation == expected_operation
            && (heap_fetches_allowed || !has_heap_fetches)
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
}

fn collect<'a>(fields: &'a Value, depth: usize, nodes: &mut Vec<Node<'a>>) {
    if !fields.is_object() || depth > DEPTH_MAX {
        return;
    }
    nodes.push(Node { depth, fields });
    for child in fields.get("Plans").and_then(Value::as_array).into_iter().flatten() {
        collect(child, depth + 1, nodes);
    }
}

impl<'a> Node<'a> {
    fn text(&self, field: &str) -> &'a str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or("")
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

    fn line(&self) -> String {
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
        for (label, field) in [
            (" using ", "Index Name"),
            (" on ", "Relation Name"),
            (", ", "Index Cond"),
            (", filter ", "Filter"),
        ] {
            if !self.text(field).is_empty() {
                let _ = write!(line, "{label}{}", self.text(field));
            }
        }
        if self.heap_fetches() > 0 {
            let _ = write!(line, ", Heap Fetches: {}", self.heap_fetches());
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn access(expected: AccessPath) -> Access {
        Access {
            statement: "read_0001".to_owned(),
            sql: "select $1 where k < $2".to_owned(),
            arguments: vec!["1".to_owned(), "10".to_owned()],
            rows: 10,
            expected,
            flavor: Flavor::PostgreSql,
            parallel_allowed: false,
        }
    }

    fn names() -> (String, String) {
        ("rows_0001".to_owned(), "rows_0001_asc_mykey".to_owned())
    }

    fn index_scan() -> Access {
        let (table, index) = names();
        access(AccessPath::IndexScan { table, index })
    }

    fn scan(kind: &str) -> Value {
        json!({"Node Type": kind, "Relation Name": "rows_0001", "Index Name": "rows_0001_asc_mykey",
               "Index Cond": "((mykey >= $1) AND (mykey <= $2))"})
    }

    fn plan(inner: &Value) -> String {
        json!([{"Plan": {"Node Type": "Aggregate", "Plans": [inner]}}]).to_string()
    }

    #[test]
    fn recognizes_the_expected_scan() {
        let finding = index_scan().judge(&plan(&scan("Index Scan")));
        assert!(finding.held);
        assert_eq!(
            finding.outline,
            "Aggregate\n  Index Scan using rows_0001_asc_mykey on rows_0001, ((mykey >= $1) AND (mykey <= $2))"
        );
    }

    #[test]
    fn rejects_every_other_access_path() {
        let seq = json!({"Node Type": "Seq Scan", "Relation Name": "rows_0001", "Filter": "(mykey >= 1)"});
        let bitmap = json!({"Node Type": "Bitmap Heap Scan", "Relation Name": "rows_0001",
            "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "rows_0001_asc_mykey", "Index Cond": "x"}]});
        let mut other_index = scan("Index Scan");
        other_index["Index Name"] = json!("other");
        let mut whole_index = scan("Index Scan");
        whole_index.as_object_mut().unwrap().remove("Index Cond");
        let two = json!({"Node Type": "Append", "Plans": [scan("Index Scan"), scan("Index Scan")]});
        for inner in
            [seq, bitmap, other_index, whole_index, two, scan("Index Only Scan"), json!(null)]
        {
            assert!(!index_scan().judge(&plan(&inner)).held, "{inner}");
        }
        assert!(!index_scan().judge("Index Scan").held);
    }

    #[test]
    fn rejects_parallel_plans_unless_allowed() {
        let mut aware = scan("Index Scan");
        aware["Parallel Aware"] = json!(true);
        let over = |kind: &str, below: Value| json!({"Node Type": kind, "Plans": [below]});
        let serial = Access { parallel_allowed: false, ..index_scan() };
        let any = Access { parallel_allowed: true, ..index_scan() };
        for inner in [
            over("Gather", scan("Index Scan")),
            over("Gather Merge", scan("Index Scan")),
            over("Gather", aware.clone()),
            aware.clone(),
        ] {
            assert!(!serial.judge(&plan(&inner)).held, "{inner}");
            assert!(any.judge(&plan(&inner)).held, "{inner}");
        }
        let outline = serial.judge(&plan(&over("Gather", aware.clone()))).outline;
        assert!(
            outline.starts_with("Aggregate\n  Gather\n    Parallel Index Scan using"),
            "{outline}"
        );
        aware["Parallel Aware"] = json!(false);
        assert!(serial.judge(&plan(&aware)).held);
    }

    #[test]
    fn an_index_only_scan_must_not_fetch_from_the_heap_unless_allowed() {
        let (table, index) = names();
        let with = |heap_fetches_allowed| {
            let (table, index) = (table.clone(), index.clone());
            access(AccessPath::IndexOnlyScan { table, index, heap_fetches_allowed })
        };
        assert!(with(false).judge(&plan(&scan("Index Only Scan"))).held);
        assert!(!with(false).judge(&plan(&scan("Index Scan"))).held);
        let mut fetching = scan("Index Only Scan");
        fetching["Heap Fetches"] = json!(7);
        let finding = with(false).judge(&plan(&fetching));
        assert!(!finding.held && finding.outline.ends_with(", Heap Fetches: 7"));
        assert!(with(true).judge(&plan(&fetching)).held);
    }

    #[test]
    fn an_update_must_find_its_rows_through_the_index() {
        let (table, index) = names();
        let access = access(AccessPath::UpdateByIndex { table, index });
        let update = json!({"Node Type": "Aggregate", "Plans": [
            {"Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "rows_0001",
             "Plans": [scan("Index Scan")]},
            {"Node Type": "CTE Scan", "CTE Name": "updated"}]});
        assert!(access.judge(&plan(&update)).held);
        assert!(!access.judge(&plan(&scan("Index Scan"))).held);
        assert!(!index_scan().judge(&plan(&update)).held);
    }

    #[test]
    fn reads_the_storage_requests_of_yugabytedb() {
        let access = Access { flavor: Flavor::YugabyteDb, ..index_scan() };
        assert_eq!(
            access.explain_sql(true),
            "explain (analyze, dist, format json, costs off) execute \"read_0001\"(1, 10)"
        );
        let mut node = scan("Index Scan");
        node["Storage Table Read Requests"] = json!(1);
        node["Storage Index Read Requests"] = json!(1);
        let document = json!([{"Plan": {"Node Type": "Aggregate", "Plans": [node]},
            "Storage Read Requests": 2, "Storage Rows Scanned": 20}]);
        let finding = access.judge(&document.to_string());
        assert!(finding.held);
        let expected = StorageRequests { reads: 2, rows_scanned: Some(20), rows: 10 };
        assert_eq!(finding.storage, Some(expected));
        // ANALYZE would execute the update.
        let (table, index) = names();
        let update = Access { expected: AccessPath::UpdateByIndex { table, index }, ..access };
        assert!(!update.explain_sql(true).contains("analyze"));
    }

    #[test]
    fn explains_the_prepared_statement_or_its_text() {
        assert_eq!(
            index_scan().explain_sql(true),
            "explain (format json, costs off) execute \"read_0001\"(1, 10)"
        );
        assert_eq!(
            index_scan().explain_sql(false),
            "explain (format json, costs off) select 1 where k < 10"
        );
    }

    #[test]
    fn distinguishes_the_access_paths_of_sysbench_statements() {
        let (table, index) = names();
        let modify = |operation: &str| {
            json!({"Node Type": "ModifyTable", "Operation": operation, "Relation Name": table,
                "Plans": [scan("Index Scan")]})
        };
        let delete =
            access(AccessPath::DeleteByIndex { table: table.clone(), index: index.clone() });
        assert!(delete.judge(&plan(&modify("Delete"))).held);
        assert!(!delete.judge(&plan(&modify("Update"))).held);
        let seq = json!({"Node Type": "Seq Scan", "Relation Name": table});
        let whole = access(AccessPath::SeqScan { table: table.clone() });
        assert!(whole.judge(&plan(&seq)).held);
        assert!(!whole.judge(&plan(&scan("Index Scan"))).held);
        let range =
            json!({"Node Type": "Bitmap Index Scan", "Index Name": index, "Index Cond": "x"});
        let heap = |below: Value| json!({"Node Type": "Bitmap Heap Scan", "Relation Name": table, "Plans": [below]});
        let bitmap = access(AccessPath::BitmapScan { table: table.clone(), index: index.clone() });
        let several = json!({"Node Type": "BitmapOr", "Plans": [range, range]});
        assert!(bitmap.judge(&plan(&heap(several))).held);
        assert!(bitmap.judge(&plan(&heap(range.clone()))).held);
        let mut other = range;
        other["Index Name"] = json!("other");
        assert!(!bitmap.judge(&plan(&heap(other))).held);
        assert!(!bitmap.judge(&plan(&seq)).held);
        let join = access(AccessPath::JoinByIndex {
            tables: [table.clone(), "u".to_owned()],
            indexes: [index, "u_pkey".to_owned()],
        });
        let mut inner = scan("Index Scan");
        (inner["Relation Name"], inner["Index Name"]) = (json!("u"), json!("u_pkey"));
        let both =
            |one: Value, other: Value| json!({"Node Type": "Merge Join", "Plans": [one, other]});
        assert!(join.judge(&plan(&both(inner.clone(), scan("Index Scan")))).held);
        assert!(!join.judge(&plan(&both(inner.clone(), inner.clone()))).held);
        assert!(!join.judge(&plan(&both(inner, seq))).held);
    }

    #[test]
    fn an_insert_must_not_read_a_table() {
        let insert = access(AccessPath::Insert { table: "t".to_owned() });
        let plan = |table: &str, below: Value| {
            let node = json!({"Node Type": "ModifyTable", "Operation": "Insert",
                "Relation Name": table, "Plans": [below]});
            json!([{ "Plan": node }]).to_string()
        };
        let values = json!({"Node Type": "Values Scan", "Alias": "*VALUES*"});
        let scan = json!({"Node Type": "Seq Scan", "Relation Name": "u"});
        assert!(insert.judge(&plan("t", values.clone())).held);
        assert!(insert.judge(&plan("t", json!({"Node Type": "ProjectSet"}))).held);
        assert!(!insert.judge(&plan("other", values)).held);
        assert!(!insert.judge(&plan("t", scan)).held);
        // EXPLAIN does not execute the insert.
        assert!(insert.explain_sql(true).starts_with("explain (format json"));
    }
}
