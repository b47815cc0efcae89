//! Parses EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) of a select that runs once. Pure.

use serde_json::Value;

use super::step::Step;
use crate::record::{StatementBuffers, StatementPlan};
use crate::server::Dialect;
use crate::workload::access::{Access, AccessPath, Finding, outline};

/// Maximum depth of a plan, greater than that of any of these statements.
const DEPTH_MAX: usize = 32;

impl StatementPlan {
    /// Returns the number of rows read by the scan of the table.
    #[must_use]
    pub fn rows_scanned(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count, which EXPLAIN reports as an average per process"
        )]
        let rows = (self.rows_found + self.rows_left_out).round() as u64;
        rows
    }

    /// Parses the output of EXPLAIN. Returns `None` for any other text.
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

/// Returns the node that reads the table itself, not only an index.
fn table_scan(node: &Value, depth: usize) -> Option<&Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if node.get("Relation Name").is_some() {
        return Some(node);
    }
    node.get("Plans")?.as_array()?.iter().find_map(|child| table_scan(child, depth + 1))
}

/// Returns the expected access path of a step. Before CLUSTER any plan is allowed for the select of one name.
fn expected_path(step: Step) -> Option<AccessPath> {
    let (table, index) = ("settings_loop".to_owned(), "by_name".to_owned());
    match step {
        Step::SelectR => Some(AccessPath::SeqScan { table }),
        Step::SelectU2 | Step::SelectC2 => Some(AccessPath::ByIndex { table, index }),
        _ => None,
    }
}

impl Step {
    /// Returns its expected access path, if it has one.
    #[must_use]
    pub fn access(self) -> Option<Access> {
        Some(Access {
            statement: self.key().to_owned(),
            sql: String::new(),
            arguments: Vec::new(),
            rows: 1,
            expected: expected_path(self)?,
            dialect: Dialect::default(),
            // The benchmark measures the statements with the settings of the server.
            parallel_allowed: true,
        })
    }

    /// Compares the output of EXPLAIN with the expected access path.
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
    fn parses_blocks_and_rows() {
        let plan = StatementPlan::parse(BITMAP).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out, plan.scans), (1251.0, 0.0, 1.0));
        assert_eq!((plan.buffers.shared_hit, plan.buffers.shared_read), (4, 12));
        assert_eq!(plan.execution_ms, Some(3.25));
        let plan = StatementPlan::parse(PARALLEL).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out), (301.5, 60.0));
        assert_eq!(StatementPlan::parse("[]"), None);
    }

    #[test]
    fn the_indexed_select_must_scan_its_index() {
        assert!(Step::SelectU2.judge(BITMAP).unwrap().is_expected);
        assert!(!Step::SelectU2.judge(PARALLEL).unwrap().is_expected);
        assert!(Step::SelectR.judge(PARALLEL).unwrap().is_expected);
        assert!(!Step::SelectR.judge(BITMAP).unwrap().is_expected);
        assert_eq!(Step::SelectU1.judge(BITMAP), None);
    }
}
