//! Tables of what was counted: errors, operations, sessions, nodes, devices, the database, the machine.

use crate::figure::Summary;
use crate::record::{DatabaseCounters, DatabaseUse, Record, SessionOperation, StageRecord};
use crate::report::latency::latency_cell;
use crate::report::sections::failures::counts_text;
use crate::report::sections::stage_name;
use crate::report::table::{Cell, Table, number, word};
use crate::units::format::{bytes_text, count, duration_us, percent, rate};

/// The items of all stages, each with its stage.
fn each<'a, I: IntoIterator>(
    record: &'a Record,
    items: impl Fn(&'a StageRecord) -> I,
) -> impl Iterator<Item = (&'a StageRecord, I::Item)> {
    record
        .stages
        .iter()
        .flat_map(move |stage| items(stage).into_iter().map(move |item| (stage, item)))
}

fn seconds(seconds: Option<f64>) -> Cell {
    seconds.map(|seconds| duration_us(seconds * 1e6)).into()
}

/// Errors by SQLSTATE.
pub(super) fn errors(record: &Record) -> Table {
    let errors = each(record, |stage| &stage.session_loop.errors);
    Table::of("errors", errors, |(stage, error)| {
        let message = match error.more_samples.len() {
            0 => error.sample.clone(),
            more => format!("{} (and {more} other messages)", error.sample),
        };
        let in_attempts = Some(error.attempts_s).filter(|&seconds| seconds > 0.0);
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("SQLSTATE"), error.sqlstate.as_str().into()),
            (word("message"), message.into()),
            (number("errors"), count(error.count).into()),
            (number("retried"), count(error.retried).into()),
            (number("time in attempts"), seconds(in_attempts)),
            (number("longest without success"), seconds(error.without_success_s)),
            (number("until 90% of the rate"), seconds(error.until_90_percent_s)),
        ]
    })
}

/// The steps of the profile of a rate.
pub(super) fn steps(record: &Record) -> Table {
    let steps = each(record, |stage| &stage.session_loop.steps);
    let table = Table::of("steps of the rate", steps, |(stage, step)| {
        let missing = counts_text(&[
            (step.failed, "failed"),
            (step.skipped, "skipped"),
            (step.unanswered, "in flight at the end"),
            (step.not_started, "not started"),
        ]);
        let latency = |key| latency_cell(step.response_us.as_ref(), key);
        [
            (word("stage"), stage_name(record, stage).into()),
            (number("from"), format!("{:.1} s", step.start_s).into()),
            (word("transactions"), step.step.to_string().into()),
            (number("due"), count(step.due).into()),
            (number("succeeded"), Cell::share(step.missing_share().map(|missing| 1.0 - missing))),
            (word("missing"), missing.into()),
            (number("p50"), latency("p50")),
            (number("p99"), latency("p99")),
            (number("max"), latency("max")),
        ]
    });
    table.with_note(
        "response times of the transactions that were due in the step; the steadiness of a rate that changes is not judged",
    )
}

/// Kinds of transactions, if there are several.
pub(super) fn operations(record: &Record) -> Table {
    let operations = each(record, |stage| several(&stage.session_loop.operations));
    Table::of("operations", operations, |(stage, operation)| {
        let latency = |key| latency_cell(operation.latency_us(), key);
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("operation"), operation.name.as_str().into()),
            (number("transactions"), count(operation.transactions).into()),
            (number("rows"), count(operation.rows).into()),
            (number("failed"), count(operation.failed + operation.unknown).into()),
            (number("p50"), latency("p50")),
            (number("p90"), latency("p90")),
            (number("p99"), latency("p99")),
            (number("p99.9"), latency("p999")),
            (number("max"), latency("max")),
        ]
    })
}

/// All items, if there are several.
fn several<T>(all: &[T]) -> &[T] {
    if all.len() > 1 { all } else { &[] }
}

