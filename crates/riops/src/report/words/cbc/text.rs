//! The result of a block check as text: its steps, its selects, the storage validation.

use super::super::super::block::Block;
use super::super::super::format::{bytes_text, count, duration_us, percent, rate};
use super::super::super::model::{cpu_text, device};
use super::validation::{self, Uncached};
use crate::plan::CbcRun;
use crate::record::{LatencySummary, Record, StageRecord};
use crate::workload::cbc::Step;

/// Steps, selects by several sessions, and the storage validation.
pub(super) fn result(block: &mut Block, record: &Record) {
    steps(block, record);
    for stage in &record.stages {
        uncached(block, record, stage);
    }
    let loops: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_none()).collect();
    if !loops.is_empty() {
        block.gap();
        queries(block, &loops);
    }
    block.gap();
    validation_table(block, record);
    if let Some(cost) = probe_cost(record) {
        block.line("probes", &format!("{} of one CPU, over all steps", percent(cost)));
    }
}

fn steps(block: &mut Block, record: &Record) {
    block.line(
        "",
        &format!(
            "{:<12}  {:>8}  {:>7} {:>7} {:>7}  {:>7}  {:>5}  {:>6}  {:>5}  time spent",
            "step", "time", "read", "write", "total", "IOPS", "busy", "WAL", "CPU"
        ),
    );
    let mut first = true;
    for stage in &record.stages {
        let Some(statement) = &stage.statement else {
            continue;
        };
        let mb_s =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |mb_s| format!("{mb_s:.1}"));
        let device = device(stage);
        let mut told = vec![validation::time_spent(stage)];
        if let number @ 1.. = validation::checkpoints(stage) {
            told.push(format!("checkpoints {number}"));
        }
        if let bytes @ 1.. = temp_bytes(stage) {
            told.push(format!("temporary files {}", bytes_text(bytes)));
        }
        told.retain(|part| !part.is_empty());
        // The kernel counts it in steps of some milliseconds.
        let busy = device.filter(|_| stage.seconds >= BUSY_SECONDS_MIN);
        let optional = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
        block.line(
            if first { "steps" } else { "" },
            &format!(
                "{:<12}  {:>8}  {:>7} {:>7} {:>7}  {:>7}  {:>5}  {:>6}  {:>5}  {}",
                stage.name,
                duration_us(stage.seconds * 1e6),
                mb_s(device.map(|device| device.read_mb_s)),
                mb_s(device.map(|device| device.write_mb_s)),
                mb_s(device.map(|device| device.read_mb_s + device.write_mb_s)),
                device.map_or_else(
                    || "-".to_owned(),
                    |device| rate(device.reads_per_s + device.writes_per_s)
                ),
                optional(busy.map(|device| device.busy_share)),
                mb_s(stage.io.as_ref().and_then(|io| io.wal_mb_s)),
                optional(statement.process_cpu_share),
                told.join("; "),
            ),
        );
        first = false;
    }
    let seen = record.stages.iter().any(|stage| device(stage).is_some());
    block.line(
        "",
        if seen {
            "read, write and total of the device and WAL in MB/s, CPU of the process that ran the step"
        } else {
            "WAL in MB/s; the device of the server's data is not on this machine, or cannot be seen"
        },
    );
    let vacuum = |stage: &StageRecord| stage.statement.as_ref()?.vacuum;
    if let Some(rates) = record.stages.iter().find_map(vacuum) {
        let text = format!(
            "VACUUM by its own count: {:.1} MB/s read, {:.1} MB/s written (MB of 2^20 bytes)",
            rates.read_mib_s, rates.write_mib_s
        );
        block.line("", &text);
    }
}

/// Bytes of temporary files of a stage.
fn temp_bytes(stage: &StageRecord) -> u64 {
    let counters = stage.database.as_ref().and_then(|database| database.before.zip(database.after));
    counters.map_or(0, |(before, after)| after.temp_bytes.saturating_sub(before.temp_bytes))
}

/// A shorter step has no share of time in which the device was busy.
const BUSY_SECONDS_MIN: f64 = 0.1;
const UNCERTAIN: &str = "uncached as far as can be told";

