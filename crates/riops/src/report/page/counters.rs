//! Tables of what was counted: errors, operations, sessions, nodes, devices, the database, the machine.

use super::table::{Cell, Table};
use crate::record::{DatabaseUse, LatencySummary, Record, StageRecord};
use crate::report::format::{bytes_text, count, duration_us, percent, rate};
use crate::report::model::Summary;
use crate::report::sections::study::bottleneck_word;

/// Text of a value that was not measured.
const ABSENT: &str = "–";

fn optional(text: Option<String>) -> Cell {
    Cell::number(text.unwrap_or_else(|| ABSENT.to_owned()))
}

/// A cell with the name of the stage, if the run has several.
fn stage_cell(record: &Record, stage: &StageRecord) -> Vec<Cell> {
    if record.stages.len() > 1 { vec![Cell::word(stage.name.clone())] } else { Vec::new() }
}

/// A table with a column for the stage, if the run has several.
fn table<const N: usize>(
    title: &str,
    record: &Record,
    head: [&'static str; N],
    words: usize,
    rows: Vec<Vec<Cell>>,
) -> Option<Table> {
    let stage = usize::from(record.stages.len() > 1);
    let head = std::iter::repeat_n("stage", stage).chain(head);
    (!rows.is_empty()).then(|| Table::new(title, head, words + stage, rows))
}

/// Errors by SQLSTATE.
pub(super) fn errors(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for stage in &record.stages {
        for error in &stage.session_loop.errors {
            let mut row = stage_cell(record, stage);
            let message = match error.more_samples.len() {
                0 => error.sample.clone(),
                more => format!("{} (and {more} other messages)", error.sample),
            };
            let length = |seconds: Option<f64>| optional(seconds.map(|s| duration_us(s * 1e6)));
            row.extend([
                Cell::word(error.sqlstate.clone()),
                Cell::word(message),
                Cell::number(count(error.count)),
                Cell::number(count(error.retried)),
                length(Some(error.attempts_s).filter(|&seconds| seconds > 0.0)),
                length(error.without_success_s),
                length(error.until_90_percent_s),
            ]);
            rows.push(row);
        }
    }
    let head = [
        "SQLSTATE",
        "message",
        "errors",
        "retried",
        "time in attempts",
        "longest without success",
        "until 90% of the rate",
    ];
    table("Errors", record, head, 2, rows)
}

fn latencies(found: Option<&LatencySummary>) -> [Cell; 5] {
    let text =
        |pick: fn(&LatencySummary) -> f64| optional(found.map(|each| duration_us(pick(each))));
    [
        text(|each| each.p50),
        text(|each| each.p90),
        text(|each| each.p99),
        text(|each| each.p999),
        text(|each| each.max),
    ]
}

/// Kinds of transactions, if there are several.
pub(super) fn operations(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for stage in record.stages.iter().filter(|stage| stage.session_loop.operations.len() > 1) {
        for operation in &stage.session_loop.operations {
            let mut row = stage_cell(record, stage);
            row.extend([
                Cell::word(operation.name.clone()),
                Cell::number(count(operation.transactions)),
                Cell::number(count(operation.rows)),
                Cell::number(count(operation.failed + operation.unknown)),
            ]);
            row.extend(latencies(operation.latency_us()));
            rows.push(row);
        }
    }
    let head = ["operation", "transactions", "rows", "failed", "p50", "p90", "p99", "p99.9", "max"];
    table("Operations", record, head, 1, rows)
}

/// What each session did.
pub(super) fn sessions(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for stage in &record.stages {
        let most = stage.session_loop.sessions_fairness.max.max(1) as f64;
        for session in &stage.session_loop.session_details {
            let of = |pick: fn(&crate::record::SessionOperation) -> u64| {
                session.operations.iter().map(pick).sum::<u64>()
            };
            let longest = session.operations.iter().map(|each| each.max_us).fold(0.0, f64::max);
            let busy: f64 = session.operations.iter().map(|each| each.execution_s).sum();
            let transactions = of(|each| each.transactions);
            let mut row = stage_cell(record, stage);
            row.extend([
                Cell::word(session.node.clone().unwrap_or_else(|| ABSENT.to_owned())),
                Cell::number(count(session.number)),
                Cell::number(session.server_process.to_string()),
                Cell::number(count(transactions)).with_bar(transactions as f64 / most),
                Cell::number(count(of(|each| each.rows))),
                Cell::number(duration_us(longest)),
                Cell::number(percent(busy / stage.seconds.max(f64::MIN_POSITIVE))),
            ]);
            rows.push(row);
        }
    }
    let head = [
        "node",
        "session",
        "server process",
        "transactions",
        "rows",
        "longest",
        "time in transactions",
    ];
    table("Sessions", record, head, 1, rows)
}

/// The nodes of a cluster, if there are several.
pub(super) fn nodes(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for stage in record.stages.iter().filter(|stage| stage.session_loop.nodes.len() > 1) {
        for node in &stage.session_loop.nodes {
            let usage = node.usage.unwrap_or_default();
            let longest = node
                .outages
                .iter()
                .map(|outage| outage.without_success_s)
                .chain(node.longest_pause_s)
                .max_by(f64::total_cmp);
            let latency = |pick: fn(&LatencySummary) -> f64| {
                optional(node.service_us.as_ref().map(|each| duration_us(pick(each))))
            };
            let mut row = stage_cell(record, stage);
            row.extend([
                Cell::word(if node.down {
                    format!("{} (down)", node.node)
                } else {
                    node.node.clone()
                }),
                Cell::word(node.placement.clone().unwrap_or_else(|| ABSENT.to_owned())),
                Cell::number(count(node.sessions)),
                Cell::number(rate(node.transactions_per_s)),
                Cell::share(Some(node.share)).with_bar(node.share),
                latency(|each| each.p50),
                latency(|each| each.p99),
                Cell::number(count(node.errors)),
                Cell::number(count(node.retries)),
                Cell::number(count(node.reconnects)),
                optional(longest.map(|seconds| duration_us(seconds * 1e6))),
                optional(usage.cpu_cores.map(rate)),
                optional(usage.storage_reads_per_s.map(rate)),
                optional(usage.storage_writes_per_s.map(rate)),
            ]);
            rows.push(row);
        }
    }
    let head = [
        "node",
        "placement",
        "sessions",
        "tx/s",
        "share",
        "service p50",
        "service p99",
        "errors",
        "retries",
        "reconnects",
        "longest pause",
        "CPUs of yb-tserver",
        "storage reads/s",
        "storage writes/s",
    ];
    table("Nodes", record, head, 2, rows)
}

/// The disks of the server.
pub(super) fn devices(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for summary in Summary::of_each(record) {
        for device in summary.devices() {
            let usage = device.usage;
            let mut row = stage_cell(record, summary.stage);
            row.extend([
                Cell::word(usage.name.clone()),
                Cell::word(device.roles.join(", ")),
                Cell::number(rate(usage.reads_per_s)),
                Cell::number(format!("{:.1}", usage.read_mb_s)),
                Cell::number(rate(usage.writes_per_s)),
                Cell::number(format!("{:.1}", usage.write_mb_s)),
                Cell::share(Some(usage.busy_share)),
                optional(usage.queue_depth.map(|depth| format!("{depth:.1}"))),
                optional(device.load.map(percent)),
            ]);
            rows.push(row);
        }
    }
    let head = [
        "device",
        "used for",
        "reads/s",
        "read MB/s",
        "writes/s",
        "write MB/s",
        "busy",
        "queue depth",
        "of its maximum",
    ];
    table("Devices", record, head, 2, rows)
}

/// CPU, blocks and bottleneck of each stage, if there are several.
pub(super) fn resources(record: &Record) -> Option<Table> {
    if record.stages.len() < 2 {
        return None;
    }
    let rows = Summary::of_each(record).into_iter().map(|summary| {
        let stage = summary.stage;
        let io = stage.io.as_ref();
        let available = stage.seconds * record.client.machine.cpus as f64;
        let server = stage.server_cpu_s.map(|cpu_s| cpu_s / available.max(f64::MIN_POSITIVE));
        vec![
            Cell::word(stage.name.clone()),
            Cell::word(bottleneck_word(&summary)),
            optional(stage.machine_busy_share.map(percent)),
            optional(server.map(percent)),
            optional(summary.client_machine_share().map(percent)),
            optional(io.and_then(|io| io.liops).map(rate)),
            optional(io.and_then(|io| io.blocks_per_row).map(rate)),
            optional(io.and_then(|io| io.hit_ratio).map(percent)),
            optional(io.and_then(|io| io.piops).map(rate)),
            optional(io.and_then(|io| io.wal_mb_s).map(|mb_s| format!("{mb_s:.1}"))),
        ]
    });
    let head = [
        "stage",
        "bottleneck",
        "machine CPU",
        "server",
        "client",
        "LIOPS",
        "blocks per row",
        "hits",
        "PIOPS",
        "WAL MB/s",
    ];
    Some(Table::new("CPU and blocks", head, 2, rows.collect()))
}

/// A counter of the database.
type Counter = (&'static str, fn(&DatabaseUse) -> Option<String>);

/// The counters of the database, in the names of its views.
const COUNTERS: [Counter; 27] = [
    ("table blocks found in shared buffers", |each| Some(count(each.blocks?.heap_blks_hit))),
    ("table blocks read", |each| Some(count(each.blocks?.heap_blks_read))),
    ("index blocks found in shared buffers", |each| Some(count(each.blocks?.idx_blks_hit))),
    ("index blocks read", |each| Some(count(each.blocks?.idx_blks_read))),
    ("blocks per read transaction", |each| Some(rate(each.blocks_per_read?))),
    ("blocks of the database found in shared buffers", |each| {
        counted(each, |counters| counters.blks_hit)
    }),
    ("blocks of the database read", |each| counted(each, |counters| counters.blks_read)),
    ("transactions committed", |each| counted(each, |counters| counters.xact_commit)),
    ("transactions rolled back", |each| counted(each, |counters| counters.xact_rollback)),
    ("rows returned by scans", |each| counted(each, |counters| counters.tup_returned)),
    ("rows fetched by index scans", |each| counted(each, |counters| counters.tup_fetched)),
    ("deadlocks", |each| counted(each, |counters| counters.deadlocks)),
    ("temporary files", |each| counted(each, |counters| counters.temp_files)),
    ("size of temporary files", |each| {
        let (before, after) = (each.before.as_ref()?, each.after.as_ref()?);
        Some(bytes_text(after.temp_bytes.saturating_sub(before.temp_bytes)))
    }),
    ("rows updated", |each| Some(count(each.row_versions?.updated))),
    ("HOT updates among them", |each| Some(count(each.row_versions?.hot_updated))),
    ("dead row versions at the end", |each| Some(count(each.row_versions?.dead))),
    ("vacuums", |each| Some(count(each.row_versions?.vacuums))),
    ("WAL records", |each| Some(count(each.wal?.records))),
    ("WAL full page images", |each| Some(count(each.wal?.full_page_images))),
    ("WAL size", |each| Some(bytes_text(each.wal?.bytes))),
    ("scheduled checkpoints", |each| Some(count(each.checkpoints?.timed))),
    ("requested checkpoints", |each| Some(count(each.checkpoints?.requested))),
    ("buffers written by checkpoints", |each| Some(count(each.checkpoints?.buffers_written))),
    ("evictions by client backends", |each| Some(count(each.client_io?.evictions))),
    ("size of the tables after the stage", |each| Some(bytes_text(each.sizes_after?.table_bytes))),
    ("size of the indexes after the stage", |each| Some(bytes_text(each.sizes_after?.index_bytes))),
];

fn counted(
    usage: &DatabaseUse,
    pick: fn(&crate::record::DatabaseCounters) -> u64,
) -> Option<String> {
    let (before, after) = (usage.before.as_ref()?, usage.after.as_ref()?);
    Some(count(pick(after).saturating_sub(pick(before))))
}

/// Counters as rows, stages as columns.
pub(super) fn database(record: &Record) -> Option<Table> {
    let stages: Vec<_> = record
        .stages
        .iter()
        .filter_map(|stage| Some((stage.name.as_str(), stage.database.as_ref()?)))
        .collect();
    let rows: Vec<_> = COUNTERS
        .iter()
        .filter_map(|(name, pick)| {
            let found: Vec<_> = stages.iter().map(|(_, usage)| pick(usage)).collect();
            found.iter().any(Option::is_some).then(|| {
                std::iter::once(Cell::word(*name)).chain(found.into_iter().map(optional)).collect()
            })
        })
        .collect();
    let names = stages
        .iter()
        .map(|(name, _)| if stages.len() == 1 { "value".to_owned() } else { (*name).to_owned() });
    (!rows.is_empty()).then(|| Table {
        title: "Counters of the database".to_owned(),
        head: std::iter::once("counter".to_owned()).chain(names).collect(),
        words: 1,
        rows,
        note: Some("of the whole stage, including warm-up and drain".to_owned()),
    })
}

/// The checks of the data.
pub(super) fn checks(record: &Record) -> Option<Table> {
    let rows = record.checks.iter().map(|check| {
        let verdict = match (check.held, check.unknown) {
            (_, true) => "cannot be verified",
            (true, false) => "as expected",
            (false, false) => "DIFFERENT",
        };
        [check.name.as_str(), &check.expected, &check.found, verdict].map(Cell::word).into()
    });
    (!record.checks.is_empty()).then(|| {
        Table::new(
            "Checks of the data",
            ["check", "expected", "found", "result"],
            4,
            rows.collect(),
        )
    })
}