/// What each session did.
pub(super) fn sessions(record: &Record) -> Table {
    let sessions = each(record, |stage| &stage.session_loop.session_details);
    Table::of("sessions", sessions, |(stage, session)| {
        let operations = &session.operations;
        let sum = |pick: fn(&SessionOperation) -> u64| operations.iter().map(pick).sum::<u64>();
        let transactions = sum(|each| each.transactions);
        let most = stage.session_loop.sessions_fairness.max.max(1) as f64;
        let longest_us = operations.iter().filter_map(|each| each.max_us).reduce(f64::max);
        let busy_s: f64 = operations.iter().map(|each| each.execution_s).sum();
        let share = transactions as f64 / most;
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("node"), session.node.clone().into()),
            (number("session"), count(session.number).into()),
            (number("server process"), session.server_process.to_string().into()),
            (number("transactions"), Cell::from(count(transactions)).with_bar(share)),
            (number("rows"), count(sum(|each| each.rows)).into()),
            (number("longest"), longest_us.map(duration_us).into()),
            (
                number("time in transactions"),
                percent(busy_s / stage.seconds.max(f64::MIN_POSITIVE)).into(),
            ),
        ]
    })
}

/// The nodes of a cluster, if there are several.
pub(super) fn nodes(record: &Record) -> Table {
    let nodes = each(record, |stage| several(&stage.session_loop.nodes));
    Table::of("nodes", nodes, |(stage, node)| {
        let down = if node.down { " (down)" } else { "" };
        let outages = node.outages.iter().map(|outage| outage.without_success_s);
        let pause = outages.chain(node.longest_pause_s).max_by(f64::total_cmp);
        let usage = node.usage.unwrap_or_default();
        let latency = |key| latency_cell(node.service_us.as_ref(), key);
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("node"), format!("{}{down}", node.node).into()),
            (word("placement"), node.placement.clone().into()),
            (number("sessions"), count(node.sessions).into()),
            (number("tx/s"), rate(node.transactions_per_s).into()),
            (number("share"), Cell::share(Some(node.share)).with_bar(node.share)),
            (number("service p50"), latency("p50")),
            (number("service p99"), latency("p99")),
            (number("errors"), count(node.errors).into()),
            (number("retries"), count(node.retries).into()),
            (number("reconnects"), count(node.reconnects).into()),
            (number("longest pause"), seconds(pause)),
            (number("CPUs of yb-tserver"), usage.cpu_cores.map(rate).into()),
            (number("storage reads/s"), usage.storage_reads_per_s.map(rate).into()),
            (number("storage writes/s"), usage.storage_writes_per_s.map(rate).into()),
        ]
    })
}

/// The disks of the server.
pub(super) fn devices(record: &Record) -> Table {
    let devices = each(record, |stage| Summary { record, stage }.devices());
    Table::of("devices", devices, |(stage, device)| {
        let usage = device.usage;
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("device"), usage.name.as_str().into()),
            (word("used for"), device.roles.join(", ").into()),
            (number("reads/s"), rate(usage.reads_per_s).into()),
            (number("read MB/s"), Cell::decimal(Some(usage.read_mb_s))),
            (number("writes/s"), rate(usage.writes_per_s).into()),
            (number("write MB/s"), Cell::decimal(Some(usage.write_mb_s))),
            (number("busy"), Cell::share(Some(usage.busy_share))),
            (number("queue depth"), Cell::decimal(usage.queue_depth)),
            (number("of its maximum"), Cell::share(device.load)),
        ]
    })
}

/// CPU, blocks and bottleneck of each stage, if there are several.
pub(super) fn resources(record: &Record) -> Table {
    let stages = Summary::of_each(record);
    Table::of("CPU and blocks", several(&stages), |summary| {
        let io = summary.stage.io.as_ref();
        [
            (word("stage"), summary.stage.name.as_str().into()),
            (word("bottleneck"), summary.bottleneck_word().into()),
            (number("machine CPU"), Cell::share(summary.stage.machine_busy_share)),
            (number("server"), Cell::share(summary.server_machine_share())),
            (number("client"), Cell::share(summary.client_machine_share())),
            (number("LIOPS"), io.and_then(|io| io.liops).map(rate).into()),
            (number("blocks per row"), io.and_then(|io| io.blocks_per_row).map(rate).into()),
            (number("hits"), Cell::share(io.and_then(|io| io.hit_ratio))),
            (number("PIOPS"), io.and_then(|io| io.piops).map(rate).into()),
            (number("WAL MB/s"), Cell::decimal(io.and_then(|io| io.wal_mb_s))),
        ]
    })
}

