//! Reporting of `imported`: the values that another tool reported, under its names.

use crate::document::Document;
use crate::imported::tool;
use crate::words::Words;
use riops_model::figure::Summary;
use riops_model::plan::ImportedRun;
use riops_model::record::Record;
use riops_model::units::format::{joined, number_of};

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
        let known = |value: u32, noun: &str| (value > 0).then(|| number_of(value.into(), noun));
        let counts = [known(plan.sessions, "session"), known(plan.workers, "thread")];
        let time = Some(seconds(summary.stage.seconds));
        Some(joined(counts.into_iter().chain([time]).flatten(), ", "))
    }

    fn measure_name(&self) -> &'static str {
        if self.counts_rows { "RIOPS" } else { "TPS" }
    }

    fn totals(&self, document: &mut Document, _: &Summary<'_>) {
        document.pairs("reported", self.facts.clone());
    }

    fn for_a_steady_rate(&self) -> Option<&'static str> {
        None
    }
}
