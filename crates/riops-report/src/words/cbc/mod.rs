//! The texts of `cbc`: steps, SELECTs, storage validation.

mod tables;
mod validation;

use crate::document::{Document, Headline, Hint};
use crate::setup::cpu_text;
use crate::table::Table;
use crate::words::next::Commands;
use crate::words::{DatasetWords, Measure, Words};
use riops_model::figure::Summary;
use riops_model::plan::{CbcDataset, CbcRun, CbcStep, Spec};
use riops_model::record::{ErrorEntry, Record, StageRecord, Status};
use riops_model::units::format::{bytes_text, count, duration_us, joined, percent};
use validation::Uncached;

impl Words for CbcRun {
    fn work(&self) -> String {
        let auto = if self.auto_size { " (three times the memory)" } else { "" };
        let cold = if self.cold { ", caches emptied before SELECT_u1 and SELECT_u2" } else { "" };
        let queries = if self.query_sessions.is_empty() {
            String::new()
        } else {
            let duration = duration_us(self.query_duration_s * 1e6);
            let sessions = joined(&self.query_sessions, ", ");
            format!("; then its SELECTs with {sessions} sessions for {duration} each")
        };
        let cooldown = match self.cooldown_s {
            0.0 => String::new(),
            seconds => format!("; cool-down of {} between the stages", duration_us(seconds * 1e6)),
        };
        format!("Complete Block Check, size {} GB{auto}{cold}{queries}{cooldown}", self.size_gb)
    }

    fn setup(&self, _: &Summary<'_>) -> Option<String> {
        None
    }

    fn measure(&self) -> Measure {
        Measure { counts_transactions: true, ..Measure::new("SELECTs", &self.traits()) }
    }

    fn best(&self, record: &Record) -> Headline {
        tables::figure(record).unwrap_or_else(|| self.measure().best(record))
    }

    /// Adds the steps and the SELECTs of several sessions.
    fn results(&self, document: &mut Document, record: &Record) {
        document.table(tables::steps(record));
        let selects = tables::selects(record);
        if selects.rows.is_empty() {
            return;
        }
        document.gap();
        document.table(selects);
        for stage in record.stages.iter().filter(|stage| stage.statement.is_none()) {
            let script = validation::script_of(stage).unwrap_or_default();
            if stage.transactions == 0 {
                document.line("", format!("{script}: none completed; increase --query-duration"));
            }
            let text = |error: &ErrorEntry| {
                let errors = count(error.count);
                format!("{script}: {errors} × {}: {}", error.sqlstate, error.sample)
            };
            document.lines("", stage.session_loop.errors.iter().map(text));
        }
    }

    /// Adds the storage validation, and what the rates depend on.
    fn details(&self, document: &mut Document, record: &Record) {
        record.stages.iter().for_each(|stage| uncached(document, stage, self.cold));
        let vacuum = |stage: &StageRecord| stage.statement.as_ref()?.vacuum;
        if let Some(rates) = record.stages.iter().find_map(vacuum) {
            let rates =
                format!("{:.1} MB/s read, {:.1} MB/s written", rates.read_mib_s, rates.write_mib_s);
            document.line("vacuum", format!("VACUUM VERBOSE reported {rates} (MB of 2^20 bytes)"));
        }
        storage(document, record);
        let cost = probe_cost(record).map(percent);
        document
            .lines("probes", cost.map(|share| format!("used {share} of one CPU, over all steps")));
    }

    fn for_a_steady_rate(&self) -> Option<&'static str> {
        Some("for a steady rate: a longer --query-duration")
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        "statement".to_owned()
    }

    fn proof(&self, record: &Record) -> &'static str {
        if record.status == Status::Done {
            "the row counts match the definition of the benchmark"
        } else {
            "the row counts of the completed steps match the definition of the benchmark"
        }
    }

    fn next_steps(&self, summary: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        let record = summary.record;
        if record.status != Status::Done {
            return Vec::new();
        }
        let mut hints = Vec::new();
        if has_device(record) && record.target.disk_limit.is_none() {
            let what = "measure the maximum rates of the device";
            hints.push(commands.other("riops doctor --disk", what));
        }
        let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
        if record.client.shares_machine_with_server && self.size_gb < ram_gb {
            let what = "three times the memory, too large for the page cache";
            hints.push(commands.same("--size auto", what));
        }
        if self.query_sessions.is_empty() {
            let options =
                format!("--size {} --query-sessions 1,2,4,8 --query-duration 30s", self.size_gb);
            hints.push(commands.same(&options, "the SELECTs with several concurrent sessions"));
        }
        hints
    }

    fn table_over(&self, records: &[Record]) -> Option<Table> {
        tables::best(records)
    }
}

