//! The text report of a `cbc` run: steps, SELECTs, storage validation.

use super::super::super::block::Block;
use super::super::super::columns::{Align, Columns};
use super::super::super::format::{bytes_text, count, duration_us, percent, rate};
use super::super::super::model::{cpu_text, device};
use super::validation::{self, Uncached};
use crate::plan::CbcRun;
use crate::record::{LatencySummary, Record, StageRecord};
use crate::workload::cbc::Step;

/// Columns of a table of rates: megabytes per second, or `-` if unknown.
fn mb_s(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |mb_s| format!("{mb_s:.1}"))
}

/// Adds the steps and the SELECTs of several sessions.
pub(super) fn headline(block: &mut Block, record: &Record) {
    steps(block, record);
    let loops: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_none()).collect();
    if !loops.is_empty() {
        block.gap();
        queries(block, &loops);
    }
}

/// Adds the storage validation, and what the rates depend on.
pub(super) fn details(block: &mut Block, record: &Record) {
    for stage in &record.stages {
        uncached(block, record, stage);
    }
    let vacuum = |stage: &StageRecord| stage.statement.as_ref()?.vacuum;
    if let Some(rates) = record.stages.iter().find_map(vacuum) {
        let text = format!(
            "VACUUM VERBOSE reported {:.1} MB/s read, {:.1} MB/s written (MB of 2^20 bytes)",
            rates.read_mib_s, rates.write_mib_s
        );
        block.line("vacuum", &text);
    }
    validation_table(block, record);
    if let Some(cost) = probe_cost(record) {
        block.line("probes", &format!("used {} of one CPU, over all steps", percent(cost)));
    }
}

fn steps(block: &mut Block, record: &Record) {
    let right = |title| (title, Align::Right);
    let mut table = Columns::new([
        ("step", Align::Left),
        right("time"),
        right("read"),
        right("write"),
        right("total"),
        right("IOPS"),
        right("busy"),
        right("WAL"),
        right("CPU"),
        ("time spent", Align::Left),
        ("notes", Align::Left),
    ]);
    for stage in &record.stages {
        let Some(statement) = &stage.statement else {
            continue;
        };
        let device = device(stage);
        // The kernel counts busy time in units of a few milliseconds.
        let busy = device.filter(|_| stage.seconds >= BUSY_SECONDS_MIN);
        let optional = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
        table.row([
            stage.name.clone(),
            duration_us(stage.seconds * 1e6),
            mb_s(device.map(|device| device.read_mb_s)),
            mb_s(device.map(|device| device.write_mb_s)),
            mb_s(device.map(|device| device.read_mb_s + device.write_mb_s)),
            device.map_or_else(
                || "-".to_owned(),
                |device| rate(device.reads_per_s + device.writes_per_s),
            ),
            optional(busy.map(|device| device.busy_share)),
            mb_s(stage.io.as_ref().and_then(|io| io.wal_mb_s)),
            optional(statement.process_cpu_share),
            validation::time_spent(stage),
            notes(stage),
        ]);
    }
    block.table("steps", &table);
    let has_device = record.stages.iter().any(|stage| device(stage).is_some());
    block.line(
        "",
        if has_device {
            "device rates and WAL in MB/s; CPU of the server process that ran the step"
        } else {
            "WAL in MB/s; the device of the server's data is on another machine or cannot be observed"
        },
    );
}

/// The checkpoints and the temporary files of a step.
fn notes(stage: &StageRecord) -> String {
    let mut notes = Vec::new();
    if let number @ 1.. = validation::checkpoints(stage) {
        notes.push(format!("checkpoints {number}"));
    }
    if let bytes @ 1.. = temp_bytes(stage) {
        notes.push(format!("temporary files {}", bytes_text(bytes)));
    }
    notes.join("; ")
}

/// Returns the bytes of temporary files that a stage wrote.
fn temp_bytes(stage: &StageRecord) -> u64 {
    let counters = stage.database.as_ref().and_then(|database| database.before.zip(database.after));
    counters.map_or(0, |(before, after)| after.temp_bytes.saturating_sub(before.temp_bytes))
}

/// Minimum length of a step for which the busy share of the device is reported, in seconds.
const BUSY_SECONDS_MIN: f64 = 0.1;
const UNCERTAIN: &str = "possibly uncached";

