//! A record for tests: made up, but of the shape of a real one.

use std::collections::BTreeMap;

use crate::metrics::{LatencySummary, Point};
use crate::plan::{
    DatasetPlan, LoadDataset, LoadRun, Method, RowsDataset, RunPlan, Stop, WorkPlan,
};
use crate::probe::DeviceUse;
use crate::store::*;
use crate::target::Flavour;
use crate::target::machine::MachineFacts;

fn latency(count: u64) -> LatencySummary {
    LatencySummary {
        count,
        min: 900.0,
        mean: 1650.0,
        stdev: 300.0,
        p50: 1600.0,
        p90: 2100.0,
        p95: 2300.0,
        p99: 2900.0,
        p999: 3800.0,
        max: 4100.0,
    }
}

fn access(moment: &str) -> AccessRecord {
    AccessRecord {
        statement: "read_rows_0001".to_owned(),
        stage: None,
        storage: None,
        moment: moment.to_owned(),
        expected: "Index Scan on rows_0001_asc_mykey, table rows_0001".to_owned(),
        found: "Aggregate\n  Index Scan using rows_0001_asc_mykey on rows_0001, (mykey >= 1)"
            .to_owned(),
        held: true,
        sessions: 2,
    }
}

fn stage() -> StageRecord {
    StageRecord {
        name: "rows".to_owned(),
        kind: "loop".to_owned(),
        batch: Some(1000),
        update_batch: None,
        method: None,
        row_bytes: None,
        database_s: Some(19.8),
        samples: None,
        caches: None,
        seconds: 10.0,
        sessions: 2,
        transactions: 12_000,
        rows: 12_000_000,
        statements: 12_000,
        throughput: Throughput {
            transactions_per_s: 1200.0,
            rows_per_s: 1_200_000.0,
            statements_per_s: 1200.0,
        },
        service_us: Some(latency(12_000)),
        response_us: None,
        histogram: None,
        response_histogram: None,
        outcomes: Some(Outcomes { attempted: 12_000, succeeded: 12_000, failed: 0, unknown: 0 }),
        retries: 0,
        reconnects: 0,
        late: None,
        schedule: None,
        connect_us: None,
        operations: vec![OperationRecord {
            name: "read".to_owned(),
            transactions: 12_000,
            rows: 12_000_000,
            acknowledged_transactions: 14_400,
            acknowledged_rows: 14_400_000,
            service_us: Some(latency(12_000)),
            ..OperationRecord::default()
        }],
        errors: Vec::new(),
        unknown_commits: 0,
        drained: DrainedRecord { transactions: 2, max_us: 1700.0, lost: 0 },
        sessions_fairness: Fairness { min: 5_990, mean: 6_000.0, max: 6_010, stdev: 10.0 },
        io: Some(IoRecord {
            liops: Some(1_206_000.0),
            piops: Some(2.0),
            hit_ratio: Some(0.998),
            blocks_per_row: Some(1.005),
            sources: Some(Sources {
                buffers_share: 0.998,
                page_cache_share: Some(0.002),
                device_share: Some(0.0),
            }),
            wal_mb_s: Some(0.0),
            storage_requests_per_row: None,
            device: Some(DeviceUse {
                name: "vda".to_owned(),
                reads_per_s: 2.0,
                writes_per_s: 31.0,
                read_mb_s: 0.1,
                write_mb_s: 1.3,
                busy_share: 0.021,
            }),
        }),
        session_details: Vec::new(),
        database: None,
        memory: None,
        pressure: None,
        client_cpu: Some(ClientCpu {
            seconds: 0.2,
            us_per_transaction: Some(16.7),
            share_of_client: 0.012,
            worker_shares: vec![0.012, 0.008],
            away_us: None,
            limited: false,
        }),
        machine_busy_share: Some(0.99),
        series: vec![Point {
            t_s: 1.0,
            seconds: 1.0,
            transactions: 1200,
            rows: 1_200_000,
            p50_us: Some(1600.0),
            p99_us: Some(2900.0),
            max_us: Some(4100.0),
            ..Point::default()
        }],
    }
}

/// The same of a load, by as many methods.
pub(crate) fn example_load(methods: &[Method]) -> Record {
    let mut record = example_record();
    record.workload = "load".to_owned();
    let method = methods.first().copied().unwrap_or_default();
    let run = LoadRun { method, methods: methods.to_vec(), ..LoadRun::default() };
    record.plan.work = WorkPlan::Load(run);
    record.plan.stop = Stop::Rows(12_000_000);
    record.target.dataset.parameters = DatasetPlan::Load(LoadDataset {
        rows: 12_000_000,
        contents: method.contents(),
        ..LoadDataset::default()
    });
    record.accesses.clear();
    let stage = |(number, method): (u32, &Method)| StageRecord {
        name: format!("load, {}", method.as_str()),
        method: Some(method.as_str().to_owned()),
        batch: (*method != Method::CopyFile).then_some(200),
        row_bytes: Some(128),
        throughput: Throughput {
            rows_per_s: 1_200_000.0 / f64::from(number),
            transactions_per_s: 1200.0,
            statements_per_s: 1200.0,
        },
        ..stage()
    };
    record.stages = (1..).zip(methods).map(stage).collect();
    record
}

/// A valid run of ten seconds.
pub(crate) fn example_record() -> Record {
    let id = "01938f7a-7c00-7000-8000-0123456789ab";
    Record {
        schema: SCHEMA,
        id: id.parse().unwrap(),
        started_at: "2026-11-21T20:00:00Z".parse().unwrap(),
        workload: "rows".to_owned(),
        label: Some("first".to_owned()),
        tags: BTreeMap::new(),
        plan: RunPlan {
            sessions: 2,
            workers: 2,
            seed: 42,
            label: Some("first".to_owned()),
            ..RunPlan::default()
        },
        status: Status::Done,
        failure: None,
        target: TargetRecord {
            flavour: Flavour::PostgreSql,
            server_version: "18.6".to_owned(),
            version_text: "PostgreSQL 18.6 on x86_64-pc-linux-gnu".to_owned(),
            compiler_flags: Some("-Os".to_owned()),
            embedded: true,
            address: "/var/cache/riops/server/embedded-18/socket/.s.PGSQL.40001".to_owned(),
            database: "postgres".to_owned(),
            encryption: None,
            pooler: None,
            storage: None,
            settings: BTreeMap::from([("fsync".to_owned(), "on".to_owned())]),
            dataset: DatasetRecord {
                id: id.to_owned(),
                parameters: DatasetPlan::Rows(RowsDataset::default()),
            },
        },
        client: ClientRecord {
            riops_version: "0.1.0".to_owned(),
            machine: MachineFacts {
                host: "bench".to_owned(),
                kernel: "Linux 6.1 x86_64".to_owned(),
                cpus: 2,
                memory_bytes: 25_769_803_776,
                ..MachineFacts::default()
            },
            workers: 2,
            shares_machine_with_server: true,
        },
        stages: vec![stage()],
        accesses: ["before", "middle", "after"].map(access).into(),
        checks: Vec::new(),
        thresholds: Vec::new(),
        verdict: Verdict { valid: true, reasons: Vec::new() },
    }
}