impl DatasetWords for CbcDataset {
    fn text(&self) -> String {
        let size = |name, bytes| format!(", {name} {}", bytes_text(bytes));
        let table = self.table_bytes.map(|bytes| size("table", bytes));
        let index = self.index_bytes.filter(|_| table.is_some()).map(|bytes| size("index", bytes));
        let sizes = table.unwrap_or_default() + &index.unwrap_or_default();
        let (rows, copies) = (count(self.rows()), count(self.copies));
        let settings = self.settings_rows;
        format!("settings_loop: {rows} rows, {copies} copies of {settings} settings{sizes}")
    }
}

const UNCERTAIN: &str = "cache state uncertain";

/// Reports whether `SELECT_u1` and `SELECT_u2` really read from the device.
fn uncached(document: &mut Document, stage: &StageRecord, cold: bool) {
    if !CbcStep::of_key(&stage.name).is_some_and(CbcStep::is_uncached) {
        return;
    }
    let Some(uncached) = Uncached::from_stage(stage) else {
        return;
    };
    let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let device = match uncached.device_bytes {
        Some(bytes) => format!(", the device read {}", mb(bytes)),
        None => ", device reads cannot be observed".to_owned(),
    };
    let (verdict, hint) = match uncached.verdict() {
        Some(true) => ("uncached", ""),
        Some(false) if cold => ("CACHED", ""),
        Some(false) => ("CACHED", " (--cold empties the caches)"),
        None if uncached.device_bytes.is_some() => (UNCERTAIN, " including read-ahead"),
        None => (UNCERTAIN, ""),
    };
    let (missed, bytes) = (percent(uncached.missed_share), mb(uncached.requested_bytes));
    let blocks = format!("{missed} of its blocks were not in shared buffers ({bytes})");
    document.line("caches", format!("{}: {verdict}: {blocks}{device}{hint}", stage.name));
    if let Some(state) = stage.caches.as_ref().filter(|state| !state.reached) {
        document.line("", format!("--cold did not empty all caches: {}", state.text()));
    }
}

/// Whether the device of the server's data is known.
fn has_device(record: &Record) -> bool {
    record.target.storage.as_ref().is_some_and(|storage| storage.device.is_some())
}

fn storage(document: &mut Document, record: &Record) {
    let Some(limit) = &record.target.disk_limit else {
        if has_device(record) {
            let text = "maximum rates unknown: measure them once with riops doctor --disk";
            document.line("device", text);
        }
        return;
    };
    let rates = [
        ("sequential read", &limit.sequential_read),
        ("sequential write", &limit.sequential_write),
        ("random read", &limit.random_read),
    ];
    let rates = joined(rates.map(|(name, rate)| format!("{name} {:.0} MB/s", rate.mb_s)), ", ");
    let (device, tool, day) = (&limit.device, &limit.tool, limit.measured_at.strftime("%F"));
    document.line("device", format!("{device}: {rates} ({tool}, {day}); target: 90% of these"));
    let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
    let db = validation::dataset_bytes(record).map(bytes_text);
    let db = db.map_or_else(String::new, |size| format!(", DB {size}"));
    document.line("machine", format!("{}, RAM {ram_gb:.1} GB{db}", cpu_text(record)));
    let storage = tables::storage(record);
    if storage.rows.is_empty() {
        document.line("storage", "not validated: no stage took 1 s or longer");
    }
    document.table(storage);
}

/// Returns the CPU use of the probes over all stages, as a share of one processor.
fn probe_cost(record: &Record) -> Option<f64> {
    let probed = || record.stages.iter().filter_map(|stage| Some((stage, stage.probes.as_ref()?)));
    let cpu_s: f64 = probed().map(|(_, probes)| probes.cpu_s).sum();
    let seconds: f64 = probed().map(|(stage, _)| stage.seconds).sum();
    (seconds > 0.0).then(|| cpu_s / seconds)
}

#[cfg(test)]
mod tests {
    use crate::{example_cbc, run_text};

    #[test]
    fn an_unmeasured_device_is_reported_with_the_command_that_measures_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        record.target.storage = Some(riops_model::record::Storage {
            device: Some("vda".to_owned()),
            ..Default::default()
        });
        let text = run_text(&record, "no", usize::MAX);
        assert!(text.contains("measure them once with riops doctor --disk"), "{text}");
        assert!(!text.contains("% max"), "{text}");
        // Without a known device nothing can be measured.
        record.target.storage = None;
        assert!(!run_text(&record, "no", usize::MAX).contains("measure them once"));
    }
}
