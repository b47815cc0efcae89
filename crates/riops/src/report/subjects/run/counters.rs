//! Tables of what was counted: errors, operations, sessions, nodes, devices, the database, the machine.

use crate::figure::{DeviceLoad, Summary};
use crate::record::{
    ActivityRecord, Check, DatabaseUse, ErrorEntry, NodeRecord, OperationRecord, Record,
    SessionOperation, SessionRecord, StageRecord, StepRecord, WaitShare,
};
use crate::report::latency::latency_cell;
use crate::report::table::{Cell, Entry, Table, number, word};
use crate::units::format::{bytes_text, count, duration_us, percent, rate};

/// What a stage has, with the stage and whether the run has others.
struct Of<'a, T> {
    item: T,
    stage: &'a StageRecord,
    is_one_of_several: bool,
}

impl<T> Of<'_, T> {
    /// The name of the stage, if the run has several.
    fn stage_name(&self) -> Cell {
        if self.is_one_of_several { self.stage.name.as_str().into() } else { "".into() }
    }
}

/// The items of all stages.
fn each<'a, T, I: IntoIterator<Item = T>>(
    record: &'a Record,
    items: impl Fn(&'a StageRecord) -> I,
) -> Vec<Of<'a, T>> {
    let is_one_of_several = record.stages.len() > 1;
    let of_stage =
        |stage| items(stage).into_iter().map(move |item| Of { item, stage, is_one_of_several });
    record.stages.iter().flat_map(of_stage).collect()
}

fn seconds(seconds: Option<f64>) -> Cell {
    seconds.map(|seconds| duration_us(seconds * 1e6)).into()
}

/// Errors by SQLSTATE.
pub(super) fn errors(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, &ErrorEntry>> = each(record, |stage| &stage.session_loop.errors);
    Table::of(
        "errors",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("SQLSTATE"), |of| of.item.sqlstate.as_str().into()),
            (word("message"), |of| match of.item.more_samples.len() {
                0 => of.item.sample.as_str().into(),
                more => format!("{} (and {more} other messages)", of.item.sample).into(),
            }),
            (number("errors"), |of| count(of.item.count).into()),
            (number("retried"), |of| count(of.item.retried).into()),
            (number("time in attempts"), |of| {
                seconds(Some(of.item.attempts_s).filter(|&seconds| seconds > 0.0))
            }),
            (number("longest without success"), |of| seconds(of.item.without_success_s)),
            (number("until 90% of the rate"), |of| seconds(of.item.until_90_percent_s)),
        ],
    )
    .filled()
}

/// The steps of the profile of a rate.
pub(super) fn steps(record: &Record) -> Option<Table> {
    fn missing(of: &Of<'_, &StepRecord>) -> Cell {
        let counts = [
            (of.item.failed, "failed"),
            (of.item.skipped, "skipped"),
            (of.item.unanswered, "in flight at the end"),
            (of.item.not_started, "not started"),
        ];
        let parts = counts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<_> =
            parts.map(|(number, what)| format!("{} {what}", count(number))).collect();
        parts.join(", ").into()
    }
    let steps: Vec<Of<'_, &StepRecord>> = each(record, |stage| &stage.session_loop.steps);
    Table::of(
        "steps of the rate",
        steps,
        [
            (word("stage"), Of::stage_name),
            (number("from"), |of| format!("{:.1} s", of.item.start_s).into()),
            (word("transactions"), |of| of.item.step.to_string().into()),
            (number("due"), |of| count(of.item.due).into()),
            (number("succeeded"), |of| {
                Cell::share(of.item.missing_share().map(|missing| 1.0 - missing))
            }),
            (word("missing"), missing),
            (number("p50"), |of| latency_cell(of.item.response_us.as_ref(), "p50")),
            (number("p99"), |of| latency_cell(of.item.response_us.as_ref(), "p99")),
            (number("max"), |of| latency_cell(of.item.response_us.as_ref(), "max")),
        ],
    )
    .filled()
    .map(|table| {
        table.with_note(
            "response times of the transactions that were due in the step; the steadiness of a rate that changes is not judged",
        )
    })
}

