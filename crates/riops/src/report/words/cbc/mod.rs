//! The words of `cbc`.

mod tables;
mod text;
mod validation;

use super::super::block::Block;
use super::super::format::{bytes_text, count, duration_us};
use super::super::model::Summary;
use super::super::page::table::Table;
use super::super::sections::next::{Commands, Hint};
use super::{DatasetWords, Words};
use crate::plan::{CbcDataset, CbcRun};
use crate::record::{Record, StageRecord, Status};

impl Words for CbcRun {
    fn work(&self) -> String {
        let auto = if self.auto_size { " (three times the memory)" } else { "" };
        let cold = if self.cold {
            ", the caches to be emptied before SELECT_u1 and SELECT_u2"
        } else {
            ""
        };
        let list: Vec<_> = self.query_sessions.iter().map(ToString::to_string).collect();
        let queries = if list.is_empty() {
            String::new()
        } else {
            let each = duration_us(self.query_duration_s * 1e6);
            format!("; its selects by {} sessions for {each} each", list.join(", "))
        };
        format!("Complete Block Check, size {} GB{auto}{cold}{queries}", self.size_gb)
    }

    fn setup(&self, _: &Summary<'_>) -> Option<String> {
        None
    }

    fn headline(&self) -> &'static str {
        "selects"
    }

    fn own_result(&self, block: &mut Block, record: &Record) -> bool {
        text::result(block, record);
        true
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        "statement".to_owned()
    }

    fn proof(&self, record: &Record) -> &'static str {
        if record.status == Status::Done {
            "the rows were counted by the statements themselves, and are those of the definition"
        } else {
            "the rows of the steps that ended are those of the definition"
        }
    }

    fn next_steps(&self, summary: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        let record = summary.record;
        if record.status != Status::Done {
            return Vec::new();
        }
        let mut hints = Vec::new();
        let storage = record.target.storage.as_ref();
        let has_device = storage.is_some_and(|storage| storage.device.is_some());
        if has_device && record.target.disk_limit.is_none() {
            hints.push(commands.other("riops doctor --disk", "what the device can do at most"));
        }
        let ram_gb = record.client.machine.memory_bytes as f64 / 1e9;
        if record.client.shares_machine_with_server && self.size_gb < ram_gb {
            let what = "three times the memory, where the page cache no longer helps";
            hints.push(commands.same("--size auto", what));
        }
        if self.query_sessions.is_empty() {
            let options =
                format!("--size {} --query-sessions 1,2,4,8 --query-duration 30s", self.size_gb);
            hints.push(commands.same(&options, "the selects by several sessions at once"));
        }
        hints
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        tables::of(record)
    }

    fn table_over(&self, records: &[Record]) -> Option<Table> {
        tables::best(records)
    }
}

impl DatasetWords for CbcDataset {
    fn text(&self) -> String {
        let sizes = match (self.table_bytes, self.index_bytes) {
            (None, _) => String::new(),
            (Some(table), None) => format!(", {}", bytes_text(table)),
            (Some(table), Some(index)) => {
                format!(", {} and an index of {}", bytes_text(table), bytes_text(index))
            }
        };
        format!(
            "settings_loop: {} rows, {} copies of {} settings{sizes}",
            count(self.rows()),
            count(self.copies),
            self.settings_rows
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::report::{example_cbc, run_text};

    #[test]
    fn the_closing_text_of_a_block_check() {
        insta::assert_snapshot!(run_text(&example_cbc(), "no (--no-store)"));
    }

    #[test]
    fn without_a_measured_device_the_text_says_how_to_measure_it() {
        let mut record = example_cbc();
        record.target.disk_limit = None;
        record.target.storage =
            Some(crate::record::Storage { device: Some("vda".to_owned()), ..Default::default() });
        let text = run_text(&record, "no");
        assert!(text.contains("riops doctor --disk measures it, once"), "{text}");
        assert!(!text.contains("% max"), "{text}");
        // Neither a maximum nor a device: nothing to measure.
        record.target.storage = None;
        assert!(!run_text(&record, "no").contains("measures it, once"));
    }
}
