//! What the sessions waited for.

use crate::document::Document;
use crate::sections::{items_of_stages, stage_name};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Summary;
use riops_model::record::{Record, WaitShare};
use riops_model::units::format::{joined, number_of, percent};

/// Wait events that are named.
const NAMED_MAX: usize = 6;
/// Wait events with a smaller share are not named.
const SHARE_MIN: f64 = 0.005;

/// The wait events of the sessions, and what it cost to sample them.
pub(crate) fn waits(document: &mut Document, summary: &Summary<'_>) {
    let stage = summary.stage;
    let Some((probes, waits)) = stage.probes.as_ref().zip(summary.waits()) else {
        return;
    };
    let named = named(waits.iter(), NAMED_MAX);
    let cost = percent(probes.cpu_s / stage.seconds.max(f64::MIN_POSITIVE));
    let samples = number_of(probes.looks, "sample");
    document.line("wait events", format!("{named} ({samples}, {cost} of one CPU)"));
    let replication = probes.others.iter().filter(|other| other.is_replication());
    let texts = replication
        .map(|other| format!("{}: active {} of the time", other.name, percent(other.active)));
    document.lines("", texts);
}

/// What a wait event means (PostgreSQL documentation, "The Cumulative Statistics System", tables of wait events). Names
/// that differ between versions are written as in the latest one.
pub(crate) fn meaning(event: &str) -> Option<&'static str> {
    let meaning = match event {
        "IPC:SyncRep" => "commits wait for a synchronous standby",
        "IO:WalSync" | "IO:WALSync" => "commits wait until the WAL is on the device",
        "IO:WalWrite" | "IO:WALWrite" => "the WAL is being written",
        "LWLock:WALWrite" | "LWLock:WALWriteLock" => {
            "commits wait for the write of the WAL by another session"
        }
        "LWLock:WALInsert" | "LWLock:wal_insert" => {
            "changes wait to insert WAL into the WAL buffers"
        }
        "IO:DataFileRead" | "IO:AioIoCompletion" => {
            "blocks are read that are not in shared buffers"
        }
        "IO:DataFileWrite" | "IO:DataFileFlush" => {
            "sessions write blocks to make room in shared buffers"
        }
        "IO:DataFileExtend" => "tables grow",
        "IO:BufFileRead" | "IO:BufFileWrite" => "temporary files: work_mem is too small",
        "LWLock:BufferContent"
        | "LWLock:buffer_content"
        | "Buffer:BufferExclusive"
        | "Buffer:BufferShared" => "sessions use the same blocks",
        "IPC:BufferIo" | "IPC:BufferIO" | "LWLock:BufferIO" => {
            "sessions wait for a block that another one reads"
        }
        "LWLock:BufferMapping" | "LWLock:buffer_mapping" => {
            "blocks are exchanged in shared buffers"
        }
        "LWLock:LockManager" | "LWLock:lock_manager" => {
            "more tables, indexes or partitions are locked than have a fast path"
        }
        "LWLock:ProcArray" | "LWLock:ProcArrayLock" => {
            "sessions take snapshots or end transactions"
        }
        "Timeout:VacuumDelay" | "Timeout:VacuumCostDelay" => "VACUUM sleeps (vacuum_cost_delay)",
        _ => return None,
    };
    Some(meaning)
}

/// The most frequent events with their shares.
pub(crate) fn named<'a>(waits: impl IntoIterator<Item = &'a WaitShare>, most: usize) -> String {
    let named = waits.into_iter().filter(|wait| wait.share >= SHARE_MIN).take(most);
    joined(named.map(|wait| format!("{} {}", wait.event, percent(wait.share))), " · ")
}

/// The wait events of the sessions, if they were sampled.
pub(crate) fn table(record: &Record) -> Table {
    let waits = items_of_stages(record, |stage| {
        let probes = stage.probes.as_ref().filter(|_| stage.statement.is_none());
        probes.into_iter().flat_map(|probes| &probes.waits)
    });
    let table = Table::from_items("wait events", waits, |(stage, wait)| {
        let share = Cell::share(Some(wait.share)).with_bar(wait.share);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("event"), wait.event.as_str().into()),
            (number_column("share of the session time"), share),
        ]
    });
    table.with_note("CPU: active without a wait event. idle: waiting for the client.")
}
