//! Reporting of `imported`: the values that another tool reported, under its names.

use super::super::block::Block;
use super::super::format::number_of;
use super::super::imported::tool;
use super::super::model::Summary;
use super::Words;
use crate::plan::ImportedRun;
use crate::record::Record;

impl Words for ImportedRun {
    fn work(&self) -> String {
        let test = self.test.as_ref().map_or_else(String::new, |test| format!(": {test}"));
        format!("{}{test}", tool(self))
    }

    fn title(&self, _: &Record) -> String {
        format!("imported from {}", tool(self))
    }

    fn setup(&self, summary: &Summary<'_>) -> Option<String> {
        let plan = &summary.record.plan;
        let known = |number: u32, noun: &str| (number > 0).then(|| number_of(number.into(), noun));
        let parts = [
            known(plan.sessions, "session"),
            known(plan.workers, "thread"),
            Some(format!("{:.1} s", summary.stage.seconds)),
        ];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    fn headline(&self) -> &'static str {
        if self.counts_rows { "RIOPS" } else { "TPS" }
    }

    fn counts_transactions(&self) -> bool {
        !self.counts_rows
    }

    fn has_rows(&self) -> bool {
        self.counts_rows
    }

    fn has_statements(&self) -> bool {
        self.counts_statements
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
