//! The text report of a `cbc` run: steps, SELECTs, storage validation.

use super::tables;
use super::validation::{self, Uncached};
use crate::plan::CbcRun;
use crate::record::{Record, StageRecord};
use crate::report::document::Document;
use crate::report::setup::cpu_text;
use crate::units::format::{bytes_text, count, joined, percent};
use crate::workload::cbc::Step;

/// Adds the steps and the SELECTs of several sessions.
pub(super) fn results(document: &mut Document, record: &Record) {
    document.table(tables::steps(record));
    let loops: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_none()).collect();
    if loops.is_empty() {
        return;
    }
    document.gap();
    document.table(tables::selects(record));
    for stage in loops {
        let script = validation::script_of(stage).unwrap_or_default();
        if stage.transactions == 0 {
            document.line("", format!("{script}: none completed; increase --query-duration"));
        }
        for error in &stage.session_loop.errors {
            let number = count(error.count);
            document.line("", format!("{script}: {number} × {}: {}", error.sqlstate, error.sample));
        }
    }
}

/// Adds the storage validation, and what the rates depend on.
pub(super) fn details(document: &mut Document, record: &Record) {
    for stage in &record.stages {
        uncached(document, record, stage);
    }
    let vacuum = |stage: &StageRecord| stage.statement.as_ref()?.vacuum;
    if let Some(rates) = record.stages.iter().find_map(vacuum) {
        let rates =
            format!("{:.1} MB/s read, {:.1} MB/s written", rates.read_mib_s, rates.write_mib_s);
        document.line("vacuum", format!("VACUUM VERBOSE reported {rates} (MB of 2^20 bytes)"));
    }
    validation_table(document, record);
    if let Some(cost) = probe_cost(record) {
        document.line("probes", format!("used {} of one CPU, over all steps", percent(cost)));
    }
}

const UNCERTAIN: &str = "cache state uncertain";

/// Reports whether `SELECT_u1` and `SELECT_u2` really read from the device.
fn uncached(document: &mut Document, record: &Record, stage: &StageRecord) {
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
    let (missed, bytes) = (percent(found.missed_share), mb(found.requested_bytes));
    let blocks = format!("{missed} of its blocks were not in shared buffers ({bytes})");
    document.line("caches", format!("{}: {verdict}: {blocks}{device}{hint}", stage.name));
    if let Some(state) = stage.caches.as_ref().filter(|state| !state.reached) {
        document.line("", format!("--cold did not empty all caches: {}", state.text()));
    }
}

/// Whether the device of the server's data is known.
pub(super) fn has_device(record: &Record) -> bool {
    record.target.storage.as_ref().is_some_and(|storage| storage.device.is_some())
}

fn validation_table(document: &mut Document, record: &Record) {
    let Some(limit) = &record.target.disk_limit else {
        if has_device(record) {
            let text = "maximum rates unknown: measure them once with riops doctor --disk";
            document.line("device", text);
        }
        return;
    };
    let db_gb = validation::dataset_bytes(record)
        .map_or_else(String::new, |bytes| format!(", DB {}", bytes_text(bytes)));
    let rates = [
        ("sequential read", &limit.sequential_read),
        ("sequential write", &limit.sequential_write),
        ("random read", &limit.random_read),
    ];
    let rates = joined(rates.map(|(name, rate)| format!("{name} {:.0} MB/s", rate.mb_s)), ", ");
    let (device, tool, day) = (&limit.device, &limit.tool, limit.measured_at.strftime("%F"));
    document.line("device", format!("{device}: {rates} ({tool}, {day}); target: 90% of these"));
    let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
    document.line("machine", format!("{}, RAM {ram_gb:.1} GB{db_gb}", cpu_text(record)));
    let storage = tables::storage(record);
    if storage.rows.is_empty() {
        document.line("storage", "not validated: no stage took 1 s or longer");
    }
    document.table(storage);
}

/// Returns the CPU use of the probes over all stages, as a share of one processor.
pub(super) fn probe_cost(record: &Record) -> Option<f64> {
    let probed = || record.stages.iter().filter_map(|stage| Some((stage, stage.probes.as_ref()?)));
    let cpu_s: f64 = probed().map(|(_, probes)| probes.cpu_s).sum();
    let seconds: f64 = probed().map(|(stage, _)| stage.seconds).sum();
    (seconds > 0.0).then(|| cpu_s / seconds)
}
