//! Reporting of `imported`: the values that another tool reported, under its names.

use super::super::block::Block;
use super::super::format::number_of;
use super::super::imported::tool;
use super::super::model::Summary;
use super::Words;
use crate::plan::ImportedRun;
use crate::record::Record;

/// A short time with milliseconds.
fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
}

impl Words for ImportedRun {
    fn work(&self) -> String {
        let test = self.test.as_ref().map_or_else(String::new, |test| format!(": {test}"));
        format!("{}{test}", tool(self))
    }

    fn report_title(&self, _: &Record) -> String {
        format!("imported from {}", tool(self))
    }

    fn setup(&self, summary: &Summary<'_>) -> Option<String> {
        let plan = &summary.record.plan;
        let known = |number: u32, noun: &str| (number > 0).then(|| number_of(number.into(), noun));
        let parts = [
            known(plan.sessions, "session"),
            known(plan.workers, "thread"),
            Some(seconds(summary.stage.seconds)),
        ];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    fn headline(&self) -> &'static str {
        if self.counts_rows { "RIOPS" } else { "TPS" }
    }

    fn has_rows(&self) -> bool {
        self.counts_rows
    }

    fn totals(&self, block: &mut Block, _: &Summary<'_>) {
        let facts = self.facts.iter().map(|(name, value)| (name.clone(), value.clone()));
        block.pairs("reported", &facts.collect::<Vec<_>>());
    }

    fn for_a_steady_rate(&self) -> Option<&'static str> {
        None
    }

    fn proof(&self, _: &Record) -> &'static str {
        "not verified"
    }
}
