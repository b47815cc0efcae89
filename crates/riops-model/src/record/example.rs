//! A record for tests: made up, but of the shape of a real one.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::assigning_clones,
    clippy::wildcard_imports,
    reason = "for tests, of other crates, too"
)]

use std::collections::BTreeMap;

use crate::plan::{
    Driver, LoadDataset, LoadRun, Method, OltpDataset, OltpRun, Plan, RowsDataset, Stop,
};
use crate::record::*;
use crate::record::{Flavor, Role};

fn latency(count: u64) -> LatencySummary {
    let us = [1600.0, 2100.0, 2300.0, 2900.0, 3800.0, 4100.0];
    let percentile = |percent| {
        let percents = [50.0, 90.0, 95.0, 99.0, 99.9, 100.0];
        percents.into_iter().zip(us).find(|(known, _)| *known == percent).map(|(_, us)| us)
    };
    LatencySummary::new(count, 900.0, Moments { mean: 1650.0, stdev: 300.0 }, percentile).unwrap()
}

fn check(name: &str) -> Check {
    let rows = || "12000000".to_owned();
    Check {
        name: name.to_owned(),
        expected: rows(),
        found: rows(),
        held: true,
        unresolved: 0,
        unknown: false,
    }
}

fn access(moment: &str) -> AccessRecord {
    AccessRecord {
        statement: "read_rows_0001".to_owned(),
        stage: None,
        storage: None,
        moment: moment.to_owned(),
        expected: "Index Scan using rows_0001_asc_mykey on rows_0001".to_owned(),
        observed: false,
        found: "Aggregate\n  Index Scan using rows_0001_asc_mykey on rows_0001, (mykey >= 1)"
            .to_owned(),
        held: true,
        sessions: 2,
        error: None,
    }
}

fn stage() -> StageRecord {
    StageRecord {
        name: "rows".to_owned(),
        kind: StageKind::Loop,
        database_s: Some(19.8),
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
        session_loop: session_loop(),
        io: Some(IoRecord {
            liops: Some(1_206_000.0),
            piops: Some(2.0),
            hit_ratio: Some(0.998),
            blocks_per_row: Some(1.005),
            blocks_include: Vec::new(),
            sources: Some(Sources {
                buffers_share: 0.998,
                page_cache_share: Some(0.002),
                device_share: Some(0.0),
            }),
            async_read_share: None,
            wal_mb_s: Some(0.0),
            storage_requests_per_row: None,
            device: Some(DeviceUse {
                name: "vda".to_owned(),
                reads_per_s: 2.0,
                writes_per_s: 31.0,
                read_mb_s: 0.1,
                write_mb_s: 1.3,
                busy_share: 0.021,
                queue_depth: None,
            }),
            devices: Vec::new(),
        }),
        client_cpu: Some(ClientCpu {
            seconds: 0.2,
            us_per_transaction: Some(16.7),
            share_of_client: 0.012,
            worker_shares: vec![0.012, 0.008],
            away_us: None,
            run_queue_share: Some(0.004),
            connector_share: None,
            throttled_share: None,
            limits: Vec::new(),
            limited: false,
        }),
        machine_busy_share: Some(0.99),
        server_cpu_s: Some(19.4),
        neighbors: Some(Neighbors { cpu_share: Some(0.004), ..Neighbors::default() }),
        ..StageRecord::default()
    }
}

fn session_loop() -> LoopRecord {
    LoopRecord {
        batch: Some(1000),
        service_us: Some(latency(12_000)),
        outcomes: Some(Outcomes { attempted: 12_000, succeeded: 12_000, failed: 0, unknown: 0 }),
        queries: Queries { read: 12_000, write: 0, other: 0 },
        percentile_us: Some(2300.0),
        execution_s: Some(Execution { mean: 9.9, stdev: 0.01 }),
        operations: vec![OperationRecord {
            name: "read".to_owned(),
            transactions: 12_000,
            rows: 12_000_000,
            acknowledged_transactions: 14_400,
            acknowledged_rows: 14_400_000,
            service_us: Some(latency(12_000)),
            ..OperationRecord::default()
        }],
        drained: DrainedRecord { transactions: 2, max_us: Some(1700.0), lost: 0 },
        sessions_fairness: Fairness { min: 5_990, mean: 6_000.0, max: 6_010, stdev: 10.0 },
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
        ..LoopRecord::default()
    }
}

/// The same of sysbench's transactions on three nodes, of which one was lost for a while, with deadlocks.
pub fn example_oltp() -> Record {
    let mut record = example_record();
    record.workload = "oltp".to_owned();
    record.checks = vec![check("sum of k of riops.sbtest1")];
    record.plan.work = OltpRun::default().into();
    record.target.dataset.as_mut().unwrap().parameters =
        OltpDataset { tables: 10, table_size: 100_000, ..OltpDataset::default() }.into();
    record.target.settings.insert("deadlock_timeout".to_owned(), "1s".to_owned());
    for access in &mut record.accesses {
        access.expected = "Index Scan using sbtest7_pkey on sbtest7".to_owned();
    }
    let error = |sqlstate: &str, count, retried, attempts_s| ErrorEntry {
        sqlstate: sqlstate.to_owned(),
        count,
        retried,
        attempts_s,
        sample: "deadlock detected".to_owned(),
        ..ErrorEntry::default()
    };
    if let Some(stage) = record.stages.first_mut() {
        stage.sessions = 9;
        stage.session_loop.queries = Queries { read: 168_000, write: 48_000, other: 24_000 };
        stage.session_loop.imbalance = Some(1.25);
        stage.session_loop.nodes = example_nodes();
        stage.session_loop.retries = 12;
        stage.session_loop.reconnects = 3;
        stage.session_loop.attempt_us = Some(latency(12_012));
        stage.session_loop.errors = vec![error("40P01", 12, 12, 50.0), error("08006", 3, 0, 0.0)];
        stage.session_loop.lock_waits = Some(LockWaits { samples: 40, waiting: 240 });
        for point in &mut stage.session_loop.series {
            point.queries = Queries { read: 16_800, write: 4_800, other: 2_400 };
            point.percentile_us = Some(2300.0);
            point.errors = 2;
            point.retries = 1;
        }
    }
    record
}

