//! What a select that runs once tells of itself: EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON). Pure.

use serde_json::Value;

use super::step::Step;
use crate::server::Flavor;
use crate::workload::access::{Access, AccessPath, Finding, outline};

/// Deeper plans than any of these statements has.
const DEPTH_MAX: usize = 32;

/// Blocks that a statement has touched, its parallel workers included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of EXPLAIN")]
pub struct StatementBuffers {
    pub shared_hit: u64,
    pub shared_read: u64,
    pub shared_dirtied: u64,
    pub shared_written: u64,
    pub temp_read: u64,
    pub temp_written: u64,
}

/// What the server says of a statement's execution.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementPlan {
    /// The plan, one node a line.
    pub outline: String,
    /// The server's own measure, without the way to the client.
    pub execution_ms: Option<f64>,
    /// Its blocks.
    pub buffers: StatementBuffers,
    /// Rows that its scan of the table gave.
    pub rows_found: f64,
    /// Rows that this scan looked at and left out.
    pub rows_left_out: f64,
    /// How often the scan ran: once, or once for each process that took part.
    pub scans: f64,
}

impl StatementPlan {
    /// Rows that its scan of the table has looked at.
    #[must_use]
    pub fn rows_looked_at(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count, which EXPLAIN gives as an average of processes"
        )]
        let rows = (self.rows_found + self.rows_left_out).round() as u64;
        rows
    }

    /// Reads the answer; `None` where it is none.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(json).ok()?;
        let first = document.get(0)?;
        let root = first.get("Plan")?;
        let blocks = |name: &str| root.get(name).and_then(Value::as_u64).unwrap_or(0);
        let scan = table_scan(root, 0)?;
        let number = |name: &str| scan.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let scans = number("Actual Loops");
        Some(Self {
            outline: outline(root),
            execution_ms: first.get("Execution Time").and_then(Value::as_f64),
            buffers: StatementBuffers {
                shared_hit: blocks("Shared Hit Blocks"),
                shared_read: blocks("Shared Read Blocks"),
                shared_dirtied: blocks("Shared Dirtied Blocks"),
                shared_written: blocks("Shared Written Blocks"),
                temp_read: blocks("Temp Read Blocks"),
                temp_written: blocks("Temp Written Blocks"),
            },
            rows_found: number("Actual Rows") * scans,
            rows_left_out: number("Rows Removed by Filter") * scans,
            scans,
        })
    }
}

/// The node that reads the table itself, and not an index alone.
fn table_scan(node: &Value, depth: usize) -> Option<&Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if node.get("Relation Name").is_some() {
        return Some(node);
    }
    node.get("Plans")?.as_array()?.iter().find_map(|child| table_scan(child, depth + 1))
}

/// What a step promises of its plan; before CLUSTER the planner may take what it likes for the one name.
fn promise(step: Step) -> Option<AccessPath> {
    let (table, index) = ("settings_loop".to_owned(), "by_name".to_owned());
    match step {
        Step::SelectR => Some(AccessPath::SeqScan { table }),
        Step::SelectU2 | Step::SelectC2 => Some(AccessPath::ByIndex { table, index }),
        _ => None,
    }
}

impl Step {
    /// What it promises, where it promises anything.
    #[must_use]
    pub fn access(self) -> Option<Access> {
        Some(Access {
            statement: self.key().to_owned(),
            sql: String::new(),
            arguments: Vec::new(),
            rows: 1,
            expected: promise(self)?,
            flavor: Flavor::PostgreSql,
        })
    }

    /// Judges the answer to its EXPLAIN.
    #[must_use]
    pub fn judge(self, json: &str) -> Option<Finding> {
        Some(self.access()?.judge(json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITMAP: &str = r#"[{"Plan": {"Node Type": "Aggregate", "Shared Hit Blocks": 4, "Shared Read Blocks": 12,
        "Plans": [{"Node Type": "Bitmap Heap Scan", "Relation Name": "settings_loop", "Actual Rows": 1251,
                   "Actual Loops": 1, "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "by_name",
                   "Index Cond": "(name = 'shared_buffers'::text)"}]}]}, "Execution Time": 3.25}]"#;
    const PARALLEL: &str = r#"[{"Plan": {"Node Type": "Limit", "Shared Hit Blocks": 0, "Shared Read Blocks": 900,
        "Plans": [{"Node Type": "Gather", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "settings_loop",
                   "Actual Rows": 100.5, "Rows Removed by Filter": 20, "Actual Loops": 3}]}]}}]"#;

    #[test]
    fn a_plan_tells_its_blocks_and_rows() {
        let plan = StatementPlan::parse(BITMAP).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out, plan.scans), (1251.0, 0.0, 1.0));
        assert_eq!((plan.buffers.shared_hit, plan.buffers.shared_read), (4, 12));
        assert_eq!(plan.execution_ms, Some(3.25));
        let plan = StatementPlan::parse(PARALLEL).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out), (301.5, 60.0));
        assert_eq!(StatementPlan::parse("[]"), None);
    }

    #[test]
    fn the_indexed_select_may_use_either_scan_of_its_index_and_no_other() {
        assert!(Step::SelectU2.judge(BITMAP).unwrap().held);
        assert!(!Step::SelectU2.judge(PARALLEL).unwrap().held);
        assert!(Step::SelectR.judge(PARALLEL).unwrap().held);
        assert!(!Step::SelectR.judge(BITMAP).unwrap().held);
        assert_eq!(Step::SelectU1.judge(BITMAP), None);
    }
}
