//! The parts of the page of one run, in their order: first what a reader decides by, then what it rests on.

use super::series;
use super::summary;
use super::table;
use super::view::{Details, RunView, Section};
use crate::record::Record;
use crate::report::forms::run_text;
use crate::report::words;

/// Columns of the text output in a page.
const TEXT_COLUMNS: usize = 100;

/// Returns the page of the run at `position` of `runs` runs.
pub(super) fn view(record: &Record, position: usize, runs: usize) -> RunView {
    let id = format!("run-{}", position + 1);
    let mut view = summary::view(record, &id, (runs > 1).then_some(position + 1));
    let sections = [
        environment(record, &id),
        results(record, &id),
        over_time(record, &id),
        machine(record, &id),
        waits(record, &id),
        text(record, &id),
    ];
    view.sections = sections.into_iter().filter_map(Section::filled).collect();
    view
}

fn environment(record: &Record, id: &str) -> Section {
    Section { groups: summary::environment(record), ..Section::new(id, "Run and environment") }
}

fn results(record: &Record, id: &str) -> Section {
    let tables = words::of(&record.plan.work).tables(record);
    Section { tables, ..Section::new(id, "Results") }
}

fn over_time(record: &Record, id: &str) -> Section {
    Section { charts: series::of_loops(record, id), ..Section::new(id, "Over time") }
}

fn machine(record: &Record, id: &str) -> Section {
    Section { charts: series::of_probes(record, id), ..Section::new(id, "Machine and device") }
}

fn waits(record: &Record, id: &str) -> Section {
    Section {
        tables: table::waits(record).into_iter().collect(),
        ..Section::new(id, "Wait events")
    }
}

fn text(record: &Record, id: &str) -> Section {
    let text = run_text(record, &record.id.to_string(), TEXT_COLUMNS);
    let title = "What the terminal showed".to_owned();
    Section { texts: vec![Details { title, text, open: false }], ..Section::new(id, "Text output") }
}