/// Kinds of transactions, if there are several.
pub(super) fn operations(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, &OperationRecord>> = each(record, |stage| {
        Some(&stage.session_loop.operations).filter(|all| all.len() > 1).into_iter().flatten()
    });
    Table::of(
        "operations",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("operation"), |of| of.item.name.as_str().into()),
            (number("transactions"), |of| count(of.item.transactions).into()),
            (number("rows"), |of| count(of.item.rows).into()),
            (number("failed"), |of| count(of.item.failed + of.item.unknown).into()),
            (number("p50"), |of| latency_cell(of.item.latency_us(), "p50")),
            (number("p90"), |of| latency_cell(of.item.latency_us(), "p90")),
            (number("p99"), |of| latency_cell(of.item.latency_us(), "p99")),
            (number("p99.9"), |of| latency_cell(of.item.latency_us(), "p999")),
            (number("max"), |of| latency_cell(of.item.latency_us(), "max")),
        ],
    )
    .filled()
}

/// What each session did.
pub(super) fn sessions(record: &Record) -> Option<Table> {
    fn sum(of: &Of<'_, &SessionRecord>, pick: fn(&SessionOperation) -> u64) -> u64 {
        of.item.operations.iter().map(pick).sum()
    }
    Table::of(
        "sessions",
        each(record, |stage| &stage.session_loop.session_details),
        [
            (word("stage"), Of::stage_name),
            (word("node"), |of| of.item.node.clone().into()),
            (number("session"), |of| count(of.item.number).into()),
            (number("server process"), |of| of.item.server_process.to_string().into()),
            (number("transactions"), |of| {
                let transactions = sum(of, |each| each.transactions);
                let most = of.stage.session_loop.sessions_fairness.max.max(1) as f64;
                Cell::from(count(transactions)).with_bar(transactions as f64 / most)
            }),
            (number("rows"), |of| count(sum(of, |each| each.rows)).into()),
            (number("longest"), |of| {
                let all = of.item.operations.iter().map(|each| each.max_us);
                duration_us(all.fold(0.0, f64::max)).into()
            }),
            (number("time in transactions"), |of| {
                let busy_s: f64 = of.item.operations.iter().map(|each| each.execution_s).sum();
                percent(busy_s / of.stage.seconds.max(f64::MIN_POSITIVE)).into()
            }),
        ],
    )
    .filled()
}

/// The nodes of a cluster, if there are several.
pub(super) fn nodes(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, &NodeRecord>> = each(record, |stage| {
        Some(&stage.session_loop.nodes).filter(|all| all.len() > 1).into_iter().flatten()
    });
    Table::of(
        "nodes",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("node"), |of| {
                let down = if of.item.down { " (down)" } else { "" };
                format!("{}{down}", of.item.node).into()
            }),
            (word("placement"), |of| of.item.placement.clone().into()),
            (number("sessions"), |of| count(of.item.sessions).into()),
            (number("tx/s"), |of| rate(of.item.transactions_per_s).into()),
            (number("share"), |of| Cell::share(Some(of.item.share)).with_bar(of.item.share)),
            (number("service p50"), |of| latency_cell(of.item.service_us.as_ref(), "p50")),
            (number("service p99"), |of| latency_cell(of.item.service_us.as_ref(), "p99")),
            (number("errors"), |of| count(of.item.errors).into()),
            (number("retries"), |of| count(of.item.retries).into()),
            (number("reconnects"), |of| count(of.item.reconnects).into()),
            (number("longest pause"), |of| {
                let outages = of.item.outages.iter().map(|outage| outage.without_success_s);
                seconds(outages.chain(of.item.longest_pause_s).max_by(f64::total_cmp))
            }),
            (number("CPUs of yb-tserver"), |of| {
                of.item.usage.unwrap_or_default().cpu_cores.map(rate).into()
            }),
            (number("storage reads/s"), |of| {
                of.item.usage.unwrap_or_default().storage_reads_per_s.map(rate).into()
            }),
            (number("storage writes/s"), |of| {
                of.item.usage.unwrap_or_default().storage_writes_per_s.map(rate).into()
            }),
        ],
    )
    .filled()
}

/// The disks of the server.
pub(super) fn devices(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, DeviceLoad<'_>>> =
        each(record, |stage| Summary { record, stage }.devices());
    Table::of(
        "devices",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("device"), |of| of.item.usage.name.as_str().into()),
            (word("used for"), |of| of.item.roles.join(", ").into()),
            (number("reads/s"), |of| rate(of.item.usage.reads_per_s).into()),
            (number("read MB/s"), |of| Cell::decimal(Some(of.item.usage.read_mb_s))),
            (number("writes/s"), |of| rate(of.item.usage.writes_per_s).into()),
            (number("write MB/s"), |of| Cell::decimal(Some(of.item.usage.write_mb_s))),
            (number("busy"), |of| Cell::share(Some(of.item.usage.busy_share))),
            (number("queue depth"), |of| Cell::decimal(of.item.usage.queue_depth)),
            (number("of its maximum"), |of| Cell::share(of.item.load)),
        ],
    )
    .filled()
}