/// Three nodes, of which the second was lost for a while.
fn example_nodes() -> Vec<NodeRecord> {
    let node = |position: u64, transactions: u64| NodeRecord {
        node: format!("127.0.0.{position}:5433"),
        role: Role::Primary,
        placement: Some(format!("cloud.region.zone{position}")),
        down: false,
        longest_pause_s: None,
        sessions: 3,
        transactions,
        transactions_per_s: transactions as f64 / 10.0,
        share: transactions as f64 / 12_000.0,
        service_us: Some(latency(transactions)),
        errors: 0,
        retries: 0,
        failed: 0,
        unknown_commits: 0,
        reconnects: 0,
        outages: Vec::new(),
        usage: None,
    };
    let mut nodes = vec![node(1, 5_000), node(2, 2_000), node(3, 5_000)];
    nodes[1] = NodeRecord {
        errors: 3,
        unknown_commits: 1,
        reconnects: 3,
        outages: vec![OutageRecord {
            sqlstate: "08006".to_owned(),
            without_success_s: 4.2,
            below_90_percent_s: Some(5.0),
            until_90_percent_s: Some(5.7),
        }],
        usage: Some(NodeUse {
            cpu_cores: Some(5.34),
            storage_reads_per_s: Some(12_000.0),
            ..NodeUse::default()
        }),
        ..node(2, 2_000)
    };
    nodes
}

/// The same of a load, by as many methods.
pub fn example_load(methods: &[Method]) -> Record {
    let mut record = example_record();
    record.workload = "load".to_owned();
    record.checks = vec![check("rows of riops.test_table")];
    let method = methods.first().copied().unwrap_or_default();
    let run = LoadRun { method, methods: methods.to_vec(), ..LoadRun::default() };
    record.plan.work = run.into();
    record.plan.stop = Stop::Rows(12_000_000);
    record.target.dataset.as_mut().unwrap().parameters =
        LoadDataset { rows: 12_000_000, contents: method.contents(), ..LoadDataset::default() }
            .into();
    record.accesses.clear();
    let stage = |(position, method): (u32, &Method)| StageRecord {
        name: format!("load, {}", method.as_str()),
        session_loop: LoopRecord {
            method: Some(method.as_str().to_owned()),
            batch: (*method != Method::CopyFile).then_some(200),
            row_bytes: Some(128),
            ..session_loop()
        },
        throughput: Throughput {
            rows_per_s: 1_200_000.0 / f64::from(position),
            transactions_per_s: 1200.0,
            statements_per_s: 1200.0,
        },
        ..stage()
    };
    record.stages = (1..).zip(methods).map(stage).collect();
    record
}

/// A valid run of ten seconds.
pub fn example_record() -> Record {
    let id = "01938f7a-7c00-7000-8000-0123456789ab";
    Record {
        schema: SCHEMA,
        id: id.parse().unwrap(),
        started_at: "2026-11-21T20:00:00Z".parse().unwrap(),
        workload: "rows".to_owned(),
        label: Some("first".to_owned()),
        tags: BTreeMap::new(),
        plan: Plan {
            sessions: 2,
            workers: 2,
            seed: 42,
            label: Some("first".to_owned()),
            ..Plan::default()
        },
        status: Status::Done,
        failure: None,
        imported: None,
        target: TargetRecord {
            limits: None,
            disk_limit: None,
            devices: Vec::new(),
            flavor: Flavor::default(),
            server_version: "18.6".to_owned(),
            version_text: "PostgreSQL 18.6 on x86_64-pc-linux-gnu".to_owned(),
            compiler_flags: Some("-Os".to_owned()),
            setting_defaults: BTreeMap::new(),
            embedded: true,
            address: "/var/cache/riops/server/embedded-18/socket/.s.PGSQL.40001".to_owned(),
            database: "postgres".to_owned(),
            encryption: None,
            pooler: None,
            storage: None,
            settings: BTreeMap::from([("fsync".to_owned(), "on".to_owned())]),
            dataset: Some(DatasetRecord {
                other_users: Vec::new(),
                id: id.to_owned(),
                condition: None,
                parameters: RowsDataset::default().into(),
            }),
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
            driver: Some(Driver::Epoll),
            shares_machine_with_server: true,
            server_may_be_here: false,
        },
        agents: Vec::new(),
        stages: vec![stage()],
        accesses: ["before", "middle", "after"].map(access).into(),
        unknown_outcomes: None,
        checks: Vec::new(),
        notes: Vec::new(),
        thresholds: Vec::new(),
        verdict: Verdict { valid: true, reasons: Vec::new(), warnings: Vec::new() },
    }
}

impl LatencySummary {
    /// Returns a summary for tests, with the minimum, the mean and the median `p50_us`, and `p99_us` above the median.
    pub fn for_test(p50_us: f64, p99_us: f64) -> Self {
        let percentile = |percent| Some(if percent > 50.0 { p99_us } else { p50_us });
        Self::new(10, p50_us, Moments { mean: p50_us, stdev: 0.0 }, percentile).unwrap()
    }
}
