//! The texts of `cbc`.

mod tables;
mod text;
mod validation;

use crate::figure::Summary;
use crate::plan::{CbcDataset, CbcRun};
use crate::record::{Record, StageRecord, Status};
use crate::report::document::{Document, Headline, Hint};
use crate::report::table::Table;
use crate::report::words::next::Commands;
use crate::report::words::{DatasetWords, Measure, Words};
use crate::units::format::{bytes_text, count, duration_us, joined};

impl Words for CbcRun {
    fn work(&self) -> String {
        let auto = if self.auto_size { " (three times the memory)" } else { "" };
        let cold = if self.cold { ", caches emptied before SELECT_u1 and SELECT_u2" } else { "" };
        let queries = if self.query_sessions.is_empty() {
            String::new()
        } else {
            let each = duration_us(self.query_duration_s * 1e6);
            let sessions = joined(&self.query_sessions, ", ");
            format!("; then its SELECTs with {sessions} sessions for {each} each")
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
        Measure::of("SELECTs", true)
    }

    fn best(&self, record: &Record) -> Headline {
        tables::figure(record).unwrap_or_else(|| self.measure().best(record))
    }

    fn results(&self, document: &mut Document, record: &Record) {
        text::results(document, record);
    }

    fn details(&self, document: &mut Document, record: &Record) {
        text::details(document, record);
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
        if text::has_device(record) && record.target.disk_limit.is_none() {
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

#[cfg(test)]
mod tests {
    use crate::report::{example_cbc, run_text};

    #[test]
    fn an_unmeasured_device_is_reported_with_the_command_that_measures_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        record.target.storage =
            Some(crate::record::Storage { device: Some("vda".to_owned()), ..Default::default() });
        let text = run_text(&record, "no", usize::MAX);
        assert!(text.contains("measure them once with riops doctor --disk"), "{text}");
        assert!(!text.contains("% max"), "{text}");
        // Without a known device nothing can be measured.
        record.target.storage = None;
        assert!(!run_text(&record, "no", usize::MAX).contains("measure them once"));
    }
}