/// CPU, blocks and bottleneck of each stage, if there are several.
pub(super) fn resources(record: &Record) -> Option<Table> {
    let rows = Summary::of_each(record);
    Table::of(
        "CPU and blocks",
        rows,
        [
            (word("stage"), |summary| summary.stage.name.as_str().into()),
            (word("bottleneck"), |summary| summary.bottleneck_word().into()),
            (number("machine CPU"), |summary| Cell::share(summary.stage.machine_busy_share)),
            (number("server"), |summary| Cell::share(summary.server_machine_share())),
            (number("client"), |summary| Cell::share(summary.client_machine_share())),
            (number("LIOPS"), |summary| {
                summary.stage.io.as_ref().and_then(|io| io.liops).map(rate).into()
            }),
            (number("blocks per row"), |summary| {
                summary.stage.io.as_ref().and_then(|io| io.blocks_per_row).map(rate).into()
            }),
            (number("hits"), |summary| {
                Cell::share(summary.stage.io.as_ref().and_then(|io| io.hit_ratio))
            }),
            (number("PIOPS"), |summary| {
                summary.stage.io.as_ref().and_then(|io| io.piops).map(rate).into()
            }),
            (number("WAL MB/s"), |summary| {
                Cell::decimal(summary.stage.io.as_ref().and_then(|io| io.wal_mb_s))
            }),
        ],
    )
    .filled()
    .filter(|_| record.stages.len() > 1)
}

/// The wait events of the sessions, if they were sampled.
pub(super) fn waits(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, &WaitShare>> = each(record, |stage| {
        let probes = stage.probes.as_ref().filter(|_| stage.statement.is_none());
        probes.into_iter().flat_map(|probes| &probes.waits)
    });
    let table = Table::of(
        "wait events",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("event"), |of| of.item.event.as_str().into()),
            (number("share of the session time"), |of| {
                Cell::share(Some(of.item.share)).with_bar(of.item.share)
            }),
        ],
    );
    table.with_note("CPU: active without a wait event. idle: waiting for the client.").filled()
}

/// The active session history of the nodes.
pub(super) fn activity(record: &Record) -> Option<Table> {
    let rows: Vec<Of<'_, &ActivityRecord>> = each(record, |stage| &stage.activity);
    let table = Table::of(
        "active session history",
        rows,
        [
            (word("stage"), Of::stage_name),
            (word("node"), |of| of.item.node.as_str().into()),
            (word("component"), |of| of.item.component.as_str().into()),
            (word("class"), |of| of.item.class.as_str().into()),
            (word("event"), |of| of.item.event.as_str().into()),
            (number("active"), |of| rate(of.item.active).into()),
        ],
    );
    table
        .with_note("mean number of sessions or requests. Waits of YSQL for the tserver contain the time of its events: do not add them up.")
        .filled()
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
    let rows = COUNTERS.iter().filter_map(|(name, pick)| {
        let found: Vec<_> = stages.iter().map(|(_, usage)| pick(usage)).collect();
        found.iter().any(Option::is_some).then(|| {
            std::iter::once((*name).into()).chain(found.into_iter().map(Cell::from)).collect()
        })
    });
    let columns =
        stages.iter().map(|(name, _)| number(if stages.len() == 1 { "value" } else { name }));
    let columns = std::iter::once(word("counter")).chain(columns);
    Table::new("counters of the database", columns, rows)
        .with_note("of the whole stage, including warm-up and drain")
        .filled()
}

/// The checks of the data.
pub(super) fn checks(record: &Record) -> Option<Table> {
    let columns: [Entry<&Check>; 4] = [
        (word("check"), |check| check.name.as_str().into()),
        (word("expected"), |check| check.expected.as_str().into()),
        (word("found"), |check| check.found.as_str().into()),
        (word("result"), |check| match (check.held, check.unknown) {
            (_, true) => "cannot be verified".into(),
            (true, false) => "as expected".into(),
            (false, false) => "DIFFERENT".into(),
        }),
    ];
    Table::of("checks of the data", &record.checks, columns).filled()
}
