//! The workload `rows` on a fake server with the settings, EXPLAIN output and errors of YugabyteDB. Needs no
//! YugabyteDB server.

use std::sync::Mutex;

use riops_testkit::VERSION;

use super::*;
use crate::workload::Workload;
use crate::workload::rows::Rows;
use riops_model::plan::{RowsDataset, RowsRun};
use riops_model::record::StorageRequests;

/// EXPLAIN (ANALYZE, DIST, FORMAT JSON) of a range of ten keys: one request to the index, one to the
/// table.
const DIST: &str = r#"[{"Plan": {"Node Type": "Aggregate", "Plans": [{"Node Type": "Index Scan",
    "Relation Name": "rows_0001", "Index Name": "rows_0001_asc_mykey", "Index Cond": "x",
    "Storage Table Read Requests": 1, "Storage Index Read Requests": 1, "Storage Table Rows Scanned": 10,
    "Storage Index Rows Scanned": 10}]}, "Storage Read Requests": 2, "Storage Rows Scanned": 20,
    "Storage Write Requests": 0, "Storage Flush Requests": 0}]"#;

#[test]
fn applies_settings_counts_storage_requests_and_retries_errors() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let executed = AtomicU64::new(0);
    let server = FakeServer::start(move |_, request| match request {
        Request::Query(sql) if sql.starts_with("explain (analyze, dist, format json") => {
            Reply::Row(vec![Some(DIST.into())])
        }
        Request::Query(sql) => {
            log.lock().unwrap().push((*sql).to_owned());
            Reply::Done
        }
        Request::Execute { .. } => match executed.fetch_add(1, Ordering::Relaxed) {
            1 => Reply::Error { sqlstate: "40001", message: "Restart read required" },
            3 => Reply::Error { sqlstate: "40P01", message: "deadlock detected" },
            5 => Reply::Error { sqlstate: "XX000", message: "schema version mismatch for table" },
            7 => Reply::Close,
            _ => Reply::numbers(10, 1),
        },
        Request::Parse(_) => Reply::Done,
    })
    .unwrap();
    let run = RowsRun { batch: 10, follower_reads_ms: Some(15_000), ..RowsRun::default() };
    let plan = Plan { work: run.clone().into(), ..plan(Stop::Transactions(50), 1, 1) };
    let workload = Rows::new(RowsDataset::default(), run).on(Dialect::from_version(VERSION));
    let result = run_stage(
        workload.stage(&plan),
        workload.accesses(),
        &plan,
        &Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test")),
        &Interrupt::new(),
        &mut Probe::without_processes(),
        &mut Hooks::default(),
    )
    .unwrap();
    assert!(result.workers.failure.is_none());
    assert_eq!((counted(&result, Counter::Retries), counted(&result, Counter::Reconnects)), (3, 1));
    let codes: Vec<_> =
        result.workers.recorder.errors.entries.iter().map(|error| error.sqlstate.clone()).collect();
    for code in ["40001", "40P01", "XX000"] {
        assert!(codes.iter().any(|seen| seen == code), "{codes:?}");
    }
    let storage = StorageRequests { reads: 2, rows_scanned: Some(20), rows: 10 };
    assert!(result.workers.findings.iter().all(|check| check.finding.storage == Some(storage)));
    let settings = seen.lock().unwrap().join("\n");
    for setting in ["yb_read_from_followers = on", "yb_follower_read_staleness_ms = 15000"] {
        assert!(settings.contains(setting), "{settings}");
    }
}
