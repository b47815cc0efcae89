//! The parts of the page of one run, in their order: first what a reader decides by, then what it rests on.

use super::view::{Details, Group, RunView, Section, facts};
use super::{access_paths, counters, dots, heatmap, percentiles, series, summary, table};
use crate::record::Record;
use crate::report::forms::run_text;
use crate::report::model::Summary;
use crate::report::sections::bottleneck::resources;
use crate::report::sections::failures::{drained, failures, late};
use crate::report::sections::sources::sources;
use crate::report::sections::window::window;
use crate::report::words;

/// Columns of the text output in a page.
const TEXT_COLUMNS: usize = 100;

/// Returns the page of the run at `position` of `runs` runs.
pub(super) fn view(record: &Record, position: usize, runs: usize) -> RunView {
    let id = format!("run-{}", position + 1);
    let mut view = summary::view(record, &id, (runs > 1).then_some(position + 1));
    view.sections = [
        environment(record, &id),
        access_paths::section(record, &id),
        results(record, &id),
        over_time(record, &id),
        distribution(record, &id),
        errors(record, &id),
        nodes(record, &id),
        machine(record, &id),
        database(record, &id),
        waits(record, &id),
        sessions(record, &id),
        text(record, &id),
    ]
    .into_iter()
    .filter_map(Section::filled)
    .collect();
    view
}

/// Returns the charts of a run, in the order of its page.
pub(super) fn charts(record: &Record, id: &str) -> Vec<super::Chart> {
    let sections = [over_time(record, id), distribution(record, id), machine(record, id)];
    sections.into_iter().flat_map(|section| section.charts).collect()
}

fn environment(record: &Record, id: &str) -> Section {
    Section {
        groups: summary::environment(record),
        folded: summary::settings(record).into_iter().collect(),
        ..Section::new(id, "Run and environment")
    }
}

fn results(record: &Record, id: &str) -> Section {
    let tables = words::of(&record.plan.work).tables(record).into_iter();
    let tables = tables.chain(counters::operations(record)).chain(counters::checks(record));
    Section { tables: tables.collect(), ..Section::new(id, "Results") }
}

fn over_time(record: &Record, id: &str) -> Section {
    Section { charts: series::of_loops(record, id), ..Section::new(id, "Over time") }
}

fn distribution(record: &Record, id: &str) -> Section {
    let charts =
        [heatmap::chart(record, id), percentiles::chart(record, id), dots::chart(record, id)];
    Section { charts: charts.into_iter().flatten().collect(), ..Section::new(id, "Latency") }
}

fn errors(record: &Record, id: &str) -> Section {
    let summary = Summary::of(record).filter(|_| record.stages.len() == 1);
    let written = summary.map_or_else(Vec::new, |summary| {
        facts(|block| {
            // The table has the errors themselves.
            if summary.stage.session_loop.errors.is_empty() {
                failures(block, &summary);
            }
            words::of(&record.plan.work).contention(block, &summary);
            late(block, summary.stage);
            drained(block, summary.stage);
        })
    });
    Section {
        groups: Group::of("", written).into_iter().collect(),
        tables: counters::errors(record).into_iter().collect(),
        ..Section::new(id, "Errors")
    }
}

fn nodes(record: &Record, id: &str) -> Section {
    Section { tables: counters::nodes(record).into_iter().collect(), ..Section::new(id, "Nodes") }
}

fn machine(record: &Record, id: &str) -> Section {
    let summary = Summary::of(record).filter(|_| record.stages.len() == 1);
    let written = summary.map_or_else(Vec::new, |summary| {
        facts(|block| {
            window(block, &summary);
            sources(block, summary.stage);
            resources(block, &summary);
        })
    });
    let tables = [counters::resources(record), counters::devices(record)];
    Section {
        groups: Group::of("", written).into_iter().collect(),
        tables: tables.into_iter().flatten().collect(),
        charts: series::of_probes(record, id),
        ..Section::new(id, "Machine and devices")
    }
}

fn database(record: &Record, id: &str) -> Section {
    Section {
        tables: counters::database(record).into_iter().collect(),
        ..Section::new(id, "Database")
    }
}

fn waits(record: &Record, id: &str) -> Section {
    Section {
        tables: table::waits(record).into_iter().collect(),
        ..Section::new(id, "Wait events")
    }
}

fn sessions(record: &Record, id: &str) -> Section {
    let summary = Summary::of(record).filter(|_| record.stages.len() == 1);
    let written = summary.map_or_else(Vec::new, |summary| {
        facts(|block| words::of(&record.plan.work).totals(block, &summary))
    });
    Section {
        groups: Group::of("", written).into_iter().collect(),
        folded: counters::sessions(record).into_iter().collect(),
        ..Section::new(id, "Totals and sessions")
    }
}

fn text(record: &Record, id: &str) -> Section {
    let text = run_text(record, &record.id.to_string(), TEXT_COLUMNS);
    let title = "Output of the run in the terminal".to_owned();
    Section { texts: vec![Details { title, text, open: false }], ..Section::new(id, "Text") }
}
