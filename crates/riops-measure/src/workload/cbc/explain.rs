//! Parses EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) of a select that runs once, and the rates printed by VACUUM VERBOSE. Pure.

use serde_json::Value;

use crate::server::Dialect;
use crate::workload::Statement;
use crate::workload::access::{Access, AccessPath, Finding, Index, nodes, outline};
use riops_model::plan::CbcStep;
use riops_model::record::{StatementBuffers, StatementPlan, VacuumRates};

/// Returns the expected access path of a step, if it has one.
pub fn access_of(step: CbcStep) -> Option<Access> {
    let index = Index { table: "settings_loop".to_owned(), name: "by_name".to_owned() };
    let expected = match step {
        CbcStep::SelectR => AccessPath::SeqScan { table: index.table },
        CbcStep::SelectU2 | CbcStep::SelectC2 => AccessPath::ByIndex(index),
        // Before CLUSTER any plan is allowed for the select of one name.
        _ => return None,
    };
    let statement = Statement::new(step.key(), String::new(), []);
    let access = Access::new(statement, Vec::new(), expected, Dialect::default());
    // The benchmark measures the statements with the settings of the server.
    Some(Access { parallel_allowed: true, ..access })
}

/// Compares the output of EXPLAIN with the expected access path.
pub fn judge(step: CbcStep, json: &str) -> Option<Finding> {
    Some(access_of(step)?.judge(json))
}

/// Parses the output of EXPLAIN. Returns `None` for any other text.
pub fn parsed_plan(json: &str) -> Option<StatementPlan> {
    let document: Value = serde_json::from_str(json).ok()?;
    let first = document.get(0)?;
    let root = first.get("Plan")?;
    let blocks = |name: &str| root.get(name).and_then(Value::as_u64).unwrap_or(0);
    let nodes = nodes(root);
    // The node that reads the table itself, not only an index.
    let scan = nodes.iter().find(|node| node.fields.get("Relation Name").is_some())?;
    let value = |name: &str| scan.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let scans = value("Actual Loops");
    Some(StatementPlan {
        outline: outline(&nodes),
        execution_ms: first.get("Execution Time").and_then(Value::as_f64),
        buffers: StatementBuffers {
            shared_hit: blocks("Shared Hit Blocks"),
            shared_read: blocks("Shared Read Blocks"),
            shared_dirtied: blocks("Shared Dirtied Blocks"),
            shared_written: blocks("Shared Written Blocks"),
            temp_read: blocks("Temp Read Blocks"),
            temp_written: blocks("Temp Written Blocks"),
        },
        rows_found: value("Actual Rows") * scans,
        rows_left_out: value("Rows Removed by Filter") * scans,
        scans,
    })
}

/// Parses a notice. Returns `None` if it contains no rates, as before PostgreSQL 15.
pub fn parsed_rates(notice: &str) -> Option<VacuumRates> {
    let rate = |label: &str| {
        let rest = notice.split_once(label)?.1.trim_start();
        rest.split_once(" MB/s")?.0.parse().ok()
    };
    Some(VacuumRates { read_mib_s: rate("avg read rate:")?, write_mib_s: rate("avg write rate:")? })
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
        let plan = parsed_plan(BITMAP).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out, plan.scans), (1251.0, 0.0, 1.0));
        assert_eq!((plan.buffers.shared_hit, plan.buffers.shared_read), (4, 12));
        assert_eq!(plan.execution_ms, Some(3.25));
        let plan = parsed_plan(PARALLEL).unwrap();
        assert_eq!((plan.rows_found, plan.rows_left_out), (301.5, 60.0));
        assert_eq!(parsed_plan("[]"), None);
    }

    #[test]
    fn the_indexed_select_must_scan_its_index() {
        assert!(judge(CbcStep::SelectU2, BITMAP).unwrap().is_expected);
        assert!(!judge(CbcStep::SelectU2, PARALLEL).unwrap().is_expected);
        assert!(judge(CbcStep::SelectR, PARALLEL).unwrap().is_expected);
        assert!(!judge(CbcStep::SelectR, BITMAP).unwrap().is_expected);
        assert_eq!(judge(CbcStep::SelectU1, BITMAP), None);
    }

    #[test]
    fn parses_the_rates_of_a_notice() {
        let notice = "finished vacuuming \"riops_cbc.riops.settings_loop\": index scans: 0\n\
                      pages: 0 removed, 125 remain\n\
                      avg read rate: 812.500 MB/s, avg write rate: 40.125 MB/s\nbuffer usage: 5 hits";
        let rates = parsed_rates(notice).unwrap();
        assert_eq!((rates.read_mib_s, rates.write_mib_s), (812.5, 40.125));
        assert_eq!(parsed_rates("vacuuming \"x\""), None);
    }
}
