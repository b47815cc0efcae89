//! A record of `cbc` for tests: made up, but of the shape of a real one.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::assigning_clones,
    clippy::wildcard_imports,
    reason = "for tests, of other crates, too"
)]

use crate::plan::{CbcDataset, CbcRun, CbcStep};
use crate::record::example::example_record;
use crate::record::*;

fn cbc_step(step: CbcStep, seconds: f64, rates: [f64; 3]) -> StageRecord {
    let [read_mb_s, write_mb_s, wal_mb_s] = rates;
    let point = |t_s: f64| ProbePoint {
        t_s,
        seconds: seconds / 2.0,
        read_mb_s: Some(read_mb_s),
        write_mb_s: Some(write_mb_s),
        busy_share: Some(0.5),
        machine_busy_share: Some(0.6),
        wal_mb_s: Some(wal_mb_s),
        ..ProbePoint::default()
    };
    let wait = |event: &str, share| WaitShare { event: event.to_owned(), share };
    StageRecord {
        name: step.key().to_owned(),
        kind: StageKind::Statement,
        statement: Some(StatementRecord {
            sql: format!("-- the script {}", step.script()),
            tag: "SELECT 4537863".to_owned(),
            plan: step.is_select().then(|| StatementPlan {
                outline: "Aggregate\n  Seq Scan on settings_loop".to_owned(),
                execution_ms: Some(seconds * 1e3),
                buffers: StatementBuffers {
                    shared_hit: 100,
                    shared_read: 12_400,
                    ..StatementBuffers::default()
                },
                rows_found: 12_501.0,
                rows_left_out: 0.0,
                scans: 1.0,
            }),
            vacuum: (step == CbcStep::Vacuum)
                .then_some(VacuumRates { read_mib_s: 310.5, write_mib_s: 310.75 }),
            process_cpu_share: Some(0.5),
        }),
        seconds,
        sessions: 1,
        transactions: 1,
        rows: 4_537_863,
        statements: 1,
        process_io: Some(ReadBytes { all: 1_000_000_000, device: 1, written: 900_000_000 }),
        database: Some(DatabaseUse {
            blocks: Some(TableBlocks { heap_blks_read: 133_000, ..TableBlocks::default() }),
            ..DatabaseUse::default()
        }),
        probes: Some(Sampled {
            others: Vec::new(),
            points: vec![point(seconds / 2.0), point(seconds)],
            waits: vec![wait("CPU", 0.5), wait("IO:WalSync", 0.3), wait("IO:DataFileExtend", 0.2)],
            looks: 40,
            cpu_s: seconds * 0.004,
            ..Sampled::default()
        }),
        io: Some(IoRecord {
            wal_mb_s: Some(wal_mb_s),
            device: Some(DeviceUse {
                name: "vda".to_owned(),
                reads_per_s: read_mb_s * 8.0,
                writes_per_s: write_mb_s * 8.0,
                read_mb_s,
                write_mb_s,
                busy_share: 0.5,
                queue_depth: None,
            }),
            ..example_record().stages.remove(0).io.unwrap()
        }),
        machine_busy_share: Some(0.6),
        ..StageRecord::default()
    }
}

/// A block check of 1 GB on a device whose maximum is known, with one stage of a select by two sessions.
pub fn example_cbc() -> Record {
    let rate = |mb_s: f64| DiskRate { mb_s, requests_per_s: mb_s, p99_us: Some(900.0), jobs: None };
    let mut record = example_record();
    record.workload = "cbc".to_owned();
    let run = CbcRun { size_gb: 1.0, query_sessions: vec![2], ..CbcRun::default() };
    record.plan.work = run.into();
    record.target.database = "riops_cbc".to_owned();
    record.target.dataset.as_mut().unwrap().parameters = CbcDataset {
        size_gb: 1.0,
        settings_rows: 363,
        copies: 12_501,
        table_bytes: Some(1_091_821_568),
        index_bytes: Some(31_825_920),
    }
    .into();
    record.target.disk_limit = Some(DiskLimit {
        device: "vda".to_owned(),
        identity: None,
        measured_at: "2026-11-22T09:00:00Z".parse().unwrap(),
        tool: "fio-3.33".to_owned(),
        file_bytes: 2_000_000_000,
        seconds: 5.0,
        sequential_read: rate(700.0),
        sequential_write: rate(500.0),
        random_read: rate(160.0),
        random_write: rate(150.0),
        synchronized_write: None,
        others_busy_share: None,
    });
    let mut select = StageRecord {
        name: "t03-select-max-no-explain -c 2".to_owned(),
        ..example_record().stages.remove(0)
    };
    select.probes.clone_from(&cbc_step(CbcStep::SelectC1, 10.0, [5.0, 1.0, 0.0]).probes);
    record.stages = vec![
        cbc_step(CbcStep::CreateTable, 6.5, [0.0, 480.0, 240.0]),
        cbc_step(CbcStep::Vacuum, 4.5, [300.0, 290.0, 20.0]),
        cbc_step(CbcStep::CreateIndex, 4.0, [20.0, 10.0, 5.0]),
        cbc_step(CbcStep::SelectU1, 0.8, [120.0, 0.0, 0.0]),
        cbc_step(CbcStep::SelectR, 1.6, [680.0, 0.0, 0.0]),
        select,
    ];
    record
}