/// The wait events of the sessions, if they were sampled.
pub(super) fn waits(record: &Record) -> Table {
    let waits = each(record, |stage| {
        let probes = stage.probes.as_ref().filter(|_| stage.statement.is_none());
        probes.into_iter().flat_map(|probes| &probes.waits)
    });
    let table = Table::of("wait events", waits, |(stage, wait)| {
        let share = Cell::share(Some(wait.share)).with_bar(wait.share);
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("event"), wait.event.as_str().into()),
            (number("share of the session time"), share),
        ]
    });
    table.with_note("CPU: active without a wait event. idle: waiting for the client.")
}

/// The active session history of the nodes.
pub(super) fn activity(record: &Record) -> Table {
    let events = each(record, |stage| &stage.activity);
    let table = Table::of("active session history", events, |(stage, event)| {
        [
            (word("stage"), stage_name(record, stage).into()),
            (word("node"), event.node.as_str().into()),
            (word("component"), event.component.as_str().into()),
            (word("class"), event.class.as_str().into()),
            (word("event"), event.event.as_str().into()),
            (number("active"), rate(event.active).into()),
        ]
    });
    table.with_note("mean number of sessions or requests. Waits of YSQL for the tserver contain the time of its events: do not add them up.")
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
        since(each, |counters| counters.blks_hit).map(count)
    }),
    ("blocks of the database read", |each| since(each, |found| found.blks_read).map(count)),
    ("transactions committed", |each| since(each, |found| found.xact_commit).map(count)),
    ("transactions rolled back", |each| since(each, |found| found.xact_rollback).map(count)),
    ("rows returned by scans", |each| since(each, |found| found.tup_returned).map(count)),
    ("rows fetched by index scans", |each| since(each, |found| found.tup_fetched).map(count)),
    ("deadlocks", |each| since(each, |found| found.deadlocks).map(count)),
    ("temporary files", |each| since(each, |found| found.temp_files).map(count)),
    ("size of temporary files", |each| since(each, |found| found.temp_bytes).map(bytes_text)),
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

/// What was counted during the stage.
fn since(usage: &DatabaseUse, pick: fn(&DatabaseCounters) -> u64) -> Option<u64> {
    Some(pick(usage.after.as_ref()?).saturating_sub(pick(usage.before.as_ref()?)))
}

/// Counters as rows, stages as columns.
pub(super) fn database(record: &Record) -> Table {
    let stages: Vec<_> = each(record, |stage| &stage.database).collect();
    let rows = COUNTERS.iter().filter_map(|(name, pick)| {
        let found: Vec<_> = stages.iter().map(|(_, usage)| pick(usage)).collect();
        let is_counted = found.iter().any(Option::is_some);
        let cells = found.into_iter().map(Cell::from);
        is_counted.then(|| std::iter::once((*name).into()).chain(cells).collect())
    });
    let is_single = stages.len() == 1;
    let columns =
        stages.iter().map(|(stage, _)| number(if is_single { "value" } else { &stage.name }));
    let columns = std::iter::once(word("counter")).chain(columns);
    Table::new("counters of the database", columns, rows)
        .with_note("of the whole stage, including warm-up and drain")
}

/// The checks of the data.
pub(super) fn checks(record: &Record) -> Table {
    Table::of("checks of the data", &record.checks, |check| {
        let result = match (check.held, check.unknown) {
            (_, true) => "cannot be verified",
            (true, false) => "as expected",
            (false, false) => "DIFFERENT",
        };
        [
            (word("check"), check.name.as_str().into()),
            (word("expected"), check.expected.as_str().into()),
            (word("found"), check.found.as_str().into()),
            (word("result"), result.into()),
        ]
    })
}