/// Reports whether `SELECT_u1` and `SELECT_u2` really read from the device.
fn uncached(block: &mut Block, record: &Record, stage: &StageRecord) {
    if !Step::of_key(&stage.name).is_some_and(Step::is_uncached) {
        return;
    }
    let Some(found) = Uncached::of(stage) else {
        return;
    };
    let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let device = match found.device_bytes {
        Some(bytes) => format!(", the device read {}", mb(bytes)),
        None => ", device reads cannot be observed".to_owned(),
    };
    let cold = record.plan.work.get::<CbcRun>().is_some_and(|run| run.cold);
    let (verdict, hint) = match found.verdict() {
        Some(true) => ("uncached", ""),
        Some(false) if cold => ("CACHED", ""),
        Some(false) => ("CACHED", " (--cold empties the caches)"),
        None if found.device_bytes.is_some() => (UNCERTAIN, " including read-ahead"),
        None => (UNCERTAIN, ""),
    };
    block.line(
        "caches",
        &format!(
            "{}: {verdict}: {} of its blocks were not in shared buffers ({}){device}{hint}",
            stage.name,
            percent(found.missed_share),
            mb(found.requested_bytes)
        ),
    );
    if let Some(state) = stage.caches.as_ref().filter(|state| !state.reached) {
        let text = format!(
            "--cold did not empty all caches: shared buffers: {}; page cache: {}",
            state.shared_buffers, state.page_cache
        );
        block.line("", &text);
    }
}

fn queries(block: &mut Block, loops: &[&StageRecord]) {
    let right = |title| (title, Align::Right);
    let mut table = Columns::new([
        ("SELECT", Align::Left),
        right("-c"),
        right("tx/s"),
        right("p50"),
        right("p99"),
        right("max"),
        right("read"),
        right("write"),
        right("busy"),
    ]);
    for stage in loops {
        let latency = |pick: fn(&LatencySummary) -> f64| {
            let service = stage.session_loop.service_us.as_ref();
            service.map_or_else(|| "-".to_owned(), |latency| duration_us(pick(latency)))
        };
        let device = device(stage);
        table.row([
            validation::script_of(stage).unwrap_or_default().to_owned(),
            stage.sessions.to_string(),
            rate(stage.throughput.transactions_per_s),
            latency(|latency| latency.p50),
            latency(|latency| latency.p99),
            latency(|latency| latency.max),
            mb_s(device.map(|device| device.read_mb_s)),
            mb_s(device.map(|device| device.write_mb_s)),
            device.map_or_else(|| "-".to_owned(), |device| percent(device.busy_share)),
        ]);
    }
    block.table("SELECTs", &table);
    for stage in loops {
        let script = validation::script_of(stage).unwrap_or_default();
        if stage.transactions == 0 {
            block.line("", &format!("{script}: none completed; increase --query-duration"));
        }
        for error in &stage.session_loop.errors {
            let number = count(error.count);
            block.line("", &format!("{script}: {number} × {}: {}", error.sqlstate, error.sample));
        }
    }
}

fn validation_table(block: &mut Block, record: &Record) {
    let Some(limit) = &record.target.disk_limit else {
        if record.target.storage.as_ref().is_some_and(|storage| storage.device.is_some()) {
            let text = "maximum rates unknown: measure them once with riops doctor --disk";
            block.line("device", text);
        }
        return;
    };
    let db_gb = validation::dataset_bytes(record)
        .map_or_else(String::new, |bytes| format!(", DB {}", bytes_text(bytes)));
    block.line(
        "device",
        &format!(
            "{}: sequential read {:.0} MB/s, sequential write {:.0} MB/s, random read {:.0} MB/s ({}, {}); target: 90% of these",
            limit.device,
            limit.sequential_read.mb_s,
            limit.sequential_write.mb_s,
            limit.random_read.mb_s,
            limit.tool,
            limit.measured_at.strftime("%F")
        ),
    );
    let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
    block.line("machine", &format!("{}, RAM {ram_gb:.1} GB{db_gb}", cpu_text(record)));
    let lines = validation::lines(record);
    if lines.is_empty() {
        block.line("storage", "not validated: no stage took 1 s or longer");
        return;
    }
    let mut table = Columns::new([
        ("script", Align::Left),
        ("metric", Align::Left),
        ("best", Align::Right),
        ("maximum", Align::Right),
        ("% max", Align::Right),
        ("bottleneck", Align::Left),
    ]);
    for line in lines {
        table.row([
            line.script.to_owned(),
            line.metric.as_str().to_owned(),
            format!("{:.1}", line.best_mb_s),
            format!("{:.1}", line.max_mb_s),
            percent(line.share()),
            line.bottleneck.unwrap_or_default(),
        ]);
    }
    block.table("storage", &table);
}

/// Returns the CPU use of the probes over all stages, as a share of one processor.
pub(super) fn probe_cost(record: &Record) -> Option<f64> {
    let of = |stage: &StageRecord| Some((stage.probes.as_ref()?.cpu_s, stage.seconds));
    let (cpu_s, seconds) = record
        .stages
        .iter()
        .filter_map(of)
        .fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    (seconds > 0.0).then(|| cpu_s / seconds)
}