/// Whether `SELECT_u1` and `SELECT_u2` have really read.
fn uncached(block: &mut Block, record: &Record, stage: &StageRecord) {
    if !Step::of_key(&stage.name).is_some_and(Step::is_uncached) {
        return;
    }
    let Some(found) = Uncached::of(stage) else {
        return;
    };
    let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let device = match found.fetched {
        Some(fetched) => format!(", the device read {}", mb(fetched)),
        None => ", the page cache cannot be seen".to_owned(),
    };
    let cold = record.plan.work.get::<CbcRun>().is_some_and(|run| run.cold);
    let (verdict, hint) = match found.verdict() {
        Some(true) => ("uncached", ""),
        Some(false) if cold => ("NOT uncached", ""),
        Some(false) => ("NOT uncached", " (--cold makes it so)"),
        None if found.fetched.is_some() => (UNCERTAIN, " with what it read ahead"),
        None => (UNCERTAIN, ""),
    };
    block.line(
        "caches",
        &format!(
            "{}: {verdict}: {} of its blocks were not in shared buffers ({}){device}{hint}",
            stage.name,
            percent(found.missed),
            mb(found.asked)
        ),
    );
    if let Some(state) = stage.caches.as_ref().filter(|state| !state.reached) {
        let text = format!(
            "--cold could not do it all: shared buffers: {}; page cache: {}",
            state.shared_buffers, state.page_cache
        );
        block.line("", &text);
    }
}

fn queries(block: &mut Block, loops: &[&StageRecord]) {
    block.line(
        "",
        &format!(
            "{:<16} {:>4}  {:>9}  {:>8}  {:>8}  {:>8}  {:>9} {:>9}  {:>5}",
            "select", "-c", "tx/s", "p50", "p99", "max", "read", "write", "busy"
        ),
    );
    for (position, stage) in loops.iter().enumerate() {
        let latency = |pick: fn(&LatencySummary) -> f64| {
            stage
                .session_loop
                .service_us
                .as_ref()
                .map_or_else(|| "-".to_owned(), |latency| duration_us(pick(latency)))
        };
        let device = device(stage);
        let mb_s =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |mb_s| format!("{mb_s:.1}"));
        let none = match stage.transactions {
            0 => "  none ended: it takes a longer --query-duration",
            _ => "",
        };
        block.line(
            if position == 0 { "selects" } else { "" },
            &format!(
                "{:<16} {:>4}  {:>9}  {:>8}  {:>8}  {:>8}  {:>9} {:>9}  {:>5}{none}",
                validation::script_of(stage).unwrap_or_default(),
                stage.sessions,
                rate(stage.throughput.transactions_per_s),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                latency(|latency| latency.max),
                mb_s(device.map(|device| device.read_mb_s)),
                mb_s(device.map(|device| device.write_mb_s)),
                device.map_or_else(|| "-".to_owned(), |device| percent(device.busy_share)),
            ),
        );
        for error in &stage.session_loop.errors {
            let text = format!("{} × {}: {}", count(error.count), error.sqlstate, error.sample);
            block.line("", &text);
        }
    }
}

fn validation_table(block: &mut Block, record: &Record) {
    let Some(limit) = &record.target.disk_limit else {
        if record.target.storage.as_ref().is_some_and(|storage| storage.device.is_some()) {
            let text = "what it can do is not known yet: riops doctor --disk measures it, once";
            block.line("device", text);
        }
        return;
    };
    let db_gb = validation::true_bytes(record)
        .map_or_else(String::new, |bytes| format!(", DB {}", bytes_text(bytes)));
    block.line(
        "device",
        &format!(
            "{}: {:.0} MB/s read and {:.0} MB/s written in a row, {:.0} MB/s read at random ({}, {}); aim 90 %",
            limit.device,
            limit.sequential_read.mb_s,
            limit.sequential_write.mb_s,
            limit.random_read.mb_s,
            limit.tool,
            limit.measured_at.strftime("%F")
        ),
    );
    let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
    block.line("", &format!("{}, RAM {ram_gb:.1} GB{db_gb}", cpu_text(record)));
    let lines = validation::lines(record);
    if lines.is_empty() {
        block.line("storage", "no step took a second: too short to be held against it");
        return;
    }
    block.line(
        "",
        &format!(
            "{:<16} {:<11} {:>9} {:>9} {:>6}  held back by",
            "script", "metric", "best", "maximum", "% max"
        ),
    );
    for (position, line) in lines.iter().enumerate() {
        let text = format!(
            "{:<16} {:<11} {:>9.1} {:>9.1} {:>6}  {}",
            line.script,
            line.metric.as_str(),
            line.best_mb_s,
            line.most_mb_s,
            percent(line.share()),
            line.held_back.as_deref().unwrap_or(""),
        );
        block.line(if position == 0 { "storage" } else { "" }, text.trim_end());
    }
}

/// CPU of the probes over all steps, as a share of one processor.
pub(super) fn probe_cost(record: &Record) -> Option<f64> {
    let of = |stage: &StageRecord| Some((stage.probes.as_ref()?.cpu_s, stage.seconds));
    let (cpu_s, seconds) = record
        .stages
        .iter()
        .filter_map(of)
        .fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    (seconds > 0.0).then(|| cpu_s / seconds)
}
