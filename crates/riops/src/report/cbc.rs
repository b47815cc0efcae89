//! `cbc` as text: its steps, the storage validation, and the key/value lines of its collector.

use std::fmt::Write as _;

use super::format::{count, duration_us, percent, rate};
use super::terminal::Block;
use super::validation::{self, Uncached, device};
use crate::plan::{CbcDataset, CbcRun, DatasetPlan, WorkPlan};
use crate::record::{Record, StageRecord};
use crate::workload::cbc::Step;

const GB: f64 = 1e9;

/// What was run.
pub(super) fn work(run: &CbcRun) -> String {
    let auto = if run.auto_size { " (three times the memory)" } else { "" };
    let cold =
        if run.cold { ", the caches to be emptied before SELECT_u1 and SELECT_u2" } else { "" };
    let list: Vec<_> = run.query_sessions.iter().map(ToString::to_string).collect();
    let queries = if list.is_empty() {
        String::new()
    } else {
        let each = duration_us(run.query_duration_s * 1e6);
        format!("; its selects by {} sessions for {each} each", list.join(", "))
    };
    format!("Complete Block Check, size {} GB{auto}{cold}{queries}", run.size_gb)
}

/// What it made.
pub(super) fn dataset(dataset: &CbcDataset) -> String {
    let sizes = match (dataset.table_bytes, dataset.index_bytes) {
        (None, _) => String::new(),
        (Some(table), None) => format!(", {}", bytes_text(table)),
        (Some(table), Some(index)) => {
            format!(", {} and an index of {}", bytes_text(table), bytes_text(index))
        }
    };
    format!(
        "settings_loop: {} rows, {} copies of {} settings{sizes}",
        count(dataset.rows()),
        count(dataset.copies),
        dataset.settings_rows
    )
}

/// In GB, or in MB below a tenth of one.
pub(super) fn bytes_text(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < GB / 10.0 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / GB),
    }
}

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
    let cold = matches!(&record.plan.work, WorkPlan::Cbc(run) if run.cold);
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
        let latency = |pick: fn(&crate::metrics::LatencySummary) -> f64| {
            stage
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
        for error in &stage.errors {
            let text = format!("{} × {}: {}", count(error.count), error.sqlstate, error.sample);
            block.line("", &text);
        }
    }
}

/// What CPU the machine has, in a few words.
pub(super) fn cpu_text(record: &Record) -> String {
    let machine = &record.client.machine;
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    format!("{} × {model}", machine.cpus)
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
    let ram_gb = record.client.machine.memory_bytes as f64 / GB;
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

/// The lines of the benchmark's collector: key, tab, value; times in milliseconds, sizes in bytes, rates in
/// the server's MB per second. A step that did not end has no line.
#[must_use]
pub fn cbc_text(record: &Record) -> String {
    let mut text = String::new();
    let address = &record.target.address;
    let host = if record.client.shares_machine_with_server {
        record.client.machine.host.as_str()
    } else {
        address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host)
    };
    let _ = writeln!(text, "SERVER\t{host}");
    for stage in record.stages.iter().filter(|stage| stage.statement.is_some()) {
        let _ = writeln!(text, "{}\t{:.3}", stage.name, stage.seconds * 1e3);
    }
    if let DatasetPlan::Cbc(dataset) = &record.target.dataset.parameters {
        for (key, bytes) in [("SIZE_T", dataset.table_bytes), ("SIZE_I", dataset.index_bytes)] {
            if let Some(bytes) = bytes {
                let _ = writeln!(text, "{key}\t{bytes}");
            }
        }
    }
    if let Some(rates) = record.stages.iter().find_map(|stage| stage.statement.as_ref()?.vacuum) {
        let _ = writeln!(
            text,
            "READ_RATE\t{:.3}\nWRITE_RATE\t{:.3}",
            rates.read_mib_s, rates.write_mib_s
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{example_cbc, run_text};

    #[test]
    fn the_closing_text_of_a_block_check() {
        insta::assert_snapshot!(run_text(&example_cbc(), "no (--no-store)"));
    }

    #[test]
    fn the_collector_s_lines_have_keys_values_and_a_tab_between() {
        insta::assert_snapshot!(cbc_text(&example_cbc()));
    }

    #[test]
    fn without_a_measured_device_the_text_says_how_to_measure_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        record.target.storage = Some(crate::probe::storage::Storage {
            device: Some("vda".to_owned()),
            ..Default::default()
        });
        let text = run_text(&record, "no");
        assert!(text.contains("riops doctor --disk measures it, once"), "{text}");
        assert!(!text.contains("% max"), "{text}");
        // Neither a maximum nor a device: nothing to measure.
        record.target.storage = None;
        assert!(!run_text(&record, "no").contains("measures it, once"));
    }
}
